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
  /** Only movements that changed since this cursor are wanted; if undefined, all are. */
  since: string | undefined
  /** Further ranges of entries that are wanted, ascending and disjoint. */
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
  /** Whether the caller may see the personal data of employees. */
  withEmployees: boolean
  timeZone: string
}

/**
 * What the main thread answers when it is asked for the next ledger; undefined after the last. It looks the caller up
 * again before each.
 */
export type NextLedger =
  /** `cursor` names the state that the main database has by now. */
  | { asked: AskedLedger; cursor: string }
  /** The ledger is not read: it is refused, or its lines are known. */
  | { asked: AskedLedger; known: LedgerEnd }
  | undefined

/** The last lines of a ledger, and the facts of what was sent. */
export interface LedgerEnd {
  lines: string
  /** Undefined if it was refused. */
  cursor: string | undefined
  /** Movements, or blocks, that were sent. */
  rows: number
  /** SHA-256 of the lines of movements, or of the digests of the blocks. */
  sha256: string | undefined
  /** Digests of the whole ledger at that state, to be kept. */
  kept?: KeptDigests | undefined
  refusal?: { code: ErrorCode; message: string }
  /** For the log: what failed in the service. */
  fault?: string | undefined
}

/** The thread sends this before the last bytes of a ledger, and so asks for the next ledger. */
export interface EndedLedger extends Omit<LedgerEnd, 'lines'> {
  asked: AskedLedger
  /** Bytes of the answer up to the end of this ledger. Infinity if the compressor may hold some of them back. */
  upTo: number
}

/** The message that starts a LedgersTask in a thread. */
export interface SentLedgers extends Pick<SentTask, 'port' | 'buffers' | 'sentAt'> {
  task: LedgersTask
  /** The port for `EndedLedger` from the thread, undefined at first; `NextLedger` answers each message. */
  asking: MessagePort
}
