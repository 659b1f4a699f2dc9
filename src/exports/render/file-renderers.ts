import type pg from 'pg'
import type { FileFormat } from '../../formats/file-formats.ts'
import { countFecMovements } from '../read/fec-file.sql.ts'
import { countMovements, ofFile } from '../read/movements.sql.ts'
import type { Selection } from '../selection.ts'
import { exerciceOf, renderFecFile } from './fec/fec-file.ts'
import type { FileRenderer } from './file-options.ts'
import { renderCsvFile } from './flat/csv-file.ts'
import { renderParquetFile } from './flat/parquet-file.ts'
import { renderMadFile } from './mad-file.ts'
import { renderTraFile } from './tra/tra-file.ts'

interface FormatRenderer {
  render: FileRenderer
  /** How many movements the file will hold. */
  count: (client: pg.ClientBase, selection: Selection) => Promise<number>
}

const countSelected: FormatRenderer['count'] = (client, selection) =>
  countMovements(client, ofFile(selection))

/** The renderer of each format. */
export const fileRenderers: Record<FileFormat, FormatRenderer> = {
  JSON: { render: renderMadFile, count: countSelected },
  TRA: { render: renderTraFile, count: countSelected },
  FEC: {
    render: renderFecFile,
    count: (client, selection) => countFecMovements(client, exerciceOf(selection)),
  },
  CSV: { render: renderCsvFile, count: countSelected },
  PARQUET: { render: renderParquetFile, count: countSelected },
}
