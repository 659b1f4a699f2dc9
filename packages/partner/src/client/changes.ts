/**
 * Reads what changed since a cursor (docs/spec/changes.md#changes-since). An answer that is cut is read again from its
 * start, at the same state of the ledger. The bytes that were already given out are compared by their digest and
 * skipped.
 */
import { createHash } from 'node:crypto'
import { changesHead, misfitOf } from './answer-shapes.ts'
import { clientError } from './errors.ts'
import type { Answer, Encoding } from './http/answer.ts'
import { cut } from './http/connection.ts'
import { countLines, idOf, itemsOf, lastLineOf } from './lines.ts'
import { LedgerChanged, linesOf, proveEnd, throughLosses } from './reader.ts'
import { type QueryValue, type Requests, sendFor } from './requests.ts'
import type { Streamed } from './selection.ts'

/** Ids of the first and last entry, both included, as decimal digits. */
export type EntryRange = [from: string, to: string]

export interface Changes<Item> {
  readonly since: string
  /** Names the state of the ledger after these changes. Store it once they are applied. */
  readonly cursor: string
  /** Drop the copy's rows of these entries, then add the lines. Ascending and disjoint; empty if nothing changed. */
  readonly ranges: EntryRange[]
  /**
   * NDJSON lines of the entries in the ranges, in chunks of many whole lines. They can be read once. If some are
   * missing, reading throws at the end: so apply the lines in a transaction, or after the end.
   */
  lines(): AsyncGenerator<Uint8Array, void, undefined>
  /** The same lines as items. */
  items(): AsyncGenerator<Item, void, undefined>
  /** Closes the connection. Call it if the lines are not read. */
  discard(): Promise<void>
}

export interface ChangesOptions {
  /** Seconds, 0 to 30, for which the service waits for a change if there is none yet. */
  wait?: number | undefined
  signal?: AbortSignal | undefined
  /** Compression of the body. Default: zstd if the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
}

/** Most ranges that the service accepts in one request. */
export const rangesMax = 100

/** @throws {GrandlivreError} ERR-CURSOR-EXPIRED if the selection has to be read in full; other refusals of the service */
export async function readChanges<Item>(
  requests: Requests,
  streamed: Streamed,
  query: Record<string, QueryValue>,
  since: string,
  options: ChangesOptions,
): Promise<Changes<Item>> {
  const announced: EntryRange[] = []
  const body = linesOfChanges(requests, { path: `/mad/${streamed}`, query }, since, announced, options)
  const { value: first } = await body.next()
  const end = first ? first.indexOf(10) + 1 : 0
  const head = parseHead(first?.subarray(0, end))
  const wrong = misfitOf(head, changesHead, 'line 1')
  if (wrong !== undefined) {
    await body.return()
    throw clientError('UNEXPECTED-ANSWER', `The changes do not begin as the service writes them: ${wrong}`)
  }
  const { cursor, entries: ranges } = head
  announced.push(...ranges)
  const rest = first?.subarray(end)
  async function* lines(): AsyncGenerator<Uint8Array, void, undefined> {
    if (rest && rest.length > 0) yield rest
    yield* body
  }
  const all = lines()
  if (ranges.length === 0)
    for await (const more of all)
      throw clientError('NOT-PROVEN', `${countLines(more)} lines arrived although nothing has changed`)
  return {
    ...{ since, cursor, ranges },
    lines: () => all,
    items: () => itemsOf<Item>(all),
    discard: async () => {
      await all.return()
      await body.return()
    },
  }
}

/**
 * Reads the whole body, over as many connections as needed.
 * @param announced an empty list. The caller adds the ranges once it has read the first line
 */
function linesOfChanges(
  requests: Requests,
  selected: { path: string; query: Record<string, QueryValue> },
  since: string,
  announced: readonly EntryRange[],
  { wait = 0, encoding, signal }: ChangesOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let cursor: string | undefined
  const given = { bytes: 0, hash: createHash('sha256') }
  /** The last line that was given out, except the first line of the body. */
  let last: Uint8Array | undefined

  async function open(): Promise<Answer> {
    // After bytes were given out, the next answer must show the same state.
    const isRepeated = given.bytes > 0
    const query = { ...selected.query, since, wait: wait > 0 && !isRepeated ? wait : undefined }
    const request = { ...selected, query, heldMs: wait * 1000, signal }
    const answer = await sendFor(requests, 'application/x-ndjson', encoding, request)
    const { 'x-ledger-cursor': shown } = answer.headers
    if (isRepeated && shown !== cursor) {
      answer.discard()
      throw changed()
    }
    cursor = shown
    return answer
  }

  async function* connection(): AsyncGenerator<Uint8Array, void, undefined> {
    const answer = await open()
    const repeated = createHash('sha256')
    let skip = given.bytes
    const take = (lines: Uint8Array, count: number) => {
      const known = lines.subarray(0, skip)
      const fresh = lines.subarray(skip)
      if (skip > 0) {
        repeated.update(known)
        skip -= known.length
        if (skip === 0 && repeated.digest('hex') !== given.hash.copy().digest('hex')) throw changed()
      }
      if (fresh.length === 0) return undefined
      if (given.bytes > 0 || count > 1) last = lastLineOf(fresh)
      given.hash.update(fresh)
      given.bytes += fresh.length
      return fresh
    }
    const isProven = yield* linesOf(answer, { take, headLines: 1 })
    if (skip > 0 || given.bytes === 0) throw cut('The body ended in the middle')
    if (isProven) return
    const after = last && idOf(last)
    for (let first = 0; first < announced.length; first += rangesMax) {
      const entries = joinedRanges(announced.slice(first, first + rangesMax))
      const question = { path: selected.path, query: { ...selected.query, entries, after }, signal }
      await proveEnd(requests, question, cursor, changed)
    }
  }
  const lost = ({ message }: Error) => `The changes stopped coming: ${message}`
  return throughLosses(requests, { connection, reached: () => given.bytes, lost }, signal)
}

/** Ranges in the form of the parameter `entries`. */
export const joinedRanges = (ranges: readonly EntryRange[]): string =>
  ranges.map((range) => range.join('-')).join(',')

const changed = () => new LedgerChanged('The ledger changed while its changes were read: ask for them again')

/** Reads the first line. If it is not JSON, returns an object without members. */
function parseHead(line: Uint8Array | undefined): { cursor: string; entries: EntryRange[] } {
  try {
    return JSON.parse(new TextDecoder().decode(line))
  } catch {
    return {} as never
  }
}
