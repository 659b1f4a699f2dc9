/** What an export thread is asked for, what it produces, and what it tells of it. */
import type { MessagePort } from 'node:worker_threads'
import type { StreamedForm } from '../../formats/file-formats.ts'
import type { Collection, CollectionOwner } from '../render/collections.ts'
import type { Selection } from '../selection.ts'

export type Encoding = 'identity' | 'gzip' | 'zstd'

/** The media type and the encoding of an answer. */
export interface Representation {
  form: StreamedForm
  encoding: Encoding
}

export interface SelectedTask extends Representation {
  what: 'movements' | 'entries'
  selection: Selection
  /** Id of the last movement that the caller has, or of the last entry where entries are exported. */
  after: string | undefined
}

export interface CollectionTask extends Representation {
  what: Collection
  owner: CollectionOwner
}

export type ExportTask = SelectedTask | CollectionTask

export function schemaOf(task: ExportTask): string {
  return 'selection' in task ? task.selection.schemaId : task.owner.schemaId
}

/** What a thread is given. */
export interface SentTask {
  task: ExportTask
  port: MessagePort
  /** For its first chunks. */
  buffers: ArrayBuffer[]
}

/** Known before the first byte. */
export interface ExportHead {
  /** Of the folder in the snapshot; empty where no folder is concerned. */
  ledgerVersion: string
}

/** Known behind the last byte. */
export interface ExportSummary {
  /** Movements, entries, or whatever the export consists of. */
  rows: number
  /** Of the body before compression. */
  bytes: number
  /** Of the body before compression, hexadecimal. */
  sha256: string
}

/** What chunks are rendered into. */
export interface Buffers {
  /** How full a chunk may get; a single item that needs more gets a chunk of its own. */
  chunkBytes: number
  /** Gives a buffer of that size. */
  take: (bytes: number) => Uint8Array<ArrayBuffer>
}

export interface Produced {
  head: ExportHead
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>
  /** Asked when the chunks are through. */
  rows: () => number
}
