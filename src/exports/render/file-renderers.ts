import type pg from 'pg'
import type { FileFormat } from '../../formats/file-formats.ts'
import type { Chunks } from '../chunks.ts'
import { countFecMovements } from '../read/fec-file.sql.ts'
import { countMovements, ofFile } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import { exerciceOf, renderFecFile } from './fec-file.ts'
import { renderCsvFile, renderParquetFile } from './flat/csv-file.ts'
import { renderMadFile } from './mad-file.ts'
import { type FileOptions, type FileRenderer, type FileTotals, Sums, Tally } from './render-rows.ts'
import { renderTraFile } from './tra-file.ts'

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

/**
 * The chunks of a full export's file.
 * @param counted called before each chunk is yielded, with the totals up to its end; the last call has the totals of
 *   the file
 */
export async function* renderFile(
  format: FileFormat,
  snapshot: Snapshot,
  { counted, ...options }: FileOptions & { counted: (totals: FileTotals) => void },
): Chunks {
  const sums = new Sums()
  const tally = new Tally(sums)
  let bytes = 0
  for await (const chunk of fileRenderers[format].render(snapshot, options, tally)) {
    bytes += chunk.length
    const { movements: rows, entries } = tally
    counted({ rows, entries, bytes, debit: sums.debit.total, credit: sums.credit.total })
    yield chunk
  }
}
