/**
 * What changed since a cursor (docs/spec/changes.md#changes-since). A cut answer is read again from its start, at the
 * same state of the ledger, and what was given out is skipped after its digest was compared.
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
 * The whole body, over as many connections as needed.
 * @param announced the ranges of the first line, once it was read
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
  /** The last line given out, if it is not the first of the body. */
  let last: Uint8Array | undefined

  async function open(): Promise<Answer> {
    // Once something was given out, the state has to stay the same.
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

/** As the parameter `entries` takes them. */
export const joinedRanges = (ranges: readonly EntryRange[]): string =>
  ranges.map((range) => range.join('-')).join(',')

const changed = () => new LedgerChanged('The ledger changed while its changes were read: ask for them again')

/** Not JSON, so not the first line either: what has to be there is missing. */
function parseHead(line: Uint8Array | undefined): { cursor: string; entries: EntryRange[] } {
  try {
    return JSON.parse(new TextDecoder().decode(line))
  } catch {
    return {} as never
  }
}
