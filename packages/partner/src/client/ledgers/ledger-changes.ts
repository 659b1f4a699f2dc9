/**
 * Reads what changed in many ledgers (docs/spec/ledgers.md#changes), in as many answers as needed. If an answer
 * breaks within a ledger, the next answer goes on where the proven rows of that ledger ended.
 */
import { type WholeTableName, wholeTables } from '../../../../contract/src/ledger-tables.ts'
import { cut, isLost } from '../http/connection.ts'
import { throughLosses } from '../reader.ts'
import type { Requests } from '../requests.ts'
import { rangesFrom } from './entry-ranges.ts'
import { framesOf } from './frames.ts'
import { LedgerAnswer, type UnfinishedLedger } from './ledger-answer.ts'
import type { LedgerChangesOptions, LedgerPart, LedgersWhole, WantedLedger } from './ledger-parts.ts'
import { askLedgers, ledgersMax, rangesMax } from './ledgers-requests.ts'

/** Longest body of a request that the service accepts. */
const bodyBytesMax = 8 * 1024 * 1024
/**
 * After this many breaks in a row at one ledger without new rows of that ledger, the other ledgers come first.
 */
const breaksMax = 3
/** After this many refusals of cursors that came with one ledger, that ledger counts as refused. */
const refusalsMax = 3

/** A ledger whose end has not come yet. */
interface Pending {
  wanted: WantedLedger
  /** What the next request asks for. After a break: the changes since the state that came. */
  asked: WantedLedger
  /** Whether the consumer has received the beginning of the ledger. */
  isBegun: boolean
  breaks: number
  /** How often a cursor that came with the ledger was refused. */
  refusals: number
  /** The furthest point that any answer reached: the index of the table, and the entry. */
  furthest: readonly [table: number, entry: number]
}

/** @throws {GrandlivreError} NOT-PROVEN; CONNECTION-LOST if a ledger does not come even after several breaks */
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

  /** The parts of one answer. Returns if the answer is whole. */
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
      // Every ledger has come with a proof of its end, so nothing is lost if the last line is missing.
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
      // After a break, the request contains the cursor that came with the ledger. Its epoch may have ended meanwhile, so
      // the request of the consumer is sent again.
      const isAfterBreak = first!.asked !== first!.wanted
      if (part.kind === 'refused' && part.code === 'ERR-CURSOR-EXPIRED' && isAfterBreak) {
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

/** Notes that the answer broke at this ledger. @returns whether the ledger came further than in any answer before */
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

/** Moves the first ledger to the end of the list. */
function* postpone(pending: Pending[], reason: string): Generator<LedgerPart> {
  const { wanted, isBegun, ...first } = pending.shift()!
  pending.push({ ...first, wanted, asked: wanted, isBegun: false, breaks: 0 })
  if (isBegun) yield { kind: 'postponed', society: wanted.society, reason }
}

/** As many of the first ledgers as fit into one request. */
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
 * The request for what is still missing of a ledger. Its last entry comes again, because some of the entry's movements
 * may be missing. A table that came in part has already replaced the table of the copy, so its digest is left out.
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
