/**
 * `npm run bench:webhooks`: how fast one subscriber is told of a backlog, and how soon thirty healthy ones are told of
 * what happens, while twenty others fail, hang or take nine seconds. The service runs as `npm start` does, on the
 * embedded database; the subscribers are a process of their own on the same machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { publish } from '../src/events/publish.ts'
import { insertSubscription } from '../src/webhooks/subscriptions.sql.ts'
import { type Dataset, openDataset } from './dataset.ts'
import { startUsage, type Usage } from './measure.ts'
import { interrupted, nextMessage, type OwnProcess, startPeer } from './own-process.ts'
import { createProgress, type ReportProgress } from './progress.ts'
import { describeMachine, type Machine } from './results.ts'
import { startServiceProcess } from './service-process.ts'
import { median } from './statistics.ts'
import { behaviours, type Listening, type Tally } from './webhook-receiver.ts'
import { forgetSubscriptions, readThirdParty } from './webhooks.sql.ts'

const backlogEvents = 50_000
const backlogRounds = 5
const streamEvents = 10_000
/** Transactions of five events, so many milliseconds apart: 250 events a second, 7,500 to be delivered. */
const streamStepMs = 20
const streamStepEvents = 5
const subscribers = { healthy: 30, fail: 10, hang: 5, slow: 5 } as const

interface WebhookResults {
  at: string
  machine: Machine
  /** Events a second to one healthy subscriber, of a backlog; by round. */
  backlog: { events: number; rounds: { perSecond: number }[] }
  stream: { events: number; perSecond: number; subscribers: typeof subscribers; tally: Tally; usage: Usage }
}

interface Stage {
  client: pg.Client
  dataset: Dataset
  thirdPartyId: string
  receiver: OwnProcess
  receiverUrl: string
}

async function measure(progress: ReportProgress, stack: AsyncDisposableStack): Promise<WebhookResults> {
  const dataset = await openDataset(5_000, progress, stack)
  const client = new pg.Client(dataset.ownerUrl)
  await client.connect()
  stack.defer(() => client.end())
  await forgetSubscriptions(client)
  const receiver = startPeer(new URL('./webhook-receiver.ts', import.meta.url))
  stack.defer(receiver.stop)
  const { url: receiverUrl } = await ask<Listening>(receiver, 'url')
  const service = await startServiceProcess(dataset.dataDir, { WEBHOOK_ALLOW_INSECURE: 'true' })
  stack.defer(service.stop)
  const stage = { client, dataset, thirdPartyId: await readThirdParty(client), receiver, receiverUrl }
  const rounds: { perSecond: number }[] = []
  for (let round = 0; round <= backlogRounds; round++) {
    progress(`backlog, round ${round} of ${backlogRounds}`, round / backlogRounds)
    const perSecond = await measureBacklog(stage)
    // The first round warms up.
    if (round > 0) rounds.push({ perSecond })
  }
  progress('stream to fifty', 0)
  const end = startUsage(service.pid)
  const stream = await measureStream(stage, (share) => progress('stream to fifty', share))
  return {
    at: new Date().toISOString(),
    machine: describeMachine(dataset.postgresVersion),
    backlog: { events: backlogEvents, rounds },
    stream: { ...stream, usage: end() },
  }
}

/** All events are committed at once; @returns events a second from the commit to the last arrival */
async function measureBacklog(stage: Stage): Promise<number> {
  await subscribe(stage, '/healthy/0')
  await write(stage, backlogEvents, 0)
  const started = performance.now()
  while ((await ask<number>(stage.receiver, 'count')) < backlogEvents) await delay(5)
  const seconds = (performance.now() - started) / 1000
  await clear(stage)
  return backlogEvents / seconds
}

async function measureStream(
  stage: Stage,
  progress: (share: number) => void,
): Promise<Omit<WebhookResults['stream'], 'usage'>> {
  for (const behaviour of behaviours)
    for (let number = 0; number < subscribers[behaviour]; number++)
      await subscribe(stage, `/${behaviour}/${number}`)
  const started = performance.now()
  for (let step = 0; step * streamStepEvents < streamEvents; step++) {
    await write(stage, streamStepEvents, step * streamStepEvents)
    await delay(Math.max(0, started + step * streamStepMs - performance.now()))
    progress((step * streamStepEvents) / streamEvents)
  }
  const perSecond = streamEvents / ((performance.now() - started) / 1000)
  while ((await ask<number>(stage.receiver, 'count')) < subscribers.healthy * streamEvents) await delay(50)
  const tally = await ask<Tally>(stage.receiver, 'tally')
  await clear(stage)
  return { events: streamEvents, perSecond, subscribers, tally }
}

async function subscribe({ client, dataset, thirdPartyId, receiverUrl }: Stage, path: string): Promise<void> {
  await insertSubscription(client, {
    schemaId: dataset.year.schemaId,
    level: 'staff',
    firmId: null,
    thirdPartyId,
    postUrl: receiverUrl + path,
    onEvents: ['accountingLineEntry'],
    folderIds: [],
  })
}

/** Entries with the numbers from `first` on, in one transaction, as an import tells of them. */
async function write({ client, dataset }: Stage, count: number, first: number): Promise<void> {
  const { schemaId, folderId } = dataset.year
  const events = Array.from({ length: count }, (_, place) => ({
    name: 'accountingLineEntry' as const,
    operation: 'CREATE' as const,
    data: { id: String(first + place) },
    folderId,
  }))
  await client.query('begin')
  await publish(client, schemaId, events)
  await client.query('commit')
}

async function clear({ client, receiver }: Stage): Promise<void> {
  await forgetSubscriptions(client)
  await ask(receiver, 'reset')
}

function ask<Answer>(receiver: OwnProcess, what: string): Promise<Answer> {
  const answer = nextMessage<Answer>(receiver)
  receiver.child.send(what)
  return answer
}

function reportOf({ machine, backlog, stream }: WebhookResults): string {
  const rates = backlog.rounds.map(({ perSecond }) => perSecond)
  const { tally, usage } = stream
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}, PostgreSQL ${machine.postgres}`,
    `backlog of ${backlog.events} events to one subscriber: ${median(rates).toFixed(0)} events/s (median of ` +
      `${rates.length}; ${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}); wanted: 5000`,
    `${stream.events} events at ${stream.perSecond.toFixed(0)}/s to 30 healthy of 50 subscribers: ` +
      `median ${tally.p50Ms.toFixed(0)} ms (wanted: 100), p99 ${tally.p99Ms.toFixed(0)} ms (wanted: 1000), ` +
      `longest ${tally.maxMs.toFixed(0)} ms`,
    `${tally.events} arrived in ${tally.requests} requests, ${tally.repeated} repeated, ${tally.disordered} out of ` +
      `order; service: ${usage.cpuSeconds?.toFixed(1)} s of CPU, ${usage.peakMb?.toFixed(0)} MB`,
  ].join('\n')
}

async function main(): Promise<void> {
  const { report, end } = createProgress()
  await using stack = new AsyncDisposableStack()
  stack.defer(end)
  const results = await Promise.race([measure(report, stack), interrupted()])
  end()
  const folder = fileURLToPath(new URL('./results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}webhooks.json`, `${JSON.stringify(results, null, 2)}\n`)
  process.stdout.write(`${reportOf(results)}\n`)
}

main().then(
  () => process.exit(),
  (error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  },
)
