/**
 * What changed since a cursor (docs/spec/changes.md#changes-since). A cut answer is read again from its start, at the
 * same state of the ledger, and what was given out is skipped after its digest was compared.
 */
import { createHash } from 'node:crypto'
import { changesHead, misfitOf } from './answer-shapes.ts'
import { agreesWithTrailers, askEnd } from './end.ts'
import { clientError, type GrandlivreError } from './errors.ts'
import { type Answer, bestEncoding, type Encoding } from './http/answer.ts'
import { cut } from './http/connection.ts'
import { throughLosses } from './http/losses.ts'
import { countLines, idOf, itemsOf, lastLineOf, WholeLines } from './lines.ts'
import { type QueryValue, type Requests, requireType } from './requests.ts'
import type { Streamed } from './selection.ts'

/** Ids of entries, both included, as decimal digits. */
export type EntryRange = [from: string, to: string]

export interface Changes<Item> {
  readonly since: string
  /** Names the state of the ledger after these changes. Keep it once they are applied. */
  readonly cursor: string
  /** Drop what the copy has of these entries, then add the lines. Ascending and disjoint; empty if nothing changed. */
  readonly ranges: EntryRange[]
  /**
   * NDJSON lines of the entries in the ranges, whole, many at a time. To be read once. Throws at the end if they are not
   * whole: apply them in a transaction, or after the end.
   */
  lines(): AsyncGenerator<Uint8Array, void, undefined>
  /** The same lines as items. */
  items(): AsyncGenerator<Item, void, undefined>
  /** Closes the connection, if the lines are not read. */
  discard(): Promise<void>
}

export interface ChangesOptions {
  /** Seconds, 0 to 30, for which the service waits for a change if there is none. */
  wait?: number | undefined
  signal?: AbortSignal | undefined
  /** How the body travels. Default: zstd where the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
}

/** Ranges that the service takes in one request. */
export const rangesMax = 100

/** @throws {GrandlivreError} ERR-CURSOR-EXPIRED if the selection has to be read in full, and other refusals */
export async function readChanges<Item>(
  requests: Requests,
  streamed: Streamed,
  query: Record<string, QueryValue>,
  since: string,
  options: ChangesOptions,
): Promise<Changes<Item>> {
  const reader = new ChangesReader(requests, { streamed, query, since, options })
  const body = reader.body()
  const { value: first } = await body.next()
  const end = first ? first.indexOf(10) + 1 : 0
  const head = parseHead(first?.subarray(0, end))
  const wrong = misfitOf(head, changesHead, 'line 1')
  if (wrong !== undefined) {
    await body.return()
    throw clientError('UNEXPECTED-ANSWER', `The changes do not begin as the service writes them: ${wrong}`)
  }
  reader.ranges = head.entries
  const rest = first?.subarray(end)
  async function* lines(): AsyncGenerator<Uint8Array, void, undefined> {
    if (rest && rest.length > 0) yield rest
    yield* body
  }
  const all = lines()
  if (head.entries.length === 0)
    for await (const more of all)
      throw clientError('NOT-PROVEN', `${countLines(more)} lines arrived although nothing has changed`)
  return {
    since,
    cursor: head.cursor,
    ranges: head.entries,
    lines: () => all,
    items: () => itemsOf<Item>(all),
    discard: async () => {
      await all.return()
      await body.return()
    },
  }
}

interface Wanted {
  streamed: Streamed
  query: Record<string, QueryValue>
  since: string
  options: ChangesOptions
}

class ChangesReader {
  ranges: EntryRange[] = []
  readonly #requests: Requests
  readonly #wanted: Wanted
  #cursor: string | undefined
  /** What was given out. */
  #given = { bytes: 0, hash: createHash('sha256') }
  #last: Uint8Array | undefined

  constructor(requests: Requests, wanted: Wanted) {
    this.#requests = requests
    this.#wanted = wanted
  }

  /** The whole body, over as many connections as needed, in whole lines. */
  body(): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = {
      connection: () => this.#connection(),
      reached: () => this.#given.bytes,
      lost: () => 'The changes stopped coming',
    }
    return throughLosses(this.#requests, reader, this.#wanted.options.signal)
  }

  async *#connection(): AsyncGenerator<Uint8Array, void, undefined> {
    const answer = await this.#open()
    const lines = new WholeLines()
    const hash = createHash('sha256')
    const repeated = createHash('sha256')
    let skip = this.#given.bytes
    let rows = -1
    for await (const chunk of answer.body) {
      hash.update(chunk)
      const whole = lines.push(chunk)
      if (!whole) continue
      rows += countLines(whole)
      const known = whole.subarray(0, skip)
      const fresh = whole.subarray(skip)
      if (skip > 0) {
        repeated.update(known)
        skip -= known.length
        if (skip === 0 && repeated.digest('hex') !== this.#given.hash.copy().digest('hex')) throw changed()
      }
      if (fresh.length === 0) continue
      this.#given.hash.update(fresh)
      this.#given.bytes += fresh.length
      this.#last = lastLineOf(fresh)
      yield fresh
    }
    if (lines.restBytes > 0 || skip > 0 || rows < 0) throw cut('The body ended in the middle')
    if (!agreesWithTrailers(answer, rows, hash)) await this.#proveEnd()
  }

  async #open(): Promise<Answer> {
    const { streamed, query: selected, since, options } = this.#wanted
    const { wait = 0, encoding = bestEncoding(), signal } = options
    // Once something was given out, the state has to stay the same.
    const isRepeated = this.#given.bytes > 0
    const query = { ...selected, since, wait: wait > 0 && !isRepeated ? wait : undefined }
    const request = { path: `/mad/${streamed}`, query, heldMs: wait * 1000, signal }
    const type = 'application/x-ndjson'
    const headers = { Accept: type, 'Accept-Encoding': encoding }
    const answer = await this.#requests.send({ ...request, headers })
    requireType(answer, type, request)
    const { 'x-ledger-cursor': cursor } = answer.headers
    if (isRepeated && cursor !== this.#cursor) {
      answer.discard()
      throw changed()
    }
    this.#cursor = cursor
    return answer
  }

  /**
   * Without trailers: asks for what the ranges have after the last line, which has to be nothing.
   * @throws {unknown} a loss, if there is more
   */
  async #proveEnd(): Promise<void> {
    if (this.ranges.length === 0) return
    const { streamed, query, options } = this.#wanted
    const isFirstLine =
      this.#last === undefined || !('producerId' in JSON.parse(new TextDecoder().decode(this.#last)))
    const after = isFirstLine ? undefined : idOf(this.#last!)
    for (let first = 0; first < this.ranges.length; first += rangesMax) {
      const entries = this.ranges.slice(first, first + rangesMax).map((range) => range.join('-'))
      const end = await askEnd(this.#requests, {
        path: `/mad/${streamed}`,
        query: { ...query, entries: entries.join(','), after },
        signal: options.signal,
      })
      if (end.cursor !== this.#cursor) throw changed()
      if (!end.isEnd) throw cut('The body ended before the last line')
    }
  }
}

function changed(): GrandlivreError {
  return clientError('LEDGER-CHANGED', 'The ledger changed while its changes were read: ask for them again')
}

/** Not JSON, so not the first line either: what has to be there is missing. */
function parseHead(line: Uint8Array | undefined): { cursor: string; entries: EntryRange[] } {
  try {
    return JSON.parse(new TextDecoder().decode(line))
  } catch {
    return {} as never
  }
}
