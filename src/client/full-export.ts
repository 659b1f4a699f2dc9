/** Full exports: starts one, follows it to its end, and downloads its file. */
import { setTimeout as delay } from 'node:timers/promises'
import { interfaceVersion } from './api/calls.ts'
import type { ExportJob } from './api/items.ts'
import { clientError } from './errors.ts'
import { type Downloaded, type DownloadOptions, downloadFile } from './files/download.ts'
import { failureOf, type Request, type Requests, requireType } from './requests.ts'

type Format = 'JSON' | 'TRA' | 'FEC' | 'CSV' | 'PARQUET'

/** What is exported. Not every format takes every one (docs/spec/exports.md#full-exports). */
export interface FullExportSelection {
  format: Format | Lowercase<Format>
  compression?: 'gzip' | 'zstd' | undefined
  idExercice?: string | undefined
  startDate?: string | undefined
  endDate?: string | undefined
  journalIds?: readonly string[] | undefined
  /** FEC only. */
  encoding?: 'utf-8' | undefined
  /** FEC only. */
  columns?: 'extended' | undefined
}

export interface FullExportOptions {
  /** Stops following. The export itself goes on. */
  signal?: AbortSignal | undefined
  /** Called with each status on the way. The numbers never decrease. */
  onProgress?(progress: FullExportProgress): void
}

export interface FullExportProgress {
  /** Movements so far. */
  rows: number
  /** Null until they are counted. */
  rowsTotal: number | null
  /** Of the content, before compression. */
  bytes: number
}

/** The status of an export that is done. */
export interface DoneExport {
  id: string
  status: 'DONE'
  /** Bytes and SHA-256 (hexadecimal) of the file. */
  size: number
  fileSha256: string
  /** Of its content: the same, unless the file is compressed. */
  contentSize: number
  sha256: string
  /** Movements. */
  rows: number
  /** Sums as exact decimal text: as doubles, large ones that differ by a cent may be equal. */
  totals: { debit: string; credit: string }
  /** What the file leaves out or alters, by kind. */
  notes?: Record<string, number>
}

export interface FullExport {
  status: DoneExport
  /** Whether the trigger found an export that had ended already: equal triggers share one for an hour. */
  wasThere: boolean
  /**
   * Downloads the file, goes on with what an earlier download to the same name has left, and compares both hashes. One
   * download to a name at a time.
   */
  download(file: string, options?: DownloadOptions): Promise<Downloaded>
}

/**
 * Short at first, since a small folder is exported in less than a second, then less often: a token may send 20 requests
 * in 10 seconds.
 */
const pollsMs = [100, 200, 400, 700, 1000, 2000]

/**
 * @param wanted what to export, or the id of an export that was started before
 * @throws {GrandlivreError} EXPORT-FAILED with the reason and `details.exportId`, or of the service
 */
export async function fullExport(
  requests: Requests,
  wanted: FullExportSelection | { exportId: string },
  { signal, onProgress }: FullExportOptions = {},
): Promise<FullExport> {
  let { job, totals } =
    'exportId' in wanted
      ? await readStatus(requests, wanted.exportId, signal)
      : await read(requests, { path: '/mad/all', query: { version: interfaceVersion, ...wanted }, signal })
  const wasThere = job.status === 'DONE'
  for (let polls = 0; job.status === 'INIT'; polls += 1) {
    if (job.progress) onProgress?.(job.progress)
    await pollAfter(polls, signal)
    ;({ job, totals } = await readStatus(requests, job.id, signal))
  }
  if (job.status === 'FAILED')
    throw clientError('EXPORT-FAILED', `The export ${job.id} failed: ${job.reason}`, {
      status: 200,
      details: { exportId: job.id },
    })
  const { url, ...status } = doneOf(job, totals)
  // The signal is that of the download: the one above ends only the following.
  const renewUrl = async (ending: AbortSignal | undefined) => {
    const renewed = await readStatus(requests, status.id, ending)
    return doneOf(renewed.job, renewed.totals).url
  }
  const source = { ...status, exportId: status.id, url }
  return {
    status,
    wasThere,
    download: (file, options = {}) => downloadFile(requests, source, file, renewUrl, options),
  }
}

interface Status {
  job: ExportJob
  totals: DoneExport['totals'] | undefined
}

function readStatus(requests: Requests, exportId: string, signal: AbortSignal | undefined): Promise<Status> {
  return read(requests, { path: '/mad/all/status', query: { version: interfaceVersion, exportId }, signal })
}

/** As text, because numbers of JSON become doubles. */
async function read(requests: Requests, request: Request): Promise<Status> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await requests.send(request)
    requireType(answer, 'application/json', request)
    try {
      const text = await answer.text()
      const [, debit, credit] = /"totals":\{"debit":(-?[\d.]+),"credit":(-?[\d.]+)\}/.exec(text) ?? []
      const totals = debit !== undefined && credit !== undefined ? { debit, credit } : undefined
      return { job: JSON.parse(text), totals }
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason
      if (attempt >= requests.attemptsMax) throw failureOf(request, error, answer.headers['x-request-id'])
      await requests.pause('The answer was cut', attempt, request.signal)
    }
  }
}

/** @throws {GrandlivreError} if the status lacks what proves a file */
function doneOf(job: ExportJob, totals: Status['totals']): DoneExport & { url: string } {
  const { id, url, size, fileSha256, contentSize, sha256, rows, notes } = job
  const facts = { size, fileSha256, contentSize, sha256, rows, totals, url }
  const missing = Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [name] : []))
  if (missing.length > 0)
    throw clientError('UNEXPECTED-ANSWER', `The status of ${id} lacks ${missing.join(', ')}`, {
      details: { exportId: id },
    })
  const done = facts as { [Name in keyof typeof facts]-?: NonNullable<(typeof facts)[Name]> }
  return { id, status: 'DONE', ...done, ...(notes ? { notes } : {}) }
}

/** @throws {unknown} the reason of the signal */
async function pollAfter(polls: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(pollsMs[polls] ?? pollsMs.at(-1), undefined, signal ? { signal } : {})
  } catch {
    throw signal?.reason
  }
}
