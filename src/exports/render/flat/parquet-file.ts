/** The bytes of a Parquet file (docs/spec/exports.md#csv-and-parquet-files): the rows of the CSV file, converted. */
import { csvForDuckDb } from '../../../formats/flat/dialect.ts'
import { checkParquetRow } from '../../../formats/flat/row-limits.ts'
import { sameChunkBuffer } from '../../chunk-buffer.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import type { Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { csvChunks } from './csv-file.ts'
import { toParquet } from './to-parquet.ts'

export function renderParquetFile(
  snapshot: Snapshot,
  { selection, stopped }: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const buffer = sameChunkBuffer()
  const csv = csvChunks(snapshot, { selection, buffer }, tally, csvForDuckDb, checkParquetRow)
  return toParquet(csv, () => tally.movements, stopped)
}
