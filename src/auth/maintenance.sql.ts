import type { ClientBase } from 'pg'

/** Under maintenance every authenticated request of every process is answered with 503, from its next call on. */
export async function setMaintenance(client: ClientBase, underMaintenance: boolean): Promise<void> {
  await client.query(`update grandlivre.service_state set under_maintenance = $1`, [underMaintenance])
}
