/** A full export as a partner uses it: trigger it, poll it to its end, download it. */
import { createHash } from 'node:crypto'
import { type Answer, request } from './service.ts'
import { until } from './until.ts'

export interface Progress {
  rows: number
  rowsTotal: number | null
  bytes: number
}

export interface JobAnswer {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  progress?: Progress
  url?: string
  size?: number
  fileSha256?: string
  contentSize?: number
  rows?: number
  sha256?: string
  notes?: Record<string, number>
  totals?: { debit: number; credit: number }
  reason?: string
}

export function trigger(
  url: string,
  headers: Record<string, string>,
  query: Record<string, string> = {},
): Promise<Answer & { body: JobAnswer }> {
  const parameters = new URLSearchParams({ version: '1.0.0', format: 'JSON', ...query })
  return request(`${url}/api/v1/mad/all?${parameters}`, headers)
}

/**
 * Like `trigger`, under load. A request that gets no database connection within five seconds, as on a slow machine, is
 * answered with 503. It is sent again, as partners do.
 */
export async function triggerAmongMany(
  url: string,
  headers: Record<string, string>,
): Promise<Answer & { body: JobAnswer }> {
  for (;;) {
    const answer = await trigger(url, headers)
    if (answer.status !== 503) return answer
  }
}

export function statusUrl(url: string, exportId: string): string {
  return `${url}/api/v1/mad/all/status?exportId=${encodeURIComponent(exportId)}`
}

/**
 * Polls until the export has ended.
 * @param seen called with each progress on the way
 */
export async function ended(
  url: string,
  headers: Record<string, string>,
  exportId: string,
  seen: (progress: Progress) => void = () => {},
): Promise<JobAnswer> {
  let job: JobAnswer | undefined
  await until(async () => {
    const { status, body } = await request(statusUrl(url, exportId), headers)
    // The database may be away for a moment; partners retry, too.
    if (status === 503) return false
    if (status !== 200) throw new Error(`status answered ${status} ${JSON.stringify(body)}`)
    job = body as JobAnswer
    if (job.progress) seen(job.progress)
    return job.status !== 'INIT'
  })
  return job!
}

export interface DownloadedFile {
  bytes: Buffer
  sha256: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into the file as it likes
  json: any
}

/** Downloads without any header, like a partner's browser. */
export async function downloadFile(url: string): Promise<DownloadedFile> {
  const response = await fetch(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status !== 200) throw new Error(`${url} answered ${response.status} ${bytes.subarray(0, 500)}`)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { bytes, sha256, json: JSON.parse(bytes.toString('utf8')) }
}

/** @returns the steps at which progress went backwards; normally none */
export function backwards(seen: Progress[]): string[] {
  return seen.flatMap((now, i) => {
    const before = seen[i - 1]
    const fell =
      before && (['rows', 'rowsTotal', 'bytes'] as const).filter((part) => now[part]! < before[part]!)
    return fell?.length ? [`${JSON.stringify(before)} -> ${JSON.stringify(now)}`] : []
  })
}
