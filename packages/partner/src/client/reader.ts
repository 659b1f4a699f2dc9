/**
 * Reads an answer over as many connections as needed: where a connection is lost, the next one goes on. Reading fails
 * after several connections in a row that brought nothing. Also proves that lines are whole.
 */
import { createHash } from 'node:crypto'
import { clientError, GrandlivreError } from './errors.ts'
import type { Answer } from './http/answer.ts'
import { cut, isLost } from './http/connection.ts'
import { countLines, WholeLines } from './lines.ts'
import { type Request, type Requests, sendFor } from './requests.ts'

/**
 * Gives out what a reader reads over all its connections.
 * @throws {GrandlivreError} CONNECTION-LOST after too many failed attempts in a row; other errors unchanged
 */
export async function* throughLosses<Part>(
  requests: Requests,
  reader: {
    /**
     * What the next connection brings. Returns if nothing is missing any more, and throws a loss if something is.
     */
    connection(): AsyncGenerator<Part, void, undefined>
    /** A number that grows whenever a connection brings something. */
    reached(): number
    /** The message of CONNECTION-LOST, such as `The changes stopped coming: aborted`. */
    lost(cause: Error): string
    /**
     * Whether to throw CONNECTION-LOST in place of this CONNECTION-FAILED, because a later reader can go on with what
     * came.
     */
    isResumable?(error: GrandlivreError): boolean
  },
  signal: AbortSignal | undefined,
): AsyncGenerator<Part, void, undefined> {
  const lost = (cause: Error) => clientError('CONNECTION-LOST', reader.lost(cause), { cause })
  for (let attempt = 0; ; ) {
    const before = reader.reached()
    try {
      return yield* reader.connection()
    } catch (thrown) {
      signal?.throwIfAborted()
      const error = thrown as Error
      if (error instanceof GrandlivreError)
        throw error.code === 'CONNECTION-FAILED' && reader.isResumable?.(error) ? lost(error) : error
      // For example an error of the disk or of the caller's callback.
      if (!isLost(error)) throw error
      attempt = reader.reached() > before ? 1 : attempt + 1
      if (attempt >= requests.attemptsMax) throw lost(error)
      await requests.pause(error.message, attempt, signal)
    }
  }
}

/** The ledger is no longer in the state that is being read. */
export class LedgerChanged extends GrandlivreError {
  constructor(message: string) {
    super('LEDGER-CHANGED', message)
  }
}

interface LinesOptions {
  /** @returns the lines to give out; undefined for none */
  take(lines: Uint8Array, rows: number): Uint8Array | undefined
  /** Number of lines at the beginning that are not rows. Default: 0. */
  headLines?: number
  /** Whether the request asked for the digest of the body. */
  isHashed?: boolean
  /** Number of bytes to gather before lines are given out. */
  gatherBytes?: number
  /** Called if a trailer is missing, before the trailers that came are compared. */
  onMissingTrailer?(): void
}

/**
 * Gives out the whole lines of one answer.
 * @returns whether its trailers prove it; false if they did not come
 * @throws {unknown} NOT-PROVEN if a trailer does not agree, or if the row count came without the digest; a loss if the
 *   body ends within a line
 */
export async function* linesOf(
  answer: Answer,
  { take, headLines = 0, isHashed = true, gatherBytes = 0, onMissingTrailer }: LinesOptions,
): AsyncGenerator<Uint8Array, boolean, undefined> {
  const lines = new WholeLines({ gatherBytes })
  const hash = isHashed ? createHash('sha256') : undefined
  let rows = -headLines
  const give = (whole: Uint8Array | undefined) => {
    if (!whole) return undefined
    const count = countLines(whole)
    rows += count
    return take(whole, count)
  }
  let given: Uint8Array | undefined
  try {
    for await (const chunk of answer.body) {
      hash?.update(chunk)
      given = give(lines.push(chunk))
      if (given) yield given
    }
  } catch (error) {
    // Lines that came before a cut are given out, as they are not requested again.
    given = isLost(error) ? give(lines.flush()) : undefined
    if (given) yield given
    throw error
  }
  given = give(lines.flush())
  if (given) yield given
  const { 'x-row-count': rowsSent, 'x-content-sha256': sha256Sent } = answer.trailers()
  if (hash && (rowsSent === undefined || sha256Sent === undefined)) onMissingTrailer?.()
  const fail = (message: string) =>
    clientError('NOT-PROVEN', message, { requestId: answer.headers['x-request-id'] })
  if (rowsSent !== undefined && rowsSent !== String(rows))
    throw fail(`${rows} rows arrived, and the trailer X-Row-Count says ${rowsSent}`)
  if (hash && sha256Sent !== undefined && sha256Sent !== hash.digest('hex'))
    throw fail('What arrived differs from the trailer X-Content-SHA256')
  // A row count proves no byte, and the proxy that removed the digest may have changed the bytes, too.
  if (hash && rowsSent !== undefined && sha256Sent === undefined)
    throw fail('The trailer X-Row-Count came without X-Content-SHA256, so what arrived cannot be proven')
  if (lines.restBytes > 0) throw cut('The body ended in the middle of a line')
  return rowsSent !== undefined
}

/**
 * Throws LEDGER-CHANGED if the service refused a request for the lines after an id: the id may have been deleted with
 * its entry. Throws every other error unchanged.
 */
export const throwChanged = (changed: () => LedgerChanged) => (error: unknown) => {
  const isRefused =
    error instanceof GrandlivreError &&
    (error.status === 412 || error.issues.some(({ parameter }) => parameter === 'after'))
  throw isRefused ? changed() : error
}

/**
 * Proves lines that came without trailers: requests what comes after the last line, which must be nothing. It requests
 * JSON, in which nothing is `[]`: a body that was cut on the way may be empty, but is never `[]`.
 * @param question a request whose query has `after`, the last id that arrived
 * @param cursor names the state that is being read
 * @throws {unknown} a loss if there is more to come
 */
export async function proveEnd(
  requests: Requests,
  question: Pick<Request, 'path' | 'query' | 'headers' | 'signal'>,
  cursor: string | undefined,
  changed: () => LedgerChanged,
): Promise<void> {
  const asked = sendFor(requests, 'application/json', 'identity', question)
  const answer = await asked.catch(throwChanged(changed))
  let text = ''
  for await (const chunk of answer.body) {
    text += new TextDecoder().decode(chunk)
    if (text.length > 2) break
  }
  if (answer.headers['x-ledger-cursor'] !== cursor) throw changed()
  if (text.trim() !== '[]') throw cut('The body ended before the last line')
}
