/** Writes the parts of a stream into a copy: each ledger in a transaction, from its first part to its end. */
import type { EntryRange } from '../client/changes.ts'
import { GrandlivreError } from '../client/errors.ts'
import { commonOf, unionOf } from '../client/ledgers/entry-ranges.ts'
import type {
  Ledger,
  LedgerBegin,
  LedgerEnd,
  ProvenRows,
  TableBegin,
  WantedLedger,
} from '../client/ledgers/parts.ts'
import type { CopiedFolder, Copy } from './copy.ts'
import type { CopiedLedger, Run, Summary } from './events.ts'

export const now = () => new Date().toISOString()

/** The service does not take the cursor: it is of another epoch, for one. */
const cursorRefused = ['ERR-VALIDATION', 'ERR-CURSOR-EXPIRED']

/** What the diary says of them. */
export const employeesOf = ({ employees }: Ledger) => (employees ? 'shown' : 'hidden')

/** Of a text of the service that is kept. */
const failureLengthMax = 1_000

class LedgerReceiver {
  readonly #copy: Copy
  readonly #listed: ReadonlyMap<string, Ledger>
  readonly #kept: ReadonlyMap<string, CopiedFolder>
  readonly #outside: ReadonlyMap<string, EntryRange[]>
  #begun: LedgerBegin | undefined
  #startedAt = 0
  #before = 0
  #after = 0
  #cameTables = 0

  /** @param kept folders of the copy */
  constructor(
    copy: Copy,
    listed: ReadonlyMap<string, Ledger>,
    kept: ReadonlyMap<string, CopiedFolder>,
    outside: ReadonlyMap<string, EntryRange[]>,
  ) {
    this.#copy = copy
    this.#listed = listed
    this.#kept = kept
    this.#outside = outside
  }

  /** @returns what was copied, at the end of a ledger */
  async take(part: LedgerBegin | TableBegin | ProvenRows | LedgerEnd): Promise<CopiedLedger | undefined> {
    switch (part.kind) {
      case 'ledger':
        await this.#begin(part)
        return
      case 'table':
        if (part.table !== 'movements') this.#cameTables += 1
        await this.#copy.table(part.table)
        return
      case 'rows': {
        const { buffer, byteOffset, byteLength } = part.bytes
        if (part.table === 'movements') this.#after += part.rows
        await this.#copy.rows(Buffer.from(buffer, byteOffset, byteLength))
        return
      }
      case 'end':
        return this.#end(part)
    }
  }

  async #begin(part: LedgerBegin): Promise<void> {
    if (part.resumed) {
      const { ranges } = this.#begun!
      // Rows that came before the break and come again, then those of entries that have changed since.
      this.#after -= await this.#copy.dropEntries(commonOf(ranges, part.ranges))
      this.#before += await this.#copy.dropEntries(part.ranges)
      this.#begun = { ...this.#begun!, ranges: unionOf(ranges, part.ranges) }
      return
    }
    this.#begun = part
    this.#startedAt = performance.now()
    this.#after = 0
    this.#cameTables = 0
    await this.#copy.begin(part.society)
    this.#before = await this.#copy.dropEntries([...(this.#outside.get(part.society) ?? []), ...part.ranges])
  }

  async #end({ society, cursor, tables }: LedgerEnd): Promise<CopiedLedger> {
    const begun = this.#begun!
    const entries = unionOf(this.#outside.get(society) ?? [], begun.ranges)
    const kept = this.#kept.get(society)
    const since = begun.since === null ? null : (kept?.cursor ?? null)
    const listed = this.#listed.get(society)!
    const { firm, name } = listed
    const employees = employeesOf(listed)
    const at = now()
    const [rows_before, rows_after] = [this.#before, this.#after]
    // What verify mends are rows of the same state.
    const isSame = since === cursor && kept?.employees === employees
    const isChanged = !isSame && (entries.length > 0 || this.#cameTables > 0)
    await this.#copy.commit(
      {
        firm_id: firm.id,
        firm_name: firm.name,
        cursor,
        employees,
        table_digests: tables,
        synced_at: at,
        ...(isChanged ? { changed_at: at } : {}),
        gone_at: null,
        failed_at: null,
        failure: null,
      },
      isChanged ? { at, cursor, entries, rows_before, rows_after } : null,
    )
    const ms = performance.now() - this.#startedAt
    return { kind: 'copied', at, society, name, since, cursor, entries, rows_before, rows_after, ms }
  }
}

/**
 * @param outside ranges of each ledger to be dropped besides those that come
 * @returns ledgers whose cursor was refused
 */
export async function receive(
  run: Run,
  requests: WantedLedger[],
  listed: ReadonlyMap<string, Ledger>,
  summary: Summary,
  outside: ReadonlyMap<string, EntryRange[]> = new Map(),
): Promise<string[]> {
  const { copy, ledger, encoding, signal } = run
  const since = new Set(requests.filter((one) => one.since !== undefined).map(({ society }) => society))
  const refused: string[] = []
  const kept = new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  const receiver = new LedgerReceiver(copy, listed, kept, outside)
  /** Those that are still to come, in this order. */
  let left = requests
  /** The one that has begun to come. */
  let begun: string | undefined
  const end = async (society: string, code: string, message: string) => {
    await copy.rollback()
    if (since.has(society) && cursorRefused.includes(code)) {
      refused.push(society)
      return
    }
    await fail(run, listed.get(society)!, summary, code, message)
  }
  while (left.length > 0)
    try {
      for await (const part of ledger.ledgerChanges(left, { encoding, signal })) {
        if (part.kind === 'whole') continue
        begun =
          part.kind === 'ledger' || part.kind === 'table' || part.kind === 'rows'
            ? left[0]!.society
            : undefined
        if (part.kind === 'refused') await end(part.society, part.code, part.message)
        else if (part.kind === 'postponed') {
          await copy.rollback()
          left = [...left.slice(1), left[0]!]
          continue
        }
        const copied = part.kind === 'refused' ? undefined : await receiver.take(part)
        if (part.kind === 'rows') run.onEvent?.({ kind: 'rows', rows: part.rows })
        if (copied) {
          summary.copied += 1
          summary.rows += copied.rows_after
          run.onEvent?.(copied)
        }
        if (part.kind === 'refused' || part.kind === 'end') left = left.slice(1)
      }
    } catch (error) {
      await copy.rollback()
      const [under] = left
      if (signal?.aborted || !under) throw error
      const { code, message } = error as GrandlivreError
      if (code === 'NOT-PROVEN') {
        // What came wrong is of this ledger alone.
        left = left.slice(1)
        await end(under.society, code, message)
        continue
      }
      // It comes last in the next run, so that the others come.
      const isOfLedger = code === 'CONNECTION-LOST' || !(error instanceof GrandlivreError)
      if (isOfLedger && begun === under.society) await end(begun, code, message).catch(() => {})
      throw error
    }
  return refused
}

/** The ledger keeps the rows and the cursor that it has. */
export async function fail(
  { copy, onEvent }: Run,
  { society, firm }: Ledger,
  summary: Summary,
  code: string,
  message: string,
): Promise<void> {
  const failure = `${code}: ${message}`.slice(0, failureLengthMax)
  await copy.note([society], { firm_id: firm.id, firm_name: firm.name, failed_at: now(), failure })
  summary.failed.push(society)
  onEvent?.({ kind: 'failed', society, code, message })
}
