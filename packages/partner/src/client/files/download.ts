/**
 * Downloads the file of a full export. After a cut, a stall or a kill it goes on with `Range`. The file gets its name
 * once the hashes of its bytes and of its content equal those that the service stated.
 */
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
// Node 20 has no zstd, so importing that name would fail there.
import * as zlib from 'node:zlib'
import { clientError, GrandlivreError } from '../errors.ts'
import type { Answer } from '../http/answer.ts'
import { cut, isLost } from '../http/connection.ts'
import { throughLosses } from '../reader.ts'
import { failureOf, type Requests } from '../requests.ts'
import { hashOf, openPartialDownload, type PartialDownload } from './part-file.ts'

/** The status of a finished export. */
export interface DoneExport {
  id: string
  status: 'DONE'
  /** Length of the file, and its SHA-256 (hexadecimal). */
  size: number
  fileSha256: string
  /** Length and SHA-256 of the content. They differ from those of the file only if it is compressed. */
  contentSize: number
  sha256: string
  /** Number of movements. */
  rows: number
  /** Sums as exact decimal texts: as doubles, two large sums that differ by a cent may be equal. */
  totals: { debit: string; credit: string }
  /** How often the file omits or alters something, by kind. */
  notes?: Record<string, number>
}

export interface DownloadProgress {
  /** Bytes of the file that are on disk. */
  bytes: number
  size: number
  /** Number of answers of the file server so far. */
  connections: number
}

export interface DownloadOptions {
  /** Stops the download. The bytes that have arrived are kept for the next download. */
  signal?: AbortSignal | undefined
  /** Called after each piece that was written. */
  onProgress?(progress: DownloadProgress): void
  /** Called when stored bytes are discarded, with a sentence that says why. */
  onRestart?(reason: string): void
}

export interface Downloaded {
  file: string
  /** Length of the file. */
  bytes: number
  fileSha256: string
  contentBytes: number
  /** SHA-256 of the content. */
  sha256: string
  /**
   * Whether the content was decompressed and its hash compared. False if this Node has no zstd (before 22.15); the hash
   * of the file was compared even so.
   */
  isContentVerified: boolean
  /** Bytes that this download took over from an earlier download. */
  keptBytes: number
  connections: number
  restarts: number
}

/** Most downloads of one file. A second wrong download shows that the disk is not the cause. */
const triesMax = 2

/** Reads the current address of the file, since an address is valid for only an hour. */
type RenewUrl = (signal: AbortSignal | undefined) => Promise<string>

/**
 * @param file the name on this machine; an existing file is replaced at the end
 * @throws {GrandlivreError} FILE-DIFFERS, FILE-REFUSED, FILE-NOT-WRITTEN, CONNECTION-LOST, or an error of the service
 */
export async function downloadFile(
  requests: Requests,
  source: DoneExport & { url: string },
  file: string,
  renewUrl: RenewUrl,
  options: DownloadOptions,
): Promise<Downloaded> {
  const part = await openPartialDownload(file, source, options.signal)
  try {
    const transfer = transferOf(requests, source, part, renewUrl, options)
    const keptBytes = part.bytes
    if (part.hasDropped) transfer.report('An earlier download left bytes of another file')
    for (let tries = 1; ; tries += 1) {
      await transfer.run()
      if (part.isRight()) break
      if (tries === triesMax) throw await differs(part, 'it has another SHA-256')
      await transfer.restart('The bytes have another SHA-256 than the service stated')
    }
    const isContentVerified = await verifyContent(part, source, options.signal)
    await part.finish()
    const { size: bytes, fileSha256, contentSize: contentBytes, sha256 } = source
    const stated = { bytes, fileSha256, contentBytes, sha256 }
    return { file, ...stated, isContentVerified, keptBytes, ...transfer.counts }
  } finally {
    await part.close()
  }
}

/** Appends to a part the bytes that are still missing. */
function transferOf(
  requests: Requests,
  source: DoneExport & { url: string },
  part: PartialDownload,
  renewUrl: RenewUrl,
  { signal, onProgress, onRestart }: DownloadOptions,
) {
  const { size } = source
  const counts = { connections: 0, restarts: 0 }
  let { url } = source
  /** Whether the address is new and has not brought a byte yet. */
  let isRenewed = false

  /** Counts and reports that stored bytes were discarded. */
  const report = (reason: string) => {
    counts.restarts += 1
    onRestart?.(reason)
  }
  const restart = async (reason: string) => {
    await part.beginAgain()
    report(reason)
  }

  /** Requests the bytes that are missing. */
  async function ask(): Promise<Answer> {
    const { bytes, etag } = part
    const range = { Range: `bytes=${bytes}-`, ...(etag === undefined ? {} : { 'If-Range': etag }) }
    // Asks for the bytes as they are stored, without further compression on the way.
    const headers = { 'Accept-Encoding': 'identity', ...(bytes > 0 ? range : {}) }
    try {
      return await requests.send({ url, headers, signal })
    } catch (error) {
      const { status = 0 } = error instanceof GrandlivreError ? error : {}
      if (status === 416 && bytes > 0) await restart('The file server has fewer bytes than are stored here')
      // With these statuses the service and S3 refuse an address that is too old. A new address that is refused, too, is
      // not renewed again.
      else if ((status === 403 || status === 410) && !isRenewed) {
        url = await renewUrl(signal)
        isRenewed = true
      } else throw fileRefused(part, error)
      return ask()
    }
  }

  async function* connection(): AsyncGenerator<DownloadProgress, void, undefined> {
    const answer = await ask()
    counts.connections += 1
    const begins = beginningOf(answer, part, size)
    if (begins !== part.bytes) await restart('The file server sent the file from its beginning')
    if (part.bytes === 0) await part.remember(strongETag(answer.headers['etag']))
    for await (const chunk of answer.body) {
      if (part.bytes + chunk.length > size) throw await differs(part, `it has more than ${size} bytes`)
      await part.append(chunk)
      isRenewed = false
      yield { bytes: part.bytes, size, connections: counts.connections }
    }
    if (part.bytes < size) throw cut('The file ended early')
  }

  async function run(): Promise<void> {
    const lost = (cause: Error) => {
      const { message } = cause instanceof GrandlivreError ? cause : failureOf({ url }, cause)
      return `${message}; ${part.bytes} of ${size} bytes are kept: the same download goes on there`
    }
    // A wrong certificate stays wrong at the next attempt, so its error is thrown at once, with its remedy.
    const isResumable = ({ cause }: GrandlivreError) => isLost(cause)
    const reader = { connection, reached: () => part.bytes, lost, isResumable }
    if (part.bytes < size)
      for await (const progress of throughLosses(requests, reader, signal)) onProgress?.(progress)
  }

  return { counts, report, restart, run }
}

/** The place in the file where the body begins: after the stored bytes, or at 0. */
function beginningOf(answer: Answer, part: PartialDownload, size: number): number {
  const { bytes } = part
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers['content-range'] ?? '') ?? []
  const begins = answer.status === 206 ? Number(from) : 0
  const sent = answer.status === 206 ? total : answer.headers['content-length']
  const isOfSize = sent === undefined || Number(sent) === size
  if (isOfSize && (begins === bytes || begins === 0)) return begins
  answer.discard()
  // This may be the answer of another server, so the stored bytes are kept.
  if (!isOfSize) throw different(part, `it has ${sent} bytes instead of ${size}`)
  throw clientError('UNEXPECTED-ANSWER', `The file server answered Range: bytes=${bytes}- with other bytes`)
}

/** The error for a refusal by a file server other than the service: S3 answers in XML. */
function fileRefused({ exportId }: PartialDownload, error: unknown): unknown {
  if (!(error instanceof GrandlivreError && error.code === 'UNEXPECTED-ANSWER')) return error
  const { status } = error
  const message = `The file server answered the file of ${exportId} with status ${status}`
  return clientError('FILE-REFUSED', message, { status, cause: error })
}

/** The ETag if it is strong. A weak ETag may stay the same while bytes change. */
const strongETag = (etag: string | undefined) => (etag?.startsWith('W/') ? undefined : etag)

/** Compares the hash of the content. @returns false if this runtime cannot decompress it */
async function verifyContent(part: PartialDownload, source: DoneExport, signal: AbortSignal | undefined) {
  if (source.sha256 === source.fileSha256) return true
  // Of the service's files, only compressed files begin with the bytes of gzip or zstd.
  const beginning = Buffer.concat(await createReadStream(part.path, { end: 3 }).toArray()).toString('hex')
  const isGzip = beginning.startsWith('1f8b')
  if (!isGzip && beginning !== '28b52ffd') throw await differs(part, 'it is neither gzip nor zstd')
  if (!isGzip && typeof zlib.createZstdDecompress !== 'function') return false
  const decoder = isGzip ? zlib.createGunzip() : zlib.createZstdDecompress()
  const content = await pipeline(
    createReadStream(part.path),
    decoder,
    hashOf,
    signal ? { signal } : {},
  ).catch(async (error: Error) => {
    if (signal?.aborted) throw signal.reason
    throw await differs(part, `it cannot be decompressed (${error.message})`)
  })
  if (content.bytes === source.contentSize && content.hash.digest('hex') === source.sha256) return true
  throw await differs(part, 'its content has another size or SHA-256')
}

/**
 * Removes the bytes, because the next download cannot use them.
 * @returns the error for a file that differs from its status
 */
async function differs(part: PartialDownload, what: string): Promise<GrandlivreError> {
  await part.remove()
  return different(part, what)
}

function different({ exportId }: PartialDownload, what: string): GrandlivreError {
  return clientError(
    'FILE-DIFFERS',
    `The file of ${exportId} is not the one that its status describes: ${what}`,
  )
}
