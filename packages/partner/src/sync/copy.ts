/**
 * The interface of a database that ledgers are copied into. Runs, proofs and views use it; SQLite and PostgreSQL
 * implement it. The tables and columns are those of packages/contract/src/ledger-tables.ts, and each key begins with
 * `society_id`. A copy has one connection, so it takes one call at a time.
 */
import type { LedgerTableName, WholeTableName } from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import { clientError } from '../client/errors.ts'

/** Version of the tables, kept in `grandlivre_copy`. After a change that increases it, copies have to be rebuilt. */
export const layoutVersion = 3

/** Tables that copies of layout 1 have and copies of this layout do not. */
export const formerTables: readonly string[] = [
  ...['entries', 'movement_rows', 'entry_lines', 'sync_state'],
  ...['exercices', 'journals', 'accounts', 'entries', 'movement_rows', 'entry_lines'].map(
    (name) => `next_${name}`,
  ),
]

/** For each table that comes as a whole: the SHA-256 of its rows, hexadecimal. */
export type TableDigests = Partial<Record<WholeTableName, string>>

/**
 * What a copy notes about a folder besides its rows. These notes are the copy's own, so no digest of the service proves
 * them. The table `folders` keeps them in further columns of the same names: ids are bigint, times have a zone,
 * `table_digests` is JSON, and all others are texts.
 */
export interface Diary {
  firm_id: string
  firm_name: string
  /** The state of the ledger that the rows show; null until the ledger has come whole. */
  cursor: string | null
  /** Whether the accounts came with the personal data of employees, which depends on the token of that run. */
  employees: 'shown' | 'hidden' | null
  /** The digests of tables that the service gave with this cursor. */
  table_digests: TableDigests
  /** When the copy was last known to equal the ledger: ISO 8601, UTC. */
  synced_at: string | null
  /** When rows or tables last changed. */
  changed_at: string | null
  /** When the folder was first missing from the list of its firm; null while the list has it. */
  gone_at: string | null
  /** When the ledger last failed to come, and why: code and message. Both are null once it has come whole again. */
  failed_at: string | null
  failure: string | null
}

export type CopiedFolder = Diary & { society: string }

/** A row of `changes`, for people who query the copy: what one transaction changed in the copy of a ledger. */
export interface LedgerChange {
  at: string
  cursor: string
  /** The entries whose movements were dropped and read again. */
  entries: readonly EntryRange[]
  /** Number of movements of these entries, before and after. */
  rows_before: number
  rows_after: number
}

export interface Copy {
  /** The name of the copy in messages, without a password. */
  readonly name: string
  /** The address of the service whose ledgers are copied; undefined before the first {@link adopt}. */
  readonly service: string | undefined
  adopt(service: string): Promise<void>
  /**
   * Locks the folders of these firms against other processes, until {@link close} or until this process ends in any
   * way. A firm in {@link OpenOptions.locked} stays with the copy that locked it.
   * @throws {GrandlivreError} COPY-LOCKED
   */
  lock(firms: readonly string[]): Promise<void>
  /** All folders, in ascending order of their ids. */
  folders(): Promise<CopiedFolder[]>
  /**
   * Sets these members of the diary of these folders, in a transaction of its own. A folder that is not in the copy yet
   * is added.
   */
  note(societies: readonly string[], values: Partial<Diary>): Promise<void>

  /** Begins the transaction of one ledger. All calls until {@link commit} or {@link rollback} belong to it. */
  begin(society: string): Promise<void>
  /** Removes the movements of these entries of the ledger. @returns their number */
  dropEntries(ranges: readonly EntryRange[]): Promise<number>
  /**
   * Begins a table: the next rows belong to it. Removes the ledger's former rows of the table, except those of
   * `movements`.
   */
  table(name: LedgerTableName): Promise<void>
  /** @param lines whole lines of the table. The caller may reuse their bytes once the promise has resolved */
  rows(lines: Uint8Array): Promise<void>
  /** Commits the rows, the diary and the change together. @param change null if nothing came */
  commit(diary: Partial<Diary>, change: LedgerChange | null): Promise<void>
  /** Undoes the transaction. Does nothing if none is open. */
  rollback(): Promise<void>

  /**
   * The ledger's rows of a table as the lines in which they came, made from what the columns hold now. Lines are whole,
   * in the order of their ids, and all of the same state.
   */
  lines(society: string, table: LedgerTableName): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** Ids of folders that have rows in some table but none in `folders`. */
  strays(): Promise<string[]>
  /** Removes all rows of a folder, also its rows of `changes`. */
  remove(society: string): Promise<void>
  close(): Promise<void>
}

export interface OpenOptions {
  /** Refuses a copy that does not exist, instead of making it. */
  isThere?: boolean | undefined
  /** Rebuilds a copy that has another layout, instead of refusing it. */
  again?: boolean | undefined
  /**
   * The firms that copies of the same target have locked. A caller that opens several copies passes one set to all of them.
   */
  locked?: Set<string> | undefined
  /** Ends the wait for another process that is writing. */
  signal?: AbortSignal | undefined
}

/** The error with which both databases refuse to open a copy. */
export const refused = (message: string, remedy: string, cause?: unknown) =>
  clientError('COPY-REFUSED', message, { remedy, cause })

export const notThere = (name: string, to: string) =>
  refused(`There is no copy in ${name} yet`, `Make one: grandlivre sync --to ${to}`)

export const otherLayout = (name: string, to: string) =>
  refused(
    `${name} is a copy of another layout, which this version cannot continue`,
    `Rebuild it: grandlivre sync --again --to ${to}`,
  )
