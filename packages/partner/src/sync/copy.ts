/**
 * A database that ledgers are copied into, as the run, the proof and the views need it. SQLite and PostgreSQL
 * implement it, with the tables and columns of packages/contract/src/ledger-tables.ts, each with `society_id` first in
 * its key. One connection, so one call at a time.
 */
import type { LedgerTableName, WholeTableName } from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import { clientError } from '../client/errors.ts'

/** Grows when the tables change so that a copy has to be rebuilt. Kept in `grandlivre_copy`. */
export const layoutVersion = 3

/** Tables of layout 1 that this layout does not have. */
export const formerTables: readonly string[] = [
  ...['entries', 'movement_rows', 'entry_lines', 'sync_state'],
  ...['exercices', 'journals', 'accounts', 'entries', 'movement_rows', 'entry_lines'].map(
    (name) => `next_${name}`,
  ),
]

/** The SHA-256 of the rows of each table that is given whole, hexadecimal. */
export type TableDigests = Partial<Record<WholeTableName, string>>

/**
 * What a copy notes of a folder beside its rows: the copy's own diary, which nothing proves. They are further columns of
 * `folders` by the same names: ids bigint, times with a zone, `table_digests` JSON, all others texts.
 */
export interface Diary {
  firm_id: string
  firm_name: string
  /** The state of the ledger that the rows show; null as long as the ledger has not come whole. */
  cursor: string | null
  /** Whether accounts came with the personal data of employees, by the token of that run. */
  employees: 'shown' | 'hidden' | null
  /** The digests that the service gave with this cursor. */
  table_digests: TableDigests
  /** ISO 8601, UTC. When the copy was last known to be the ledger. */
  synced_at: string | null
  /** When rows or tables last changed. */
  changed_at: string | null
  /** When it was first missing among the folders of its firm; null while it is there. */
  gone_at: string | null
  /** The last time that it was refused or broke off, and why: code and message. Null since it came whole. */
  failed_at: string | null
  failure: string | null
}

export type CopiedFolder = Diary & { society: string }

/** A row of `changes`: what one transaction did to a ledger, for people who ask what changed. */
export interface LedgerChange {
  at: string
  cursor: string
  /** The entries that were dropped and came again. */
  entries: readonly EntryRange[]
  /** Movements of these entries before and after. */
  rows_before: number
  rows_after: number
}

export interface Copy {
  /** For messages; without a password. */
  readonly name: string
  /** The address of the service that it is a copy of; undefined before the first {@link adopt}. */
  readonly service: string | undefined
  adopt(service: string): Promise<void>
  /**
   * Keeps other processes from writing the folders of these firms until {@link close}, or until this one ends, however
   * it ends. A firm that is in {@link OpenOptions.locked} stays with the copy that has it.
   * @throws {GrandlivreError} COPY-LOCKED
   */
  lock(firms: readonly string[]): Promise<void>
  /** Ascending by id. */
  folders(): Promise<CopiedFolder[]>
  /** Sets these members of the diary of folders, those that it does not have yet among them. A transaction of its own. */
  note(societies: readonly string[], values: Partial<Diary>): Promise<void>

  /** Begins the transaction of one ledger, to which all calls belong until {@link commit} or {@link rollback}. */
  begin(society: string): Promise<void>
  /** Removes the ledger's movements of these entries. @returns how many */
  dropEntries(ranges: readonly EntryRange[]): Promise<number>
  /** Removes the ledger's rows of this table, unless it is `movements`. Rows that follow are of it. */
  table(name: LedgerTableName): Promise<void>
  /** @param lines whole lines of the table, which are read before the promise resolves */
  rows(lines: Uint8Array): Promise<void>
  /** @param change null where nothing came. The rows, the diary and the change are there together. */
  commit(diary: Partial<Diary>, change: LedgerChange | null): Promise<void>
  /** Also where there is no transaction. */
  rollback(): Promise<void>

  /**
   * The ledger's rows of a table as the lines that they came as, made of what the columns hold now: whole lines, in
   * the order of their ids, of one state.
   */
  lines(society: string, table: LedgerTableName): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** Ids of folders with rows in any table, but none in `folders`. */
  strays(): Promise<string[]>
  /** Removes all rows of a folder, with its changes. */
  remove(society: string): Promise<void>
  close(): Promise<void>
}

export interface OpenOptions {
  /** Refuses a copy that is not there instead of making it. */
  isThere?: boolean | undefined
  /** Rebuilds a copy of another layout, instead of refusing it. */
  again?: boolean | undefined
  /** Firms that other copies of the same target have locked, for those who open several: they share this set. */
  locked?: Set<string> | undefined
  /** Ends a wait for what another process writes. */
  signal?: AbortSignal | undefined
}

/** What the openers of both databases refuse. */
export const refused = (message: string, remedy: string, cause?: unknown) =>
  clientError('COPY-REFUSED', message, { remedy, cause })

export const notThere = (name: string, to: string) =>
  refused(`There is no copy in ${name} yet`, `Make one: grandlivre sync --to ${to}`)

export const otherLayout = (name: string, to: string) =>
  refused(
    `${name} is a copy of another layout, which this version cannot continue`,
    `Rebuild it: grandlivre sync --again --to ${to}`,
  )
