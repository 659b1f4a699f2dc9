/**
 * What a stream of many ledgers is asked for and consists of (docs/spec/ledgers.md#changes). The contract between the
 * library, which proves it, and the programs that keep copies.
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
  /** Names the state of its ledger, which has changed if the copy has another cursor. */
  cursor: string
  /** Whether accounts of employees come with their personal data. The cursor says nothing of it. */
  employees: boolean
}

export interface LedgerList {
  /** Ascending by id, as numbers. */
  ledgers: Ledger[]
  /** Names this list: `after` of the next call. */
  etag: string
}

export interface LedgersOptions {
  /** The `etag` of an earlier list. The answer is undefined as long as the list is the same. */
  after?: string | undefined
  /** Seconds, 0 to 30, for which the service waits for another list than `after`. */
  wait?: number | undefined
  signal?: AbortSignal | undefined
}

/** What is wanted of one ledger. */
export interface WantedLedger {
  society: string
  /** The cursor of the copy. Without it everything is given. */
  since?: string | undefined
  /** With `since`: entries that are given besides what has changed. At most 1,000 ranges, ascending and disjoint. */
  entries?: EntryRange[] | undefined
  /** The SHA-256 of tables that the copy has: one that is still the same is left out. */
  tables?: Partial<Record<WholeTableName, string>> | undefined
}

export interface LedgerChangesOptions {
  signal?: AbortSignal | undefined
  /** How the body travels. Default: zstd where the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
}

/**
 * A ledger begins, or goes on (`resumed`) after its stream broke: in the same transaction, drop the movements of the
 * entries in `ranges`, those that came before among them.
 */
export interface LedgerBegin {
  kind: 'ledger'
  society: string
  /** Null if the ledger is given in full. */
  since: string | null
  /** Names the state that the rows show. */
  cursor: string
  ranges: EntryRange[]
  resumed: boolean
}

/**
 * Rows of this table follow. All rows of the copy's table are replaced, those that came before a break among them; of
 * `movements`, just those in the ranges. Its columns are those of packages/contract/src/ledger-tables.ts.
 */
export interface TableBegin {
  kind: 'table'
  table: LedgerTableName
}

/** Rows that are proven. */
export interface ProvenRows {
  kind: 'rows'
  table: LedgerTableName
  /** Whole lines of PostgreSQL's COPY, each with its line feed. The consumer may keep them. */
  bytes: Uint8Array
  rows: number
}

/** The ledger is whole: commit its rows together with `cursor`. */
export interface LedgerEnd {
  kind: 'end'
  society: string
  cursor: string
  /** Movements since the last `ledger` of this society, and their sums: texts with two decimals. */
  rows: number
  debit: string
  credit: string
  /** The SHA-256 of every table but `movements`. A table that did not come has the SHA-256 that was asked with. */
  tables: Record<WholeTableName, string>
}

/** The service does not give this ledger, or not to its end: roll back what came of it. */
export interface LedgerRefused {
  kind: 'refused'
  society: string
  /** A code of the service (docs/errors.md). */
  code: string
  message: string
}

/** The stream broke at this ledger again and again: roll back what came of it. It comes again from its beginning, last. */
export interface LedgerPostponed {
  kind: 'postponed'
  society: string
  reason: string
}

/** The last part: nothing is missing. */
export interface LedgersWhole {
  kind: 'whole'
  /** Ledgers that came to their end. */
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

/** A range of entries and what the ledger has in it. */
export interface LedgerBlock {
  from: string
  to: string
  /** Movements in the range. */
  rows: number
  /** SHA-256 of their lines, each with its line feed; hexadecimal. */
  sha256: string
}

/** The digests of a ledger (docs/spec/ledgers.md#blocks). */
export interface LedgerBlocks {
  kind: 'blocks'
  society: string
  /** Names the state of which they are. */
  cursor: string
  rows: number
  /** SHA-256 of the digests of all blocks, as bytes, in order. */
  digest: string
  tables: Record<WholeTableName, string>
  /** Disjoint and ascending. Rows of a copy outside of them differ, too. */
  blocks: LedgerBlock[]
}
