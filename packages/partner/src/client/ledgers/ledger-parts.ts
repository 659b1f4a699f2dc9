/**
 * The requests and the parts of a stream of many ledgers (docs/spec/ledgers.md#changes): the contract between the
 * library, which proves the stream, and the programs that keep copies.
 */
import type { LedgerTableName, WholeTableName } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../changes.ts'
import type { Encoding } from '../http/answer.ts'

/** A folder in the list (docs/spec/ledgers.md#the-list). */
export interface Ledger {
  /** Id of the folder. */
  society: string
  firm: { id: string; name: string }
  name: string
  reference: string | null
  /** Names the state of the ledger. If the copy has another cursor, the ledger has changed. */
  cursor: string
  /** Whether accounts of employees come with their personal data. The cursor does not depend on it. */
  employees: boolean
}

export interface LedgerList {
  /** In ascending order of their ids, as numbers. */
  ledgers: Ledger[]
  /** Names this list. Pass it as `after` of the next call. */
  etag: string
}

export interface LedgersOptions {
  /** The `etag` of an earlier list. If the list is still the same, the result is undefined. */
  after?: string | undefined
  /** Seconds, 0 to 30, for which the service waits until the list differs from `after`. */
  wait?: number | undefined
  signal?: AbortSignal | undefined
}

/** What to read of one ledger. */
export interface WantedLedger {
  society: string
  /** The cursor of the copy. Without it the whole ledger comes. */
  since?: string | undefined
  /**
   * Entries that come in addition to those that changed; only with `since`. At most 1,000 ranges, ascending and
   * disjoint.
   */
  entries?: EntryRange[] | undefined
  /** The SHA-256 of each table that the copy has. A table that is still the same does not come. */
  tables?: Partial<Record<WholeTableName, string>> | undefined
}

export interface LedgerChangesOptions {
  signal?: AbortSignal | undefined
  /** Compression of the body. Default: zstd if the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
}

/**
 * A ledger begins, or goes on after its stream broke (`resumed`). In both cases drop the movements of the entries in
 * `ranges`, including those that came before the break, in the same transaction.
 */
export interface LedgerBegin {
  kind: 'ledger'
  society: string
  /** The cursor that was asked with; null if the whole ledger comes. */
  since: string | null
  /** Names the state of the ledger that the rows show. */
  cursor: string
  ranges: EntryRange[]
  resumed: boolean
}

/**
 * Rows of this table follow. They replace all rows of the copy's table, including those that came before a break; rows
 * of `movements` replace only those in the ranges. The columns are those of packages/contract/src/ledger-tables.ts.
 */
export interface TableBegin {
  kind: 'table'
  table: LedgerTableName
}

/** Rows that are proven. */
export interface ProvenRows {
  kind: 'rows'
  table: LedgerTableName
  /** Whole lines of PostgreSQL's COPY, each with its line feed. The consumer may keep the bytes. */
  bytes: Uint8Array
  rows: number
}

/** The ledger is whole: commit its rows, and `cursor` with them. */
export interface LedgerEnd {
  kind: 'end'
  society: string
  cursor: string
  /**
   * Number and sums of the movements since the last `ledger` part of this society. Sums are texts with two decimals.
   */
  rows: number
  debit: string
  credit: string
  /** The SHA-256 of every table except `movements`; for a table that did not come, the SHA-256 in the request. */
  tables: Record<WholeTableName, string>
}

/** The service refuses this ledger, or the rest of it: roll back what has come. */
export interface LedgerRefused {
  kind: 'refused'
  society: string
  /** A code of the service (docs/errors.md). */
  code: string
  message: string
}

/**
 * The stream broke at this ledger again and again: roll back what has come. The ledger comes again later, after all
 * others and from its beginning.
 */
export interface LedgerPostponed {
  kind: 'postponed'
  society: string
  reason: string
}

/** The last part: nothing is missing. */
export interface LedgersWhole {
  kind: 'whole'
  /** Number of ledgers that came whole. */
  ledgers: number
  refusals: number
}

export type LedgerPart =
  | LedgerBegin
  | TableBegin
  | ProvenRows
  | LedgerEnd
  | LedgerRefused
  | LedgerPostponed
  | LedgersWhole

/** A range of entries, with the number and the digest of its movements in the ledger. */
export interface LedgerBlock {
  from: string
  to: string
  /** Number of movements in the range. */
  rows: number
  /** SHA-256 of the lines of these movements, each with its line feed; hexadecimal. */
  sha256: string
}

/** The digests of a ledger (docs/spec/ledgers.md#blocks). */
export interface LedgerBlocks {
  kind: 'blocks'
  society: string
  /** Names the state of the ledger that the digests describe. */
  cursor: string
  rows: number
  /** SHA-256 of the digests of all blocks: their bytes, in the order of the blocks. */
  digest: string
  tables: Record<WholeTableName, string>
  /** Disjoint and ascending. The ledger has no rows outside of these blocks. */
  blocks: LedgerBlock[]
}
