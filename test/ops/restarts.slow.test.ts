/**
 * Two processes behind HAProxy are restarted one after the other, under fifty requests a second and four streams: no
 * client of HAProxy notices it.
 *
 * `npm run test:slow` restarts each once. `npm run long -- restarts` restarts each RESTARTS times with the default settings
 * and streams of 200 MB, and writes what it saw to RESTART_RECORD.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { setSeededStage } from '../support/ledgers/seeded-year.ts'
import { type Haproxy, isHaproxyInstalled, startHaproxy } from '../support/ops/haproxy.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { freePort } from '../support/servers/pgbouncer.ts'
import { until } from '../support/until.ts'

const isLong = process.env['RESTARTS'] !== undefined
const restarts = Number(process.env['RESTARTS'] ?? 1)
const path = process.env['RESTART_RECORD']
/** Time in which a client reads a stream evenly: much longer than the drain, and less than STOP_SECONDS after it. */
const streamMs = isLong ? 18_000 : 10_000
const movements = isLong ? 240_000 : 60_000

const stage = forTests(() => setSeededStage(movements))
let haproxy: Haproxy
let signed: Record<string, string>
let ledger: string
const ports: number[] = []
const services: ServiceProcess[] = []
/** Logs of the processes that have stopped. */
const logs: string[] = []

beforeAll(async () => {
  ledger = stage.path
  signed = { ...stage.signed, Accept: 'application/x-ndjson' }
  ports.push(await freePort(), await freePort())
  for (const index of [0, 1]) services[index] = await start(index)
  haproxy = await startHaproxy([services[0]!.url, services[1]!.url])
}, 600_000)

afterAll(async () => {
  await haproxy?.close()
  for (const service of services) await service.kill()
})

function start(index: number): Promise<ServiceProcess> {
  return startProcess({
    DATABASE_URL: stage.database.ownerUrl,
    PORT: String(ports[index]),
    RATE_LIMIT_CONCURRENT: '100',
    DRAIN_SECONDS: isLong ? '10' : '4',
    STOP_SECONDS: '25',
  })
}

const seen = { requests: 0, waits: 0, streams: 0, streamedBytes: 0, failures: [] as string[] }

/** Uses a new connection for each request, like many callers. */
async function ask(target: string): Promise<IncomingMessage> {
  const [answer] = await once(
    get(haproxy.url + target, { headers: signed, agent: false, ca: haproxy.ca }),
    'response',
  )
  return answer
}

async function askWhole(target: string, count: () => void): Promise<void> {
  try {
    const answer = await ask(target)
    for await (const _ of answer);
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
    count()
  } catch (error) {
    seen.failures.push(`${target}: ${error}`)
  }
}

/** @param bytes length of the stream, which is read evenly over `streamMs` */
async function stream(bytes: number): Promise<void> {
  try {
    const answer = await ask(ledger)
    const began = performance.now()
    const hash = createHash('sha256')
    let received = 0
    for await (const piece of answer) {
      hash.update(piece)
      received += piece.length
      const early = (received / bytes) * streamMs - (performance.now() - began)
      if (early > 10) await delay(early)
    }
    expect(answer.trailers['x-content-sha256']).toBe(hash.digest('hex'))
    seen.streams += 1
    seen.streamedBytes += received
  } catch (error) {
    seen.failures.push(`stream: ${error}`)
  }
}

/** Sends requests until `over` aborts. */
async function load(over: AbortSignal): Promise<void> {
  const first = await ask(ledger)
  const since = first.headers['x-ledger-cursor']
  let bytes = 0
  for await (const piece of first) bytes += piece.length
  const running = new Set<Promise<void>>()
  const repeat = async (act: () => Promise<void>) => {
    while (!over.aborted) await act()
  }
  const evenly = async () => {
    for (let next = performance.now(); !over.aborted; next += 20) {
      const asked = askWhole('/api/v1/key/info', () => (seen.requests += 1))
      running.add(asked)
      void asked.then(() => running.delete(asked))
      await delay(Math.max(0, next - performance.now()))
    }
    await Promise.all(running)
  }
  await Promise.all([
    evenly(),
    repeat(() => askWhole(`${ledger}&since=${since}&wait=20`, () => (seen.waits += 1))),
    ...[0, 1, 2, 3].map((turn) => delay((turn * streamMs) / 4).then(() => repeat(() => stream(bytes)))),
  ])
}

const isAsked = (service: ServiceProcess) =>
  service.log().some((line) => line.includes('"path":"/api/v1/key/info"'))

test.skipIf(!isHaproxyInstalled)(
  'a rolling restart of both processes is invisible to clients of HAProxy',
  async () => {
    const over = new AbortController()
    const loaded = load(over.signal)
    const secondsToLeave: number[] = []
    await until(() => services.every(isAsked))
    for (let count = 0; count < restarts * 2; count += 1) {
      await delay(streamMs / 4)
      const index = count % 2
      const leaving = services[index]!
      const began = performance.now()
      leaving.child.kill('SIGTERM')
      expect(await leaving.ended).toEqual([0, null])
      secondsToLeave.push(Math.round((performance.now() - began) / 100) / 10)
      logs.push(...leaving.log())
      services[index] = await start(index)
      await until(() => isAsked(services[index]!))
    }
    over.abort()
    await loaded
    const cut = logs.filter((line) => line.includes('"service.cut"'))
    if (path) {
      const { failures, streamedBytes, ...counts } = seen
      const record = {
        at: new Date().toISOString(),
        restarts: restarts * 2,
        ...counts,
        megabytesOfAStream: Math.round(streamedBytes / seen.streams / 1e6),
        failures,
        cut,
        secondsToLeave: `${Math.min(...secondsToLeave)} to ${Math.max(...secondsToLeave)}`,
      }
      await writeFile(path, `${JSON.stringify(record, null, 2)}\n`)
    }
    expect(seen.failures.slice(0, 5)).toEqual([])
    expect(cut).toEqual([])
    expect(Math.min(seen.requests / 50, seen.streams / 4, seen.waits)).toBeGreaterThan(restarts)
  },
  120_000 + restarts * 240_000,
)
