import { createHash } from 'node:crypto'
import type { AuditRow } from './audit-row.ts'

/** The hash before the first row, hexadecimal. */
export const noHash = '0'.repeat(64)

/**
 * The hash of a row, hexadecimal: SHA-256 of a JSON array of strings and nulls. The database computes the same
 * (audit_hash); they share no code, so that each checks the other.
 */
export function hashOfRow(previous: string, row: AuditRow): string {
  const columns = [
    previous,
    row.number,
    row.at,
    row.thirdPartyId,
    row.tokenId,
    row.staff,
    row.act,
    row.schemaId,
    row.folderId,
    row.requestId,
    row.details,
    row.rows,
    row.bytes,
    row.sha256,
    row.cursor,
    row.outcome,
    row.code,
  ]
  return createHash('sha256').update(JSON.stringify(columns)).digest('hex')
}
