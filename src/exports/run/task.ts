/** The task of an export thread, and what the thread produces and sends. */
import type { MessagePort } from 'node:worker_threads'
import type { StreamedForm } from '../../formats/file-formats.ts'
import type { EntryRange } from '../../ledger/changes/entry-ranges.ts'
import type { EntryName } from '../../ledger/named-entry.sql.ts'
import type { ExportFacts } from '../../telemetry/telemetry.ts'
import type { Block, BlocksHead } from '../blocks/block.ts'
import type { Chunks } from '../chunks.ts'
import type { OwnedCollection } from '../render/collections.ts'
import { jsonLine } from '../render/framing.ts'
import type { Selection } from '../selection.ts'
import type { SeenState } from '../sources/replica.sql.ts'

export type Encoding = 'identity' | 'gzip' | 'zstd'

/** The media type and the encoding of an answer. */
export interface Representation<Form = StreamedForm> {
  form: Form
  encoding: Encoding
}

export interface SelectedTask extends Representation {
  what: 'movements' | 'entries'
  selection: Selection
  /** Id of the last item that the caller has: a movement or an entry, as `what` says. */
  after: string | undefined
  /** Only entries with ids in these ranges; if undefined, all entries. */
  entries: readonly EntryRange[] | undefined
  /** Only what changed since this cursor; if undefined, everything. Not combined with `after` or `entries`. */
  since: string | undefined
  /** Whether entries have the further fields of a FEC. Not for movements. */
  extended?: boolean
}

/**
 * The first line of an answer to `since` (docs/spec/changes.md#changes-since): the cursor that the caller has, the
 * cursor of the state that the answer leads to, and the ranges of entries in which the caller's copy is no longer
 * valid.
 */
export function changesLine(since: string, cursor: string, entries: readonly EntryRange[]): string {
  return jsonLine({ since, cursor, entries })
}

/** The digests of the selected movements in blocks, or their sums by account. */
export interface SummaryTask extends Representation {
  what: 'blocks' | 'balance'
  selection: Selection
}

/** One entry, alone. */
export interface EntryTask extends Representation {
  what: 'entry'
  named: EntryName
  /** The time zone of the platform. */
  timeZone: string
}

export type CollectionTask = Representation & OwnedCollection

export type ExportTask = SelectedTask | SummaryTask | EntryTask | CollectionTask

/** The message that starts a task in a thread. */
export interface SentTask {
  task: ExportTask
  schemaId: string
  /**
   * The state of the ledger that the request saw: the export shows this state or a later one. Undefined if the export
   * concerns no single ledger.
   */
  seen: SeenState | undefined
  port: MessagePort
  /**
   * Where this thread has the body hashed: here, or in the hash thread at the other end of this port. If undefined,
   * this thread does not hash; the other end of `port` may.
   */
  hash: 'here' | MessagePort | undefined
  /** Buffers for the first chunks. */
  buffers: ArrayBuffer[]
  /** `monotonicSeconds` when the message was sent. */
  sentAt: number
}

/** Sent before the first byte. */
export interface ExportHead {
  /** Names the state of the folder's ledger in the snapshot. Undefined if the export concerns no single folder. */
  cursor: string | undefined
  /** For an answer of digests. */
  blocks?: BlocksHead | undefined
}

/** Sent after the last byte. */
export interface ExportSummary {
  /** Number of items: movements, entries, or items of a collection. */
  rows: number
  /** Bytes of the body before compression. */
  bytes: number
  /** SHA-256 of the body before compression, hexadecimal. Undefined if the caller asked for none. */
  sha256?: string | undefined
  /** Digests of the exercice at the state of the answer, to be kept. */
  blocks?: Block[] | undefined
  /** For telemetry. Undefined if no thread was needed. */
  facts?: ExportFacts
}

export interface Produced {
  head: ExportHead
  chunks: Chunks
  /** The number of items; called after the last chunk. */
  rows: () => number
  /** Digests to be kept; called after the last chunk. */
  blocks?: (() => Block[]) | undefined
}
