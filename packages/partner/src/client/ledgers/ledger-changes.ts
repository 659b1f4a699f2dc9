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
import { LedgerAnswer, type UnfinishedLedger } from './ledger-answer.ts'
import type { LedgerChangesOptions, LedgerPart, LedgersWhole, WantedLedger } from './ledger-parts.ts'
import { askLedgers, ledgersMax } from './ledgers-requests.ts'

/** Longest body that the service takes in one request. */
const bodyBytesMax = 8 * 1024 * 1024
const rangesMax = 1000
/** Breaks in a row at one ledger, without further rows of it, after which the other ledgers come first. */
const breaksMax = 3
/** Refusals of cursors that came with a ledger, after which the ledger counts as refused. */
const refusalsMax = 3

/** A ledger that has not come to its end. */
interface Pending {
  wanted: WantedLedger
  /** What is asked for now: after a break, changes since the state that came. */
  asked: WantedLedger
  /** Whether the consumer has got its beginning. */
  isBegun: boolean
  breaks: number
  /** Refusals of a cursor that came with it. */
  refusals: number
  /** How far it came in any answer: the place of its table, and the entry. */
  furthest: readonly [table: number, entry: number]
}

/** @throws {GrandlivreError} NOT-PROVEN; CONNECTION-LOST at the ledger that does not come */
export async function* readLedgerChanges(
  requests: Requests,
  wanted: readonly WantedLedger[],
  options: LedgerChangesOptions,
): AsyncGenerator<LedgerPart, void, undefined> {
  const pending = wanted.map(
    (ledger): Pending => ({
      ...{ wanted: ledger, asked: ledger, isBegun: false },
      ...{ breaks: 0, refusals: 0, furthest: [-1, -1] },
    }),
  )
  const whole: LedgersWhole = { kind: 'whole', ledgers: 0, refusals: 0 }
  let reached = 0

  /** One answer. Returns if it is whole. */
  async function* connection(): AsyncGenerator<LedgerPart, void, undefined> {
    const ledgers = fitting(pending)
    const type = 'application/vnd.grandlivre.ledgers'
    const sent = await askLedgers(requests, 'changes', type, ledgers, options)
    const answer = new LedgerAnswer(ledgers, sent.headers['x-request-id'])
    try {
      for await (const frame of framesOf(sent.body, answer.fail)) {
        const part = answer.take(frame)
        if (part) yield* give(part)
      }
      if (!answer.isWhole) throw cut('The answer ended without its last line')
    } catch (error) {
      if (!isLost(error)) throw error
      // Each ledger has proven its end, so the last line tells nothing more.
      if (answer.answered === ledgers.length) return
      const [first] = pending
      if (isFurther(first!, answer.underWay)) reached += 1
      if (first!.breaks >= breaksMax && pending.length > 1) yield* postpone(pending, (error as Error).message)
      throw error
    }
  }

  function* give(part: LedgerPart): Generator<LedgerPart> {
    const [first] = pending
    if (part.kind === 'whole') return
    if (part.kind === 'ledger') {
      yield { ...part, resumed: first!.isBegun }
      first!.isBegun = true
      return
    }
    if (part.kind === 'end' || part.kind === 'refused') {
      const isOurs = first!.asked !== first!.wanted
      // The cursor of a break can have become another epoch's; what the consumer asked with is still to be answered.
      if (part.kind === 'refused' && part.code === 'ERR-CURSOR-EXPIRED' && isOurs) {
        first!.refusals += 1
        if (first!.refusals < refusalsMax) return yield* postpone(pending, part.message)
      }
      reached += 1
      pending.shift()
      whole[part.kind === 'end' ? 'ledgers' : 'refusals'] += 1
    }
    yield part
  }

  const lost = ({ message }: Error) =>
    `The ledgers stopped coming at ${pending[0]?.wanted.society}: ${message}`
  const reader = { connection, reached: () => reached, lost }
  while (pending.length > 0) yield* throughLosses(requests, reader, options.signal)
  yield whole
}

/** Notes a break of the answer at this ledger. @returns whether it came further than in any answer before */
function isFurther(pending: Pending, underWay: UnfinishedLedger | undefined): boolean {
  pending.breaks += 1
  if (!underWay) return false
  pending.asked = restOf(underWay)
  const [table, entry] = pending.furthest
  const at = [underWay.table?.place ?? -1, underWay.table?.rows.lastEntry ?? -1] as const
  if (at[0] < table || (at[0] === table && at[1] <= entry)) return false
  pending.furthest = at
  pending.breaks = 1
  return true
}

/** Puts the first ledger last. */
function* postpone(pending: Pending[], reason: string): Generator<LedgerPart> {
  const { wanted, isBegun, ...first } = pending.shift()!
  pending.push({ ...first, wanted, asked: wanted, isBegun: false, breaks: 0 })
  if (isBegun) yield { kind: 'postponed', society: wanted.society, reason }
}

/** The first ledgers, as many as one request can hold. */
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
function restOf({ asked, cursor, ranges, tables, table }: UnfinishedLedger): WantedLedger {
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
