/**
 * `npm run bench:fairness`: how soon events reach three healthy subscriptions of one third party, first alone and then
 * beside thousands of subscriptions of another one, to the same events, whose receivers are slow or hang.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startUsage, type Usage } from './measure.ts'
import type { ReportProgress } from './progress.ts'
import { describeMachine } from './results.ts'
import type { Tally } from './webhook-receiver.ts'
import { runBench, type WebhookStage } from './webhook-stage.ts'

const events = 1_000
/** One event to a transaction: 1,000 in 30 seconds. */
const stepMs = 30
/** What has not arrived by so long after the last event is counted as missing. */
const patienceMs = 60_000
const healthy = 3

/** Subscriptions of the third party that takes more than its share. */
interface Crowd {
  /** Answer after 0.9 seconds. */
  sluggish: number
  hang: number
}

interface Measured {
  tally: Tally
  usage: Usage
}

function readCrowd(args: string[]): Crowd {
  const { values } = parseArgs({ args, options: { sluggish: { type: 'string' }, hang: { type: 'string' } } })
  return { sluggish: Number(values.sluggish ?? 1_000), hang: Number(values.hang ?? 3_000) }
}

async function measure(stage: WebhookStage, progress: ReportProgress) {
  // The first round warms up.
  await run(stage, 'warming up', progress)
  const control = await run(stage, 'alone', progress)
  for (const behaviour of ['sluggish', 'hang'] as const)
    await stage.subscribe('CROWD', behaviour, crowd[behaviour])
  const crowded = await run(stage, 'beside the crowd', progress)
  const machine = describeMachine(stage.dataset.postgresVersion)
  return { at: new Date().toISOString(), machine, events, healthy, crowd, control, crowded }
}

async function run(stage: WebhookStage, name: string, progress: ReportProgress): Promise<Measured> {
  await stage.subscribe('HEALTHY', 'healthy', healthy)
  const end = startUsage(stage.service.pid)
  const started = performance.now()
  for (let step = 0; step < events; step++) {
    await stage.write(1, step)
    await delay(Math.max(0, started + step * stepMs - performance.now()))
    progress(name, step / events)
  }
  const written = performance.now()
  while ((await stage.count()) < healthy * events && performance.now() - written < patienceMs) await delay(50)
  const measured = { tally: await stage.tally(), usage: end() }
  await stage.clear()
  return measured
}

function lineOf(name: string, { tally, usage }: Measured): string {
  return (
    `${name}: median ${tally.p50Ms.toFixed(0)} ms, p99 ${tally.p99Ms.toFixed(0)} ms, longest ` +
    `${tally.maxMs.toFixed(0)} ms; ${tally.events} of ${healthy * events} arrived, ${tally.repeated} repeated, ` +
    `${tally.disordered} out of order; ${tally.otherRequests} requests to the crowd; service: ${usage.cpuSeconds?.toFixed(1)} s of CPU, ${usage.peakMb?.toFixed(0)} MB`
  )
}

const crowd = readCrowd(process.argv.slice(2))

runBench('webhook-fairness.json', measure, ({ control, crowded }) => [
  lineOf('alone', control),
  lineOf(`beside ${crowd.sluggish} that take 0.9 s and ${crowd.hang} that hang`, crowded),
])
