import type { ListedAuditRow } from '../audit/audit.sql.ts'
import { epochAct, epochRowOf } from '../audit/verify.ts'
import { type Cell, folderCell, partnerCell, type Table } from './list.ts'

export const auditList: Table<ListedAuditRow> = {
  caption: 'Audit, the newest rows',
  none: 'The audit has no such row.',
  columns: {
    Row: ({ number }) => number,
    At: ({ at }) => ({ at: momentOf(at) }),
    Who: callerCell,
    What: ({ act }) => (act === epochAct ? 'a new epoch begins' : { foreign: act, most: 80 }),
    Folder: ({ folderId }) => folderCell(folderId),
    Outcome: ({ outcome, code }) => ({ foreign: code === null ? outcome : `${outcome} ${code}` }),
    Rows: ({ rows }) => rows && { count: rows },
    'SHA-256': ({ sha256 }) => ({ digest: sha256 }),
    Cursor: ({ cursor }) => ({ digest: cursor }),
    Details: detailsOf,
    Hash: ({ hash }) => ({ digest: hash }),
  },
}

export function callerCell({ staff, partnerCode, thirdPartyId, tokenId, act }: ListedAuditRow): Cell {
  if (staff !== null) return { foreign: staff }
  if (act === epochAct) return 'the database'
  if (thirdPartyId === null) return act.endsWith(' /files') ? 'the holder of a link' : 'the service'
  return [partnerCell(partnerCode) ?? thirdPartyId, tokenId === null ? '' : `, token ${tokenId}`]
}

function detailsOf(row: ListedAuditRow): Cell {
  const beginning = epochRowOf(row)
  if (!beginning) return { foreign: row.details === '{}' ? null : row.details, most: 120 }
  const { epoch, former, last } = beginning
  return `epoch ${epoch} follows ${former}; rows after ${last} may be lost`
}

/** Converts the time of a row. @param seconds since 1970, with decimals */
export function momentOf(seconds: string): Date {
  return new Date(Number(seconds) * 1000)
}
