import type { FileFormat } from '../../formats/file-formats.ts'
import type { FileRenderer } from './file-options.ts'
import { renderCsvFile } from './flat/csv-file.ts'
import { renderParquetFile } from './flat/parquet-file.ts'
import { renderMadFile } from './mad-file.ts'
import { renderTraFile } from './tra/tra-file.ts'

/** The renderer of each format. Every file holds movements, so all are counted the same way (see countMovements). */
export const fileRenderers: Record<FileFormat, FileRenderer> = {
  JSON: renderMadFile,
  TRA: renderTraFile,
  CSV: renderCsvFile,
  PARQUET: renderParquetFile,
}
