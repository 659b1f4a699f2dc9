/**
 * Downloads the file of a full export. A cut, a stall and a kill are resumed with `Range`; the file gets its name when
 * its bytes, and those of its content, have the hashes that the service stated.
 */
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
// Node 20 has no zstd: the name itself could not be imported there.
import * as zlib from 'node:zlib'
import { clientError, GrandlivreError } from '../errors.ts'
import type { Answer } from '../http/answer.ts'
import { cut, isLost } from '../http/connection.ts'
import { throughLosses } from '../reader.ts'
import { failureOf, type Requests } from '../requests.ts'
import { digestOf, openPartialDownload, type PartialDownload } from './part-file.ts'

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

export interface DownloadProgress {
  /** Bytes of the file on disk. */
  bytes: number
  size: number
  /** Answers of the file server so far. */
  connections: number
}

export interface DownloadOptions {
  /** Ends the download. What has arrived is kept for the next time. */
  signal?: AbortSignal | undefined
  /** Called for each piece that was written. */
  onProgress?(progress: DownloadProgress): void
  /** Called when bytes that were there are dropped, with a sentence that says why. */
  onRestart?(reason: string): void
}

export interface Downloaded {
  file: string
  /** Of the file. */
  bytes: number
  fileSha256: string
  contentBytes: number
  /** Of the content. */
  sha256: string
  /**
   * Whether the content was decompressed and its hash compared. Not so if this Node has no zstd (before 22.15); the hash
   * of the file was compared all the same.
   */
  isContentVerified: boolean
  /** Bytes that an earlier download had left. */
  keptBytes: number
  connections: number
  restarts: number
}

/** Times that a file is downloaded: two wrong files in a row are no accident of the disk. */
const triesMax = 2

/** Reads the address of the file again: one is valid for an hour. */
type RenewUrl = (signal: AbortSignal | undefined) => Promise<string>

/**
 * @param file its name; an existing file is replaced at the end
 * @throws {GrandlivreError} FILE-DIFFERS, FILE-REFUSED, FILE-NOT-WRITTEN, CONNECTION-LOST, or of the service
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
    if (part.hasDropped) transfer.report('What an earlier download had left is of another file')
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

/** Brings a part from the bytes that it has to all of them. */
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
  /** Whether the address is a new one that has not given a byte yet. */
  let isRenewed = false

  /** Counts and reports that bytes were dropped. */
  const report = (reason: string) => {
    counts.restarts += 1
    onRestart?.(reason)
  }
  const restart = async (reason: string) => {
    await part.beginAgain()
    report(reason)
  }

  /** Asks for the bytes that are missing. */
  async function ask(): Promise<Answer> {
    const { bytes, etag } = part
    const range = { Range: `bytes=${bytes}-`, ...(etag === undefined ? {} : { 'If-Range': etag }) }
    // The stored bytes are asked for, without another compression on the way.
    const headers = { 'Accept-Encoding': 'identity', ...(bytes > 0 ? range : {}) }
    try {
      return await requests.send({ url, headers, signal })
    } catch (error) {
      const { status = 0 } = error instanceof GrandlivreError ? error : {}
      if (status === 416 && bytes > 0) await restart('The file server has fewer bytes than were there')
      // The address is too old, in the words of the service and of S3. A new one that is refused, too, stays so.
      else if ((status === 403 || status === 410) && !isRenewed) {
        url = await renewUrl(signal)
        isRenewed = true
      } else throw refused(part, error)
      return ask()
    }
  }

  async function* connection(): AsyncGenerator<DownloadProgress, void, undefined> {
    const answer = await ask()
    counts.connections += 1
    const begins = beginningOf(answer, part, size)
    if (begins !== part.bytes) await restart('The file server sent the file from its beginning')
    if (part.bytes === 0) await part.remember(strong(answer.headers['etag']))
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
    // Repeating does not mend a wrong certificate, so its error keeps its remedy.
    const isResumable = ({ cause }: GrandlivreError) => isLost(cause)
    const reader = { connection, reached: () => part.bytes, lost, isResumable }
    if (part.bytes < size)
      for await (const progress of throughLosses(requests, reader, signal)) onProgress?.(progress)
  }

  return { counts, report, restart, run }
}

/** Where in the file the body begins: at the bytes that are there, or at its first. */
function beginningOf(answer: Answer, part: PartialDownload, size: number): number {
  const { bytes } = part
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers['content-range'] ?? '') ?? []
  const begins = answer.status === 206 ? Number(from) : 0
  const sent = answer.status === 206 ? total : answer.headers['content-length']
  const isOfSize = sent === undefined || Number(sent) === size
  if (isOfSize && (begins === bytes || begins === 0)) return begins
  answer.discard()
  // Something other than the file server may have answered, so the bytes that are there stay.
  if (!isOfSize) throw different(part, `it has ${sent} bytes instead of ${size}`)
  throw clientError('UNEXPECTED-ANSWER', `The file server answered Range: bytes=${bytes}- with other bytes`)
}

/** The error of a file server that is not the service: S3 answers in XML. */
function refused({ exportId }: PartialDownload, error: unknown): unknown {
  if (!(error instanceof GrandlivreError && error.code === 'UNEXPECTED-ANSWER')) return error
  const { status } = error
  const message = `The file server answered the file of ${exportId} with status ${status}`
  return clientError('FILE-REFUSED', message, { status, cause: error })
}

/** A weak ETag says nothing about bytes. */
const strong = (etag: string | undefined) => (etag?.startsWith('W/') ? undefined : etag)

/** @returns false if this runtime cannot decompress it */
async function verifyContent(part: PartialDownload, source: DoneExport, signal: AbortSignal | undefined) {
  if (source.sha256 === source.fileSha256) return true
  // No format of the service begins so without compression.
  const beginning = Buffer.concat(await createReadStream(part.path, { end: 3 }).toArray()).toString('hex')
  const isGzip = beginning.startsWith('1f8b')
  if (!isGzip && beginning !== '28b52ffd') throw await differs(part, 'it is neither gzip nor zstd')
  if (!isGzip && typeof zlib.createZstdDecompress !== 'function') return false
  const decoder = isGzip ? zlib.createGunzip() : zlib.createZstdDecompress()
  const content = await pipeline(
    createReadStream(part.path),
    decoder,
    digestOf,
    signal ? { signal } : {},
  ).catch(async (error: Error) => {
    if (signal?.aborted) throw signal.reason
    throw await differs(part, `it cannot be decompressed (${error.message})`)
  })
  if (content.bytes === source.contentSize && content.hash.digest('hex') === source.sha256) return true
  throw await differs(part, 'its content has another size or SHA-256')
}

/** The error of a file that is not the one the service described. Its bytes are of no use to the next download. */
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
