import type { ClientBase } from 'pg'

/** Removes the subscriptions of an earlier run, with their deliveries. */
export async function forgetSubscriptions(client: ClientBase): Promise<void> {
  await client.query('delete from grandlivre.subscriptions')
}

export async function readThirdParty(client: ClientBase, code: string): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    'select id from grandlivre.third_parties where code = $1',
    [code],
  )
  return rows[0]!.id
}

/**
 * Adds subscriptions to the entries of a schema, like staff.
 * @param postUrl followed by a number, from 0 on
 */
export async function insertSubscriptions(
  client: ClientBase,
  made: { schemaId: string; thirdPartyId: string; postUrl: string; count: number },
): Promise<void> {
  await client.query(
    `insert into grandlivre.subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
     select nextval('grandlivre.ids'), $1::bigint, 'staff', $2, $3 || number, '{accountingLineEntry}',
            grandlivre.latest_event($1)
     from generate_series(0, $4::int - 1) as number`,
    [made.schemaId, made.thirdPartyId, made.postUrl, made.count],
  )
}
