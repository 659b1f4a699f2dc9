/** Writes the parts of a stream into a copy, each ledger in one transaction from its first part to its last. */
import type { EntryRange } from '../client/changes.ts'
import { GrandlivreError } from '../client/errors.ts'
import { commonOf, unionOf } from '../client/ledgers/entry-ranges.ts'
import type {
  Ledger,
  LedgerBegin,
  LedgerEnd,
  LedgerPart,
  WantedLedger,
} from '../client/ledgers/ledger-parts.ts'
import type { CopiedFolder, Copy, LedgerChange } from './copy.ts'
import type { CopiedLedger, Run, Summary } from './events.ts'

export const now = () => new Date().toISOString()

/** Codes with which the service refuses a cursor, for example because it belongs to another epoch. */
const cursorRefused = ['ERR-VALIDATION', 'ERR-CURSOR-EXPIRED']

/** Whether the accounts of a ledger show employees, in the words of the diary. */
export const employeesOf = ({ employees }: Ledger) => (employees ? 'shown' : 'hidden')

const firmOf = ({ firm }: Ledger) => ({ firm_id: firm.id, firm_name: firm.name })

/** The members of the diary that say that a ledger came whole. */
export const noFailure = { failed_at: null, failure: null }

/** Most characters of a failure's message that the diary keeps. */
const failureLengthMax = 1_000

/** A run with the ledgers that it covers, by their folders, and its results so far. */
export interface ListedRun {
  run: Run
  listed: ReadonlyMap<string, Ledger>
  summary: Summary
}

/** The ledger of the open transaction, or of one that is being opened. */
interface LedgerUnderWay extends Pick<LedgerChange, 'rows_before' | 'rows_after'> {
  begun: LedgerBegin
  /** The entries whose movements were dropped. */
  entries: EntryRange[]
  startedAt: number
  /** Number of tables that came whole. */
  tables: number
}

/**
 * Writes what comes for the requested ledgers.
 * @param outside for each ledger, ranges to drop in addition to those that come
 * @returns ledgers whose cursor was refused
 */
export async function receive(
  listedRun: ListedRun,
  requests: readonly WantedLedger[],
  outside: ReadonlyMap<string, EntryRange[]> = new Map(),
): Promise<string[]> {
  const { run, listed, summary } = listedRun
  const { copy, ledger, encoding, signal } = run
  const kept = new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  const refused: string[] = []
  /** Ledgers that have not come yet, in the order in which they come. */
  const left = new Map(requests.map((request) => [request.society, request]))
  let underWay: LedgerUnderWay | undefined
  const closed = (society: string) => {
    underWay = undefined
    left.delete(society)
  }
  const giveUp = async (society: string, code: string, message: string) => {
    await copy.rollback()
    const isUpdate = left.get(society)?.since !== undefined
    closed(society)
    if (isUpdate && cursorRefused.includes(code)) refused.push(society)
    else await fail(listedRun, society, code, message)
  }
  const take = async (part: LedgerPart) => {
    if (part.kind === 'ledger') {
      underWay ??= {
        begun: part,
        entries: outside.get(part.society) ?? [],
        startedAt: performance.now(),
        rows_before: 0,
        rows_after: 0,
        tables: 0,
      }
      await begin(copy, part, underWay)
    } else if (part.kind === 'table') {
      if (part.table !== 'movements') underWay!.tables += 1
      await copy.table(part.table)
    } else if (part.kind === 'rows') {
      if (part.table === 'movements') underWay!.rows_after += part.rows
      await copy.rows(part.bytes)
      run.onEvent?.({ kind: 'rows', rows: part.rows })
    } else if (part.kind === 'end') {
      const { society } = part
      const copied = await commit(copy, part, underWay!, listed.get(society)!, kept.get(society))
      closed(society)
      summary.copied += 1
      summary.rows += copied.rows_after
      run.onEvent?.(copied)
    } else if (part.kind === 'refused') await giveUp(part.society, part.code, part.message)
    else if (part.kind === 'postponed') {
      await copy.rollback()
      const request = left.get(part.society)!
      closed(part.society)
      left.set(part.society, request)
    }
  }
  while (left.size > 0)
    try {
      for await (const part of ledger.ledgerChanges([...left.values()], { encoding, signal }))
        await take(part)
    } catch (error) {
      await copy.rollback()
      const { code, message } = error as GrandlivreError
      const society = underWay?.begun.society ?? [...left.keys()][0]
      if (signal?.aborted || society === undefined) throw error
      // Wrong data concerns only this ledger; the others go on.
      if (code === 'NOT-PROVEN') await giveUp(society, code, message)
      else {
        // A failed ledger comes last in the next run, so that it does not hold up the others.
        const isOfLedger = code === 'CONNECTION-LOST' || !(error instanceof GrandlivreError)
        if (isOfLedger && underWay) await giveUp(society, code, message).catch(() => {})
        throw error
      }
    }
  return refused
}

/** Opens the transaction, or goes on with it after a break. Drops the movements of the entries that come. */
async function begin(copy: Copy, { society, resumed, ranges }: LedgerBegin, underWay: LedgerUnderWay) {
  if (resumed) {
    // First drops the rows that came before the break and come again, then those of entries that have changed since.
    underWay.rows_after -= await copy.dropEntries(commonOf(underWay.entries, ranges))
    underWay.rows_before += await copy.dropEntries(ranges)
  } else {
    await copy.begin(society)
    underWay.rows_before = await copy.dropEntries([...underWay.entries, ...ranges])
  }
  underWay.entries = unionOf(underWay.entries, ranges)
}

async function commit(
  copy: Copy,
  { society, cursor, tables: table_digests }: LedgerEnd,
  { begun, entries, startedAt, rows_before, rows_after, tables }: LedgerUnderWay,
  listed: Ledger,
  kept: CopiedFolder | undefined,
): Promise<CopiedLedger> {
  const since = begun.since === null ? null : (kept?.cursor ?? null)
  const employees = employeesOf(listed)
  const at = now()
  // If verify repairs rows at the same state, the ledger itself has not changed.
  const isSame = since === cursor && kept?.employees === employees
  const isChanged = !isSame && (entries.length > 0 || tables > 0)
  const change = { at, cursor, entries, rows_before, rows_after }
  await copy.commit(
    {
      ...firmOf(listed),
      ...{ cursor, employees, table_digests, synced_at: at, gone_at: null, ...noFailure },
      ...(isChanged ? { changed_at: at } : {}),
    },
    isChanged ? change : null,
  )
  const ms = performance.now() - startedAt
  return { kind: 'copied', society, name: listed.name, since, ms, ...change }
}

/** Notes that a ledger did not come. Its former rows and cursor stay in the copy. */
export async function fail(
  { run, listed, summary }: ListedRun,
  society: string,
  code: string,
  message: string,
): Promise<void> {
  const failure = `${code}: ${message}`.slice(0, failureLengthMax)
  await run.copy.note([society], { ...firmOf(listed.get(society)!), failed_at: now(), failure })
  summary.failed.push(society)
  run.onEvent?.({ kind: 'failed', society, code, message })
}
