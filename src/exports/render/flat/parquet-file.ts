/** The bytes of a Parquet file (docs/spec/exports.md#csv-and-parquet-files): the rows of the CSV file, converted. */
import { sameChunkBuffer } from '../../chunk-buffer.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { countChunks, Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { csvChunks } from './csv-file.ts'
import { toParquet } from './to-parquet.ts'

export async function* renderParquetFile(
  snapshot: Snapshot,
  options: FileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new Tally()
  const { selection } = options
  const csv = csvChunks(snapshot, { selection, buffer: sameChunkBuffer() }, tally, { forParquet: true })
  yield* countChunks(
    toParquet(csv, () => tally.movements, options.stopped),
    tally,
    options.counted,
  )
}
