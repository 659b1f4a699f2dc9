/**
 * The subscribers of the bench, in a separate process: the first part of a path says how one behaves. It
 * counts the events of the healthy ones, and how long after its writing each event arrived: both processes
 * read the same clock.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { quantile } from '../statistics.ts'

export type Behaviour = 'healthy' | 'fail' | 'hang' | keyof typeof slowMs

/** The response to GET /tally. */
export interface Tally {
  /** Healthy subscribers that received anything, and the fewest events that any of them received. */
  subscribers: number
  least: number
  requests: number
  events: number
  /** Requests to unhealthy subscribers. */
  otherRequests: number
  /** Events that arrived a second time, or after a later one. */
  repeated: number
  disordered: number
  /** From the writing of an event to its arrival. */
  p50Ms: number
  p99Ms: number
  maxMs: number
}

/** Response times: `slow` is just within the timeout, `sluggish` just too short to count as slow. */
const slowMs = { slow: 9_000, sluggish: 900 } as const
let requests = 0
let otherRequests = 0
let repeated = 0
let disordered = 0
let delays: number[] = []
/** Numbers of the events that each healthy path received. */
const got = new Map<string, { seen: Set<number>; last: number }>()

const server = createServer(async (request, response: ServerResponse) => {
  const body = Buffer.concat(await request.toArray().catch(() => []))
  const path = request.url!
  if (request.method === 'GET') return response.end(JSON.stringify(answerBench(path)))
  if (!path.startsWith('/healthy/')) otherRequests += 1
  if (path.startsWith('/fail/')) return response.writeHead(500).end()
  if (path.startsWith('/hang/')) return
  const waitMs = slowMs[path.split('/')[1] as keyof typeof slowMs]
  if (waitMs !== undefined) return setTimeout(() => response.writeHead(204).end(), waitMs)
  const at = performance.timeOrigin + performance.now()
  const of = got.get(path) ?? { seen: new Set(), last: -1 }
  got.set(path, of)
  requests += 1
  for (const { data, createdAt } of JSON.parse(body.toString('utf8'))) {
    const number = Number(data.id)
    if (of.seen.has(number)) repeated += 1
    else if (number < of.last) disordered += 1
    of.seen.add(number)
    of.last = Math.max(of.last, number)
    delays.push(at - createdAt)
  }
  return response.writeHead(204).end()
})

function tally(): Tally {
  const counts = [...got.values()].map(({ seen }) => seen.size)
  return {
    subscribers: got.size,
    least: counts.length === 0 ? 0 : Math.min(...counts),
    requests,
    otherRequests,
    events: counts.reduce((sum, count) => sum + count, 0),
    repeated,
    disordered,
    p50Ms: delays.length === 0 ? 0 : quantile(delays, 0.5),
    p99Ms: delays.length === 0 ? 0 : quantile(delays, 0.99),
    maxMs: delays.reduce((most, delay) => Math.max(most, delay), 0),
  }
}

/** The bench requests /count (events), /tally, or /reset. */
function answerBench(path: string): number | Tally | null {
  if (path === '/count') return [...got.values()].reduce((sum, { seen }) => sum + seen.size, 0)
  if (path === '/tally') return tally()
  requests = otherRequests = repeated = disordered = 0
  delays = []
  got.clear()
  return null
}

process.stdin.once('end', () => process.exit()).resume()
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
