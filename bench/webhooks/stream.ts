/** Events at a steady pace, and how soon the healthy subscribers receive them. */
import { setTimeout as delay } from 'node:timers/promises'
import { startUsage, type Usage } from '../measure.ts'
import { say } from '../own-process.ts'
import type { Tally } from './receiver.ts'
import type { WebhookStage } from './stage.ts'

export interface Pace {
  events: number
  perTransaction: number
  everyMs: number
  /** Subscribers that receive all of them. */
  healthy: number
}

export interface Stream {
  name: string
  pace: Pace
  /** Events written per second. */
  perSecond: number
  tally: Tally
  usage: Usage
}

/** Events that have not arrived this long after the last one was written count as missing. */
const arrivalTimeoutMs = 60_000

/** Streams to the existing subscriptions, and removes them afterwards. */
export async function measureStream(stage: WebhookStage, name: string, pace: Pace): Promise<Stream> {
  const { events, perTransaction, everyMs, healthy } = pace
  say(name)
  const end = startUsage({ pid: stage.service.pid, databasePid: stage.dataset.databasePid })
  const started = performance.now()
  for (let first = 0; first < events; first += perTransaction) {
    await stage.write(perTransaction, first)
    await delay(Math.max(0, started + (first / perTransaction) * everyMs - performance.now()))
  }
  const written = performance.now()
  while ((await stage.count()) < healthy * events && performance.now() - written < arrivalTimeoutMs)
    await delay(50)
  const perSecond = events / ((written - started) / 1000)
  const stream = { name, pace, perSecond, tally: await stage.tally(), usage: end() }
  await stage.clear()
  return stream
}

export function streamLine({ name, pace, perSecond, tally, usage }: Stream): string {
  const ms = (value: number) => `${value.toFixed(0)} ms`
  const seconds = (value: number | null) => (value === null ? 'unknown' : `${(value / 1000).toFixed(1)} s`)
  return (
    `${name}, ${pace.events} events at ${perSecond.toFixed(0)}/s: median ${ms(tally.p50Ms)}, p99 ${ms(tally.p99Ms)}, ` +
    `longest ${ms(tally.maxMs)}; ${tally.events} of ${pace.healthy * pace.events} arrived in ${tally.requests} requests, ` +
    `${tally.repeated} repeated, ${tally.disordered} out of order; ${tally.otherRequests} requests to the others; ` +
    `CPU ${seconds(usage.cpuMs)}, database ${seconds(usage.databaseCpuMs)}, peak ${usage.peakMb?.toFixed(0) ?? 'unknown'} MB`
  )
}
