import { inUnits } from '../formats/minor-units.ts'
import type { ExportRecord } from '../jobs/jobs.sql.ts'
import { type Cell, type Facts, folderCell, type Table } from './list.ts'

export const exportList: Table<ExportRecord> = {
  caption: 'Full exports',
  none: 'There is no such full export.',
  columns: {
    Id: ({ id }) => ({ code: id }),
    Folder: exportFolderCell,
    Format: exportFormatText,
    State: ({ state }) => ({ state }),
    Attempts: ({ attempt }) => ({ count: attempt }),
    Movements: ({ rows, rowsTotal }) => [
      { count: rows },
      '/',
      rowsTotal === null ? '?' : { count: rowsTotal },
    ],
    Content: ({ bytes }) => ({ bytes }),
    'SHA-256': ({ sha256 }) => ({ digest: sha256 }),
    Triggered: ({ createdAt }) => ({ at: createdAt }),
    Ended: ({ finishedAt }) => ({ at: finishedAt }),
    Took: ({ tookMs }) => (tookMs === null ? null : { ms: tookMs }),
    // Long enough for a reason that staff gave, which is quoted in a sentence with the id of its request.
    Reason: ({ reason }) => ({ foreign: reason, most: 1_000 }),
  },
}

export function exportFacts(found: ExportRecord): Facts {
  const { rowsTotal, bytes, fileBytes, debit, credit, notes } = found
  return {
    Export: { code: found.id },
    Tenant: found.schemaId,
    Folder: exportFolderCell(found),
    Format: found.format,
    'Year to': found.exerciceEnd,
    Compression: found.compression,
    Encoding: found.encoding,
    Columns: found.columns,
    State: { state: found.state },
    Request: { foreign: found.requestId },
    Attempts: { count: found.attempt },
    Movements: [
      { count: found.rows },
      ' of ',
      rowsTotal === null ? 'as yet uncounted' : { count: rowsTotal },
    ],
    Debit: debit && inUnits(BigInt(debit)),
    Credit: credit && inUnits(BigInt(credit)),
    'State of the books': found.snapshotOn,
    Content: { bytes },
    'Content SHA-256': { digest: found.sha256 },
    Triggered: { at: found.createdAt },
    'Last renewed': { at: found.renewedAt },
    Ended: { at: found.finishedAt },
    File: { foreign: found.fileKey },
    'File size': fileBytes && { bytes: fileBytes },
    'File SHA-256': { digest: found.fileSha256 },
    Notes: { foreign: notes && JSON.stringify(notes) },
    Reason: { foreign: found.reason, most: 1_000 },
  }
}

export function exportFolderCell({
  folderId,
  reference,
}: Pick<ExportRecord, 'folderId' | 'reference'>): Cell {
  return [folderCell(folderId), ' ', { foreign: reference, most: 60 }]
}

export function exportFormatText({ format, compression, exerciceEnd }: ExportRecord): string {
  const year = exerciceEnd === null ? '' : `, year to ${exerciceEnd}`
  return `${compression === null ? format : `${format}+${compression}`}${year}`
}
