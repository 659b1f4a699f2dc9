import type { ClientBase } from 'pg'

/** Of an earlier run, with all that was sent to them. */
export async function forgetSubscriptions(client: ClientBase): Promise<void> {
  await client.query('delete from grandlivre.subscriptions')
}

export async function readThirdParty(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    'select id from grandlivre.third_parties where disconnected_at is null',
  )
  return rows[0]!.id
}
