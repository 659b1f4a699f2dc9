/** Starts a full export, follows it until it ends, and downloads its file. */
import { doneExport, misfitOf } from './answer-shapes.ts'
import { interfaceVersion } from './api/calls.ts'
import type { ExportJob } from './api/items.ts'
import type { queryValues } from './api/routes.ts'
import { clientError } from './errors.ts'
import { type DoneExport, type Downloaded, type DownloadOptions, downloadFile } from './files/download.ts'
import { type Requests, sleep } from './requests.ts'

export type { DoneExport }

type Values = (typeof queryValues)['/mad/all']
type Format = Values['format'][number]

/** What to export. Not every format takes every option (docs/spec/exports.md#full-exports). */
export interface FullExportSelection {
  format: Format | Lowercase<Format>
  compression?: Values['compression'][number] | undefined
  idExercice?: string | undefined
  startDate?: string | undefined
  endDate?: string | undefined
  journalIds?: readonly string[] | undefined
  /** Only with the format FEC. */
  encoding?: Values['encoding'][number] | undefined
  /** Only with the format FEC. */
  columns?: Values['columns'][number] | undefined
}

export interface FullExportOptions {
  /** Stops following the export, which itself goes on. */
  signal?: AbortSignal | undefined
  /** Called with each status until the end. Its numbers never decrease. */
  onProgress?(progress: FullExportProgress): void
}

export interface FullExportProgress {
  /** Number of movements so far. */
  rows: number
  /** Number of all movements; null until they are counted. */
  rowsTotal: number | null
  /** Bytes of the content so far, before compression. */
  bytes: number
}

export interface FullExport {
  status: DoneExport
  /** Whether the trigger found an export that had already ended: for an hour, equal triggers share one export. */
  wasThere: boolean
  /**
   * Downloads the file and compares both hashes. Goes on with what an earlier download to the same name left. Only one
   * download to a name may run at a time.
   */
  download(file: string, options?: DownloadOptions): Promise<Downloaded>
}

/**
 * Milliseconds between requests for the status. They are short at first, since a small folder is exported in less than
 * a second, and then grow: a token may send 20 requests in 10 seconds.
 */
const pollsMs = [100, 200, 400, 700, 1000, 2000]

/**
 * @param wanted what to export, or the id of an export that was started before
 * @throws {GrandlivreError} EXPORT-FAILED with the reason and `details.exportId`, or an error of the service
 */
export async function fullExport(
  requests: Requests,
  wanted: FullExportSelection | { exportId: string },
  { signal, onProgress }: FullExportOptions = {},
): Promise<FullExport> {
  let job = await readStatus(requests, wanted, signal)
  const wasThere = job.status === 'DONE'
  for (let polls = 0; job.status === 'INIT'; polls += 1) {
    if (job.progress) onProgress?.(job.progress)
    await sleep(pollsMs[polls] ?? pollsMs.at(-1)!, signal)
    job = await readStatus(requests, { exportId: job.id }, signal)
  }
  if (job.status === 'FAILED')
    throw clientError('EXPORT-FAILED', `The export ${job.id} failed: ${job.reason}`, {
      status: 200,
      details: { exportId: job.id },
    })
  const { url, ...status } = doneOf(job)
  // Uses the signal of the download. The signal of this function only ends the requests for the status.
  const renewUrl = async (ending: AbortSignal | undefined) =>
    doneOf(await readStatus(requests, { exportId: status.id }, ending)).url
  return {
    status,
    wasThere,
    download: (file, options = {}) => downloadFile(requests, { ...status, url }, file, renewUrl, options),
  }
}

/** The status of an export. Its totals are decimal texts, and undefined if it does not state both. */
type ExportStatus = Omit<ExportJob, 'totals'> & { totals: DoneExport['totals'] | undefined }

/** Starts an export, or reads the status of an export that was started before. */
async function readStatus(
  requests: Requests,
  wanted: FullExportSelection | { exportId: string },
  signal: AbortSignal | undefined,
): Promise<ExportStatus> {
  const path = 'exportId' in wanted ? '/mad/all/status' : '/mad/all'
  const query = { version: interfaceVersion, ...wanted }
  const { value, text } = await requests.json({ path, query, signal })
  return { ...(value as ExportJob), totals: totalsOf(text) }
}

/** A text or a number in JSON. Texts are matched first, so that digits inside them are left alone. */
const textOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g

/** The sums exactly as the JSON has them. A JavaScript number is a double, which would lose the cents of large sums. */
function totalsOf(json: string): DoneExport['totals'] | undefined {
  const asTexts = json.replaceAll(textOrNumber, (token) => (token.startsWith('"') ? token : `"${token}"`))
  const { debit, credit } = JSON.parse(asTexts).totals ?? {}
  const sums = [decimalOf(String(debit)), decimalOf(String(credit))] as const
  return sums[0] === undefined || sums[1] === undefined ? undefined : { debit: sums[0], credit: sums[1] }
}

/**
 * Makes `100.10` and `1.001e2` the same decimal text, `100.1`, because a proxy may rewrite numbers.
 * @returns undefined if the text is no decimal number
 */
function decimalOf(number: string): string | undefined {
  const parsed = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,2}))?$/.exec(number)
  if (!parsed) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parsed
  const point = whole.length + Number(exponent)
  const digits = '0'.repeat(Math.max(0, -point)) + whole + fraction.padEnd(Number(exponent), '0')
  const units = digits.slice(0, Math.max(0, point)).replace(/^0+/, '') || '0'
  const rest = digits.slice(Math.max(0, point)).replace(/0+$/, '')
  const decimal = rest === '' ? units : `${units}.${rest}`
  return decimal === '0' ? decimal : sign + decimal
}

/** @throws {GrandlivreError} if the status lacks a member that proves the file */
function doneOf(status: ExportStatus): DoneExport & { url: string } {
  const { id, url, size, fileSha256, contentSize, sha256, rows, totals, notes } = status
  const facts = { size, fileSha256, contentSize, sha256, rows, totals, url }
  const wrong = misfitOf(facts, doneExport, 'status')
  if (wrong !== undefined)
    throw clientError('UNEXPECTED-ANSWER', `The status of ${id} is not that of a file: ${wrong}`, {
      details: { exportId: id },
    })
  const done = facts as { [Name in keyof typeof facts]-?: NonNullable<(typeof facts)[Name]> }
  return { id, status: 'DONE', ...done, ...(notes ? { notes } : {}) }
}
