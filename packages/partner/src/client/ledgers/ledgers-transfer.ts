/**
 * What changed in many ledgers (docs/spec/ledgers.md#changes), over as many answers as it takes: a ledger at which an
 * answer breaks goes on where its proven rows ended.
 */
import { type WholeTableName, wholeTables } from '../../../../contract/src/ledger-tables.ts'
import { cut, isLost } from '../http/connection.ts'
import { throughLosses } from '../reader.ts'
import type { Requests } from '../requests.ts'
import { rangesFrom } from './entry-ranges.ts'
import { framesOf } from './frames.ts'
import { LedgerAnswer, type UnderWay } from './ledger-answer.ts'
import { askLedgers, ledgersMax } from './ledgers-requests.ts'
import type { LedgerChangesOptions, LedgerPart, WantedLedger } from './parts.ts'

/** What the service takes in one request. */
const bodyBytesMax = 8 * 1024 * 1024
const rangesMax = 1000
/** Breaks at one ledger, without anything further of it, after which the others come first. */
const breaksMax = 3
/** Of the cursors that one ledger came with, after which the service is believed. */
const refusalsMax = 3

/** A ledger that has not come to its end. */
interface Pending {
  wanted: WantedLedger
  /** As it is asked for now: after a break, since the state that came. */
  asked: WantedLedger
  /** Whether the consumer was told of its beginning. */
  isBegun: boolean
  breaks: number
  /** How often it was put off because its own cursor was refused. */
  refusals: number
  /** How far it came in any answer: the place of its table, and the entry. */
  furthest: readonly [table: number, entry: number]
}

export class LedgersTransfer {
  readonly #requests: Requests
  readonly #options: LedgerChangesOptions
  readonly #pending: Pending[]
  #ledgers = 0
  #refusals = 0
  #reached = 0

  constructor(requests: Requests, wanted: readonly WantedLedger[], options: LedgerChangesOptions) {
    this.#requests = requests
    this.#options = options
    this.#pending = wanted.map((ledger) => ({
      wanted: ledger,
      asked: ledger,
      isBegun: false,
      breaks: 0,
      refusals: 0,
      furthest: [-1, -1],
    }))
  }

  async *parts(): AsyncGenerator<LedgerPart, void, undefined> {
    const reader = {
      connection: () => this.#connection(),
      reached: () => this.#reached,
      lost: ({ message }: Error) =>
        `The ledgers stopped coming at ${this.#pending[0]?.wanted.society}: ${message}`,
    }
    while (this.#pending.length > 0) yield* throughLosses(this.#requests, reader, this.#options.signal)
    yield { kind: 'whole', ledgers: this.#ledgers, refusals: this.#refusals }
  }

  /** One answer. Returns if it is whole. */
  async *#connection(): AsyncGenerator<LedgerPart, void, undefined> {
    const ledgers = fitting(this.#pending)
    const type = 'application/vnd.grandlivre.ledgers'
    const sent = await askLedgers(this.#requests, 'changes', type, ledgers, this.#options)
    const answer = new LedgerAnswer(ledgers, sent.headers['x-request-id'])
    try {
      for await (const frame of framesOf(sent.body, answer.fail)) {
        const part = answer.take(frame)
        if (part) yield* this.#give(part)
      }
      if (!answer.isWhole) throw cut('The answer ended without its last line')
    } catch (error) {
      if (!isLost(error)) throw error
      // Each ledger has proven its end, so the last line tells nothing more.
      if (answer.answered === ledgers.length) return
      yield* this.#afterBreak(answer.underWay, error)
      throw error
    }
  }

  *#give(part: LedgerPart): Generator<LedgerPart> {
    const pending = this.#pending[0]
    if (part.kind === 'whole') return
    if (part.kind === 'ledger') {
      yield { ...part, resumed: pending!.isBegun }
      pending!.isBegun = true
    } else if (part.kind === 'end' || part.kind === 'refused') {
      const isOurs = pending!.asked !== pending!.wanted
      // The cursor of a break can have become another epoch's; what the consumer asked with is still to be answered.
      if (part.kind === 'refused' && part.code === 'ERR-CURSOR-EXPIRED' && isOurs) {
        pending!.refusals += 1
        if (pending!.refusals < refusalsMax) return yield* this.#postpone(part.message)
      }
      this.#reached += 1
      this.#pending.shift()
      if (part.kind === 'end') this.#ledgers += 1
      else this.#refusals += 1
      yield part
    } else yield part
  }

  *#afterBreak(underWay: UnderWay | undefined, error: unknown): Generator<LedgerPart> {
    const pending = this.#pending[0]!
    if (underWay) {
      pending.asked = restOf(underWay)
      const at = [underWay.table?.place ?? -1, underWay.table?.rows.lastEntry ?? -1] as const
      const [table, entry] = pending.furthest
      if (at[0] > table || (at[0] === table && at[1] > entry)) {
        pending.furthest = at
        pending.breaks = 0
        this.#reached += 1
      }
    }
    pending.breaks += 1
    if (pending.breaks >= breaksMax && this.#pending.length > 1)
      yield* this.#postpone((error as Error).message)
  }

  *#postpone(reason: string): Generator<LedgerPart> {
    const pending = this.#pending.shift()!
    const { wanted, isBegun } = pending
    this.#pending.push({ ...pending, asked: wanted, isBegun: false, breaks: 0 })
    if (isBegun) yield { kind: 'postponed', society: wanted.society, reason }
  }
}

/** As many as one request can hold. */
function fitting(pending: readonly Pending[]): WantedLedger[] {
  const fit: WantedLedger[] = []
  let bytes = JSON.stringify({ ledgers: [] }).length
  for (const { asked } of pending.slice(0, ledgersMax)) {
    bytes += JSON.stringify(asked).length + 1
    if (fit.length > 0 && bytes > bodyBytesMax) break
    fit.push(asked)
  }
  return fit
}

/**
 * What is still to come of a ledger. Of its last entry some movements may be missing, so it comes again. A table that
 * came in part has replaced that of the copy, so its digest is named no more.
 */
function restOf({ asked, cursor, ranges, tables, table }: UnderWay): WantedLedger {
  const entries = rangesFrom(ranges, table?.rows.lastEntry ?? -1, rangesMax)
  const known: Partial<Record<WholeTableName, string>> = { ...asked.tables, ...tables }
  const partial = wholeTables.find((name) => name === table?.rows.table)
  if (partial) delete known[partial]
  return {
    society: asked.society,
    since: cursor,
    tables: known,
    ...(entries.length === 0 ? {} : { entries }),
  }
}
