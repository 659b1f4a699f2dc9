/** The options of a run, its results, and the events that it reports. */
import type { WholeTableName } from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import type { Grandlivre } from '../client/grandlivre.ts'
import type { Encoding } from '../client/http/answer.ts'
import type { Copy, LedgerChange } from './copy.ts'

export interface Run {
  copy: Copy
  ledger: Grandlivre
  /** Ids of the folders to copy. Default: all folders that the token opens. */
  societies?: readonly string[] | undefined
  /** Compression of the bodies of streams. */
  encoding?: Encoding | undefined
  signal?: AbortSignal | undefined
  onEvent?: ((event: SyncEvent) => void) | undefined
}

export interface Summary {
  /** Number of ledgers that the run covers, including those that were already up to date. */
  ledgers: number
  /** Number of ledgers that came, and of their movements. */
  copied: number
  rows: number
  /** Ids of folders that were refused. They keep their former rows and cursor. */
  failed: string[]
}

/** A ledger was committed. */
export interface CopiedLedger extends LedgerChange {
  kind: 'copied'
  society: string
  name: string
  /** The cursor that the copy had before; null if the ledger came in full. */
  since: string | null
  /** Milliseconds from the ledger's first line to its commit. */
  ms: number
}

/** A folder whose rows in the copy differ from its ledger, although both show the same state. */
export interface Difference {
  kind: 'differs'
  society: string
  /** Blocks of entries that differ, and ranges between blocks in which only the copy has rows. */
  entries: EntryRange[]
  tables: WholeTableName[]
}

export type SyncEvent =
  | { kind: 'listed'; ledgers: number; differing: number }
  | { kind: 'rows'; rows: number }
  | CopiedLedger
  | { kind: 'gone' | 'back'; society: string }
  | { kind: 'failed'; society: string; code: string; message: string }
  | Difference
  /** Rows of a folder that the copy does not know. */
  | { kind: 'stray'; society: string }
  | { kind: 'unproven'; society: string; reason: string }
  /** All rows of the folder equal those of its ledger. */
  | { kind: 'compared'; society: string; rows: number }
  | { kind: 'waiting'; reason: string; ms: number }
