import type { FormatOptions } from '../../formats/file-formats.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import type { Tally } from './count-chunks.ts'

/** What a format counts of what it left out or altered, for the status: `{"drafts":2}`. */
export type FileNotes = Readonly<Record<string, number>>

/** The input of a full export's renderer, in any format. */
export interface FileOptions extends FormatOptions {
  selection: Selection
  exportId: string
  /** Version of the interface. */
  version: string
  /** Whether it has the personal data of employees. */
  withEmployees: boolean
  /** Epoch milliseconds of the snapshot. */
  now: number
  buffer: ChunkBuffer
  /** Called with the codes of the analytic axes that the format has no columns for, if there are any. */
  leftOut: (axisCodes: string[]) => void
  /** Called with the notes of the file, after its last chunk at the latest; not called by formats that have none. */
  noted: (notes: FileNotes) => void
  /** Aborted when the attempt stops, for what runs outside this process. The snapshot is closed then, too. */
  stopped?: AbortSignal | undefined
}

/**
 * @param tally counts what is rendered
 * @throws {AppError} ERR-FOLDER-NOT-FOUND; before the first chunk, if chunks have at least some hundred bytes
 * @throws {UnsupportedByFormat} if the books do not fit the format
 */
export type FileRenderer = (
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
) => AsyncGenerator<Uint8Array<ArrayBuffer>>
