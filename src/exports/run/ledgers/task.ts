/**
 * The task of a thread that sends many ledgers (docs/spec/ledgers.md#changes), and the messages between it and the
 * main thread.
 */
import type { MessagePort } from 'node:worker_threads'
import type { ErrorCode } from '../../../../packages/contract/src/error-codes.ts'
import type { WholeTableName } from '../../../../packages/contract/src/ledger-tables.ts'
import type { EntryRange } from '../../../ledger/changes/entry-ranges.ts'
import type { KeptDigests } from '../../blocks/kept-blocks.sql.ts'
import type { Encoding, SentTask } from '../task.ts'

/** One ledger of a request, with what the caller has of it. */
export interface AskedLedger {
  /** Id of the folder. */
  society: string
  /** Movements only of what changed since this cursor. Undefined: everything. */
  since: string | undefined
  /** Ranges of entries that are wanted besides what changed, ascending and disjoint. */
  entries: readonly EntryRange[]
  /** SHA-256 of the tables that the caller has. */
  tables: Readonly<Partial<Record<WholeTableName, string>>>
}

/** The rows of each ledger, or the digests of its blocks. */
export type LedgersTask = (
  | { what: 'ledgers'; form: 'ledgers' }
  | { what: 'ledger blocks'; form: 'ndjson' }
) & {
  encoding: Encoding
  schemaId: string
  /** Token of the caller. */
  tokenId: string
  /** Whether the personal data of employees is opened to it. */
  withEmployees: boolean
  timeZone: string
}

/** From the main thread, which looks the caller up again before each ledger. */
export type NextLedger =
  /** `cursor`: the state that the main database has by now. */
  | { kind: 'ledger'; asked: AskedLedger; cursor: string }
  /** Its lines are known without reading it. */
  | { kind: 'known'; asked: AskedLedger; known: SentLedger & { lines: string } }
  | { kind: 'refused'; asked: AskedLedger; refusal: Refusal }
  | { kind: 'end' }

export interface Refusal {
  code: ErrorCode
  message: string
}

/** The facts of a ledger that was sent. */
export interface SentLedger {
  /** Undefined if it was refused before its state was known. */
  cursor: string | undefined
  /** Movements, or blocks, that were sent. */
  rows: number
  /** SHA-256 of their lines, or of the digests of the blocks. */
  sha256: string | undefined
}

/** From the thread, once all but the last bytes of a ledger are sent. It asks for the next one. */
export interface EndedLedger extends SentLedger {
  asked: AskedLedger
  /** Digests of the whole ledger at that state, to be kept. */
  kept?: KeptDigests | undefined
  refusal?: Refusal
  /** For the log: what failed on our side. */
  fault?: string | undefined
  /** Bytes of the answer up to its end. Infinity if the compressor may hold some of them back. */
  upTo: number
}

/** The message that starts a LedgersTask in a thread. */
export interface SentLedgers extends Pick<SentTask, 'port' | 'buffers' | 'sentAt'> {
  task: LedgersTask
  /** For `EndedLedger | undefined`, each of which `NextLedger` answers. */
  asking: MessagePort
}
