/** Requests sent one after the other. */
import { Agent, get, type IncomingHttpHeaders } from 'node:http'
import { startUsage } from '../measure.ts'
import { say } from '../own-process.ts'
import type { Row } from '../rows.ts'
import type { ServiceProcess } from '../service-process.ts'
import { median, quantile } from '../statistics.ts'

export interface Repeated {
  url: string
  headers: Record<string, string>
  status: number
  requests: number
}

/** @returns medians, the p99 of all requests, and the average consumption of a request */
export async function measureLatency(
  name: string,
  { url, headers, status, requests }: Repeated,
  { pid, failed }: Pick<ServiceProcess, 'pid' | 'failed'>,
  databasePid: number,
): Promise<Row> {
  say(name)
  const end = startUsage({ pid, databasePid })
  const before = process.cpuUsage()
  const answers = []
  for (let n = 0; n < requests; n++) {
    const answer = await Promise.race([request(url, headers), failed])
    if (answer.status !== status) throw new Error(`${url} answered ${answer.status} instead of ${status}`)
    answers.push(answer)
  }
  const { cpuMs, databaseCpuMs, peakMb, childPeakMb } = end()
  const { user, system } = process.cpuUsage(before)
  const perRequest = (ms: number | null) => (ms === null ? null : ms / requests)
  const times = answers.map(({ ms }) => ms)
  const sample = {
    ms: median(times),
    firstByteMs: status === 200 ? median(answers.map(({ firstByteMs }) => firstByteMs)) : null,
    bytes: status === 200 ? answers[0]!.bytes : null,
    rows: answers[0]!.rows,
    cpuMs: perRequest(cpuMs),
    databaseCpuMs: perRequest(databaseCpuMs),
    peakMb,
    childPeakMb,
    clientCpuMs: (user + system) / 1e3 / requests,
  }
  return { name, samples: [sample], p99Ms: quantile(times, 0.99) }
}

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  bytes: number
  /** According to the trailer; null without one. */
  rows: number | null
  /** Time to the first byte of the body. */
  firstByteMs: number
  ms: number
}

const agent = new Agent({ keepAlive: true })

/**
 * Reads a response to its end and discards it.
 * @throws {Error} if it breaks off
 */
export function request(url: string, headers: Record<string, string>): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const started = performance.now()
  const sent = get(url, { agent, headers }, (response) => {
    let bytes = 0
    let firstByteMs = 0
    response.on('data', (chunk: Buffer) => {
      if (bytes === 0) firstByteMs = performance.now() - started
      bytes += chunk.length
    })
    response.on('error', reject)
    response.on('end', () => {
      const ms = performance.now() - started
      if (!response.complete) return reject(new Error(`The answer of ${url} broke off after ${bytes} bytes`))
      const { statusCode: status = 0, headers, trailers } = response
      const rows = trailers['x-row-count'] === undefined ? null : Number(trailers['x-row-count'])
      resolve({ status, headers, bytes, rows, firstByteMs, ms })
    })
  })
  sent.on('error', reject)
  return promise
}
