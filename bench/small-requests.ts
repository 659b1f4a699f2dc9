/** What is asked of the service beside whole years: small routes, parts of a year, nothing new. */
import { download, request } from './client.ts'
import type { Dataset } from './dataset.ts'
import type { Usage } from './measure.ts'
import { startUsage } from './measure.ts'
import { nextMessage, startPeer } from './own-process.ts'
import type { ReportProgress } from './progress.ts'
import type { Sample } from './rounds.ts'
import { measure } from './rounds.ts'
import type { ServiceProcess } from './service-process.ts'
import { median, quantile } from './statistics.ts'
import { movementsPath } from './ways.ts'

export interface Latency {
  requests: number
  p50Ms: number
  p99Ms: number
}

const requestsCount = 1_000
const exportsSideBySide = 2

/** One client, one request after the other. */
export async function measureLatency(
  url: string,
  headers: Record<string, string>,
  status: number,
): Promise<Latency> {
  const times: number[] = []
  for (let n = 0; n < requestsCount; n++) {
    const answer = await request(url, headers)
    if (answer.status !== status) throw new Error(`${url} answered ${answer.status} instead of ${status}`)
    times.push(answer.ms)
  }
  return { requests: times.length, p50Ms: median(times), p99Ms: quantile(times, 0.99) }
}

export interface SmallRequests {
  keyInfoIdle: Latency
  /** While two exports run without a pause; the usage is that of the service meanwhile. */
  keyInfoUnderExports: Latency & Usage
  notModified: Latency
}

export async function measureSmallRequests(
  service: ServiceProcess,
  yearUrl: string,
  progress: ReportProgress,
): Promise<SmallRequests> {
  const { headers } = service
  const keyInfoUrl = `${service.url}/api/v1/key/info`
  progress('key/info, idle', 0)
  await measureLatency(keyInfoUrl, headers, 200)
  const keyInfoIdle = await measureLatency(keyInfoUrl, headers, 200)
  progress('304 Not Modified', 1 / 3)
  const etag = await readEtag(yearUrl, headers)
  const notModified = await measureLatency(yearUrl, { ...headers, 'If-None-Match': etag }, 304)
  progress(`key/info while ${exportsSideBySide} exports run`, 2 / 3)
  const readers = startPeer(new URL('./export-readers.ts', import.meta.url))
  try {
    readers.child.send({ url: yearUrl, headers, count: exportsSideBySide })
    await nextMessage(readers)
    const end = startUsage(service.pid)
    const latency = await Promise.race([measureLatency(keyInfoUrl, headers, 200), readers.failed])
    return { keyInfoIdle, notModified, keyInfoUnderExports: { ...latency, ...end() } }
  } finally {
    await readers.stop()
  }
}

/** Any representation that exists is one the client may say it has. */
async function readEtag(url: string, headers: Record<string, string>): Promise<string> {
  const answer = await request(url, { ...headers, 'If-None-Match': '*' })
  return String(answer.headers.etag)
}

/** A part of the year beside the whole. */
export interface Part {
  name: string
  rows: number
  samples: Sample[]
}

export async function measureParts(
  service: ServiceProcess,
  { year, period }: Dataset,
  rounds: number,
  progress: ReportProgress,
): Promise<Part[]> {
  const month = period.start.slice(0, 5)
  const inYear = `idExercice=${year.exerciceId}`
  const queries: Record<string, string> = {
    'the year': inYear,
    'one month (March)': `startDate=${month}03-01&endDate=${month}03-31`,
    'accounts 60': `${inYear}&classAccount=60`,
    'accounts 512': `${inYear}&classAccount=512`,
    'one source (QUADRA)': `${inYear}&source=QUADRA`,
    drafts: `${inYear}&draft=1`,
  }
  const parts = Object.keys(queries).map((name): Part => ({ name, rows: 0, samples: [] }))
  for (let round = 0; round <= rounds; round++) {
    for (const [index, part] of parts.entries()) {
      progress(`round ${round} of ${rounds}: ${part.name}`, index / parts.length)
      const url = `${service.url}${movementsPath}&${queries[part.name]}`
      const sample = await measure({
        pid: service.pid,
        run: async () => {
          const answer = await download(url, service.headers)
          part.rows = Number(answer.trailers['x-row-count'])
          return { seconds: answer.ms / 1000, firstByteMs: answer.firstByteMs, bytes: answer.bytes }
        },
      })
      // The first round warms up.
      if (round > 0) part.samples.push(sample)
    }
  }
  return parts
}
