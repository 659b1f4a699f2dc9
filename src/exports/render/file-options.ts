import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import type { FileTotals } from './count-chunks.ts'

/** The input of a full export's renderer, in any format. */
export interface FileOptions {
  selection: Selection
  exportId: string
  /** Version of the interface. */
  version: string
  /** Epoch milliseconds of the snapshot. */
  now: number
  buffer: ChunkBuffer
  /** Called before each chunk is yielded, with the totals up to its end. The last call has those of the file. */
  counted: (totals: FileTotals) => void
  /** Called with the codes of the analytic axes that the format has no columns for, if there are any. */
  leftOut: (axisCodes: string[]) => void
}

/**
 * @throws {AppError} ERR-FOLDER-NOT-FOUND; before the first chunk, if chunks have at least some hundred bytes
 * @throws {UnsupportedByFormat} if the books do not fit the format
 */
export type FileRenderer = (
  snapshot: Snapshot,
  options: FileOptions,
) => AsyncGenerator<Uint8Array<ArrayBuffer>>
