/**
 * `npm run bench:webhooks`: how fast one subscriber is told of a backlog, and how soon thirty healthy ones are told of
 * what happens, while twenty others fail, hang or take nine seconds. The service runs as `npm start` does, on the
 * embedded database; the subscribers are a process of their own on the same machine.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startUsage, type Usage } from './measure.ts'
import type { ReportProgress } from './progress.ts'
import { describeMachine, type Machine } from './results.ts'
import { median } from './statistics.ts'
import type { Tally } from './webhook-receiver.ts'
import { runBench, type WebhookStage } from './webhook-stage.ts'

const backlogEvents = 50_000
const backlogRounds = 5
const streamEvents = 10_000
/** Transactions of five events, so many milliseconds apart: 250 events a second, 7,500 to be delivered. */
const streamStepMs = 20
const streamStepEvents = 5
const subscriber = 'SUBSCRIBER'
const subscribers = { healthy: 30, fail: 10, hang: 5, slow: 5 } as const

interface WebhookResults {
  at: string
  machine: Machine
  /** Events a second to one healthy subscriber, of a backlog; by round. */
  backlog: { events: number; rounds: { perSecond: number }[] }
  stream: { events: number; perSecond: number; subscribers: typeof subscribers; tally: Tally; usage: Usage }
}

async function measure(stage: WebhookStage, progress: ReportProgress): Promise<WebhookResults> {
  const rounds: { perSecond: number }[] = []
  for (let round = 0; round <= backlogRounds; round++) {
    progress(`backlog, round ${round} of ${backlogRounds}`, round / backlogRounds)
    const perSecond = await measureBacklog(stage)
    // The first round warms up.
    if (round > 0) rounds.push({ perSecond })
  }
  progress('stream to fifty', 0)
  const end = startUsage(stage.service.pid)
  const stream = await measureStream(stage, (share) => progress('stream to fifty', share))
  return {
    at: new Date().toISOString(),
    machine: describeMachine(stage.dataset.postgresVersion),
    backlog: { events: backlogEvents, rounds },
    stream: { ...stream, usage: end() },
  }
}

/** All events are committed at once; @returns events a second from the commit to the last arrival */
async function measureBacklog(stage: WebhookStage): Promise<number> {
  await stage.subscribe(subscriber, 'healthy', 1)
  await stage.write(backlogEvents, 0)
  const started = performance.now()
  while ((await stage.count()) < backlogEvents) await delay(5)
  const seconds = (performance.now() - started) / 1000
  await stage.clear()
  return backlogEvents / seconds
}

async function measureStream(
  stage: WebhookStage,
  progress: (share: number) => void,
): Promise<Omit<WebhookResults['stream'], 'usage'>> {
  for (const behaviour of ['healthy', 'fail', 'hang', 'slow'] as const)
    await stage.subscribe(subscriber, behaviour, subscribers[behaviour])
  const started = performance.now()
  for (let step = 0; step * streamStepEvents < streamEvents; step++) {
    await stage.write(streamStepEvents, step * streamStepEvents)
    await delay(Math.max(0, started + step * streamStepMs - performance.now()))
    progress((step * streamStepEvents) / streamEvents)
  }
  const perSecond = streamEvents / ((performance.now() - started) / 1000)
  while ((await stage.count()) < subscribers.healthy * streamEvents) await delay(50)
  const tally = await stage.tally()
  await stage.clear()
  return { events: streamEvents, perSecond, subscribers, tally }
}

function reportOf({ machine, backlog, stream }: WebhookResults): string[] {
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
  ]
}

runBench('webhooks.json', measure, reportOf)
