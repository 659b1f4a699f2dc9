import type { ClientBase } from 'pg'
import type { StaffAct } from './audit-row.ts'
import { canonicalJson } from './audit-trail.ts'

/**
 * Records an act in its own transaction, as the owner. It must be the last statement: other acts and the requests of all
 * processes wait from here to the commit. So what is deferred to the commit runs before.
 */
export async function recordStaffAct(client: ClientBase, given: StaffAct): Promise<void> {
  const { staff, act, thirdPartyId, tokenId, schemaId, folderId, details = {} } = given
  const row = {
    act,
    third_party_id: thirdPartyId,
    token_id: tokenId,
    schema_id: schemaId,
    folder_id: folderId,
    details: canonicalJson(details),
    outcome: 'done',
  }
  await client.query('set constraints all immediate')
  await client.query(`select grandlivre.append_audit($1, $2 || ' as ' || session_user)`, [
    JSON.stringify([row]),
    staff,
  ])
}
