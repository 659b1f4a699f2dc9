/**
 * Downloads the file of a full export. A cut, a stall and a kill are resumed with `Range`; the file gets its name when
 * its bytes, and those of its content, have the hashes that the service stated.
 */
import { clientError, GrandlivreError } from '../errors.ts'
import { isLost } from '../http/connection.ts'
import { type Answer, failureOf, type Requests } from '../requests.ts'
import { canDecompress, compressionOf, readContent } from './content.ts'
import { PartFile, type PartIdentity } from './part-file.ts'

/** The file as the status of its export describes it. */
export interface ExportFile extends PartIdentity {
  url: string
  /** Bytes and SHA-256 (hexadecimal) after decompression: those of the file if it is not compressed. */
  contentSize: number
  sha256: string
}

export interface DownloadProgress {
  /** Of the file, on disk. */
  bytes: number
  size: number
  /** Answers of the file server so far. */
  connections: number
}

export interface DownloadOptions {
  /** Ends the download. What has arrived is kept for the next time. */
  signal?: AbortSignal | undefined
  /** Called for each piece. */
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

/** What a transfer needs. */
interface Wanted {
  requests: Requests
  source: ExportFile
  part: PartFile
  /** Reads the status again: addresses are valid for an hour. */
  renewUrl: (signal: AbortSignal | undefined) => Promise<string>
  options: DownloadOptions
}

/** Downloads of the same bytes: two different results in a row are no accident of the disk. */
const triesMax = 2

/**
 * @param file its name; an existing file is replaced at the end
 * @throws {GrandlivreError} FILE-DIFFERS, FILE-REFUSED, FILE-NOT-WRITTEN, CONNECTION-LOST, or of the service
 */
export async function downloadFile(
  requests: Requests,
  source: ExportFile,
  file: string,
  renewUrl: Wanted['renewUrl'],
  options: DownloadOptions,
): Promise<Downloaded> {
  const part = await PartFile.open(file, source, options.signal)
  try {
    const transfer = new Transfer({ requests, source, part, renewUrl, options })
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
    const { connections, restarts } = transfer
    const { size, fileSha256, contentSize, sha256 } = source
    const stated = { bytes: size, fileSha256, contentBytes: contentSize, sha256 }
    return { file, ...stated, isContentVerified, keptBytes, connections, restarts }
  } finally {
    await part.close()
  }
}

/** From the bytes that a part has to all of them. */
class Transfer {
  connections = 0
  restarts = 0
  readonly #wanted: Wanted
  readonly #part: PartFile
  #url: string
  /** The address is a new one that has not given a byte yet. */
  #isRenewed = false

  constructor(wanted: Wanted) {
    this.#wanted = wanted
    this.#part = wanted.part
    this.#url = wanted.source.url
  }

  async run(): Promise<void> {
    let attempts = 0
    while (this.#part.bytes < this.#wanted.source.size) {
      const before = this.#part.bytes
      try {
        const answer = await this.#ask()
        this.connections += 1
        await this.#receive(answer)
      } catch (error) {
        attempts = this.#part.bytes > before ? 1 : attempts + 1
        await this.#recover(error, attempts)
      }
    }
  }

  async restart(reason: string): Promise<void> {
    await this.#part.beginAgain()
    this.report(reason)
  }

  /** Bytes were dropped. */
  report(reason: string): void {
    this.restarts += 1
    this.#wanted.options.onRestart?.(reason)
  }

  #ask(): Promise<Answer> {
    const { bytes, etag } = this.#part
    const range = { Range: `bytes=${bytes}-`, ...(etag === undefined ? {} : { 'If-Range': etag }) }
    // What is stored is asked for, and not compressed once more on the way.
    const headers = { 'Accept-Encoding': 'identity', ...(bytes > 0 ? range : {}) }
    const { requests, options } = this.#wanted
    return requests.send({ url: this.#url, headers, signal: options.signal })
  }

  async #receive(answer: Answer): Promise<void> {
    const { source, options } = this.#wanted
    const { size } = source
    const begins = await this.#beginningOf(answer)
    if (begins !== this.#part.bytes) await this.restart('The file server sent the file from its beginning')
    if (this.#part.bytes === 0) await this.#part.remember(strong(answer.headers['etag']))
    for await (const chunk of answer.body) {
      if (this.#part.bytes + chunk.length > size) {
        answer.discard()
        throw await differs(this.#part, `it has more than ${size} bytes`)
      }
      await this.#part.append(chunk)
      this.#isRenewed = false
      options.onProgress?.({ bytes: this.#part.bytes, size, connections: this.connections })
    }
    if (this.#part.bytes < size)
      throw Object.assign(new Error('The file ended early'), { code: 'ECONNRESET' })
  }

  /** Where in the file the body begins: at the bytes that are there, or at its first. */
  async #beginningOf(answer: Answer): Promise<number> {
    const { bytes } = this.#part
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers['content-range'] ?? '') ?? []
    const begins = answer.status === 206 ? Number(from) : 0
    const size = answer.status === 206 ? total : answer.headers['content-length']
    if (size !== undefined && Number(size) !== this.#wanted.source.size) {
      answer.discard()
      // What answers may be something else, so the bytes that are there stay.
      throw different(this.#part, `it has ${size} bytes instead of ${this.#wanted.source.size}`)
    }
    if (begins === bytes || begins === 0) return begins
    answer.discard()
    throw clientError('UNEXPECTED-ANSWER', `The file server answered Range: bytes=${bytes}- with other bytes`)
  }

  /** @throws {unknown} the error, if another attempt would not help */
  async #recover(error: unknown, attempts: number): Promise<void> {
    const { requests, options, renewUrl } = this.#wanted
    const { signal } = options
    if (signal?.aborted) throw signal.reason
    const { status = 0, cause } = error instanceof GrandlivreError ? error : {}
    // The request has been repeated already.
    if (status === 0 && isLost(cause)) throw this.#lost(cause)
    if (attempts >= requests.attemptsMax) throw isLost(error) ? this.#lost(error) : error
    if (isLost(error)) return requests.pause('The download was cut', attempts, signal)
    if (status === 416) return this.restart('The file server has fewer bytes than were there')
    // The address is too old, in the words of the service and of S3. A new one that is refused, too, stays so.
    if ((status !== 403 && status !== 410) || this.#isRenewed) throw this.#refused(error, status)
    this.#url = await renewUrl(signal)
    this.#isRenewed = true
  }

  /** S3 has words of its own. */
  #refused(error: unknown, status: number): unknown {
    if (!(error instanceof GrandlivreError) || error.code !== 'UNEXPECTED-ANSWER') return error
    const message = `The file server answered the file of ${this.#part.exportId} with status ${status}`
    return clientError('FILE-REFUSED', message, { status, cause: error })
  }

  #lost(cause: unknown): GrandlivreError {
    const { message } = failureOf({ url: this.#url }, cause)
    const { bytes } = this.#part
    const kept = `${bytes} of ${this.#wanted.source.size} bytes are kept: the same download goes on there`
    return clientError('CONNECTION-LOST', `${message}; ${kept}`, { cause })
  }
}

/** A weak ETag says nothing about bytes. */
const strong = (etag: string | undefined) => (etag?.startsWith('W/') ? undefined : etag)

async function verifyContent(part: PartFile, source: ExportFile, signal: AbortSignal | undefined) {
  if (source.sha256 === source.fileSha256) return true
  const compression = await compressionOf(part.path)
  if (!compression) throw await differs(part, 'it is neither gzip nor zstd')
  if (!canDecompress(compression)) return false
  let content: { bytes: number; sha256: string }
  try {
    content = await readContent(part.path, compression, signal)
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw await differs(part, `it cannot be decompressed (${(error as Error).message})`)
  }
  if (content.bytes === source.contentSize && content.sha256 === source.sha256) return true
  throw await differs(part, 'its content has another size or SHA-256')
}

/** The error of a file that is not the one the service described. Its bytes are of no use to the next download. */
async function differs(part: PartFile, what: string): Promise<GrandlivreError> {
  await part.remove()
  return different(part, what)
}

function different({ exportId }: PartFile, what: string): GrandlivreError {
  return clientError(
    'FILE-DIFFERS',
    `The file of ${exportId} is not the one that its status describes: ${what}`,
  )
}
