import type pg from 'pg'
import type { FileFormat } from '../../formats/file-formats.ts'
import { countFecMovements } from '../read/fec-file.sql.ts'
import { countMovements, ofFile } from '../read/movements.sql.ts'
import type { Selection } from '../selection.ts'
import { renderFecFile } from './fec-file.ts'
import { renderCsvFile, renderParquetFile } from './flat/csv-file.ts'
import { renderMadFile } from './mad-file.ts'
import type { FileRenderer } from './render-rows.ts'
import { renderTraFile } from './tra-file.ts'

/** The renderer of each format. */
export const fileRenderers: Record<FileFormat, FileRenderer> = {
  JSON: renderMadFile,
  TRA: renderTraFile,
  FEC: renderFecFile,
  CSV: renderCsvFile,
  PARQUET: renderParquetFile,
}

/** Counts the movements that the file will hold. */
export function countFileMovements(
  format: FileFormat,
  client: pg.ClientBase,
  selection: Selection,
): Promise<number> {
  return format === 'FEC' ? countFecMovements(client, selection) : countMovements(client, ofFile(selection))
}
