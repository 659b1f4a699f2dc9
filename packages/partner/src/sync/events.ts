/** What a run works with, and what it tells while it runs. */
import type { WholeTableName } from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import type { Grandlivre } from '../client/grandlivre.ts'
import type { Encoding } from '../client/http/answer.ts'
import type { Copy, LedgerChange } from './copy.ts'

export interface Run {
  copy: Copy
  ledger: Grandlivre
  /** Ids of the folders to copy. Default: all that the token opens. */
  societies?: readonly string[] | undefined
  /** How the bodies of streams travel. */
  encoding?: Encoding | undefined
  signal?: AbortSignal | undefined
  onEvent?: ((event: SyncEvent) => void) | undefined
}

export interface Summary {
  /** Ledgers that were asked for. */
  ledgers: number
  /** Ledgers that came, and their movements. */
  copied: number
  rows: number
  /** Ids of folders that were refused. They keep the rows and the cursor that they have. */
  failed: string[]
}

/** A ledger was committed. */
export interface CopiedLedger extends LedgerChange {
  kind: 'copied'
  society: string
  name: string
  /** The cursor before; null if it came in full. */
  since: string | null
  /** Milliseconds from its first line to its commit. */
  ms: number
}

/** A folder whose rows differ from its ledger at the same state. */
export interface Difference {
  kind: 'differs'
  society: string
  /** Blocks of entries that differ, and gaps between blocks in which the copy has rows. */
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
  /** All its rows are equal. */
  | { kind: 'compared'; society: string; rows: number }
  | { kind: 'waiting'; reason: string; ms: number }
