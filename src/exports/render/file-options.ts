import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import type { FileTotals } from './count-chunks.ts'

/** What a file of a full export is made of, in whatever format. */
export interface FileOptions {
  selection: Selection
  exportId: string
  /** Of the interface. */
  version: string
  /** Epoch milliseconds of the snapshot. */
  now: number
  /** `YYYY-MM-DD` in the time zone of the platform. */
  today: string
  /** How full a chunk may get; a single item that needs more gets a chunk of its own. */
  chunkBytes: number
  buffer: BufferOf
  /** Called with what the file holds up to the end of each chunk, before it is yielded. The last call has it all. */
  counted: (totals: FileTotals) => void
  /** Called with the codes of the analytic axes that the format has no columns for, where there are any. */
  leftOut: (axisCodes: string[]) => void
}

/** Gives at least so many bytes to render into. */
export type BufferOf = (bytes: number) => Uint8Array<ArrayBuffer>

/**
 * @throws {AppError} ERR-FOLDER-NOT-FOUND; with chunks of some hundred bytes at least, before the first of them
 * @throws {UnsupportedByFormat} for books that do not fit into such a file
 */
export type FileRenderer = (
  snapshot: Snapshot,
  options: FileOptions,
) => AsyncGenerator<Uint8Array<ArrayBuffer>>
