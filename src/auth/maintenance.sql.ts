import type { ClientBase } from 'pg'

/** Sets maintenance mode: from then on every process answers authenticated requests with 503. */
export async function setMaintenance(client: ClientBase, underMaintenance: boolean): Promise<void> {
  await client.query(`update grandlivre.service_state set under_maintenance = $1`, [underMaintenance])
}

export async function isUnderMaintenance(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ on: boolean }>(
    'select under_maintenance as on from grandlivre.service_state',
  )
  return rows[0]!.on
}
