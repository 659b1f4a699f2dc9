/** Statements of retention on events and deliveries, all within `whileDelivering`. Times are epoch milliseconds. */
import type { ClientBase } from 'pg'
import { firstMatch, positions } from './dispatch/deliveries.sql.ts'

export async function listSchemas(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ schema_id: string }>('select schema_id from schemas order by 1')
  return rows.map((row) => row.schema_id)
}

/**
 * Deletes the oldest events of a schema, at most `most`, that happened before that time. Ids follow time, so only the
 * beginning of the schema's events is read. Events that a subscription has not collected yet stay, whatever their age:
 * the service may just have been down.
 * @returns how many were deleted
 */
export async function deleteEvents(
  client: ClientBase,
  schemaId: string,
  before: number,
  most: number,
): Promise<number> {
  const { rowCount } = await client.query(
    `with uncollected as materialized (
       select min(${firstMatch}) as id
       from subscriptions s
       join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
       cross join lateral ${positions}
       where s.enabled and at.schema_id = $1
     )
     delete from events e
     using (select id from events where schema_id = $1 order by id limit $3) as oldest, uncollected u
     where e.schema_id = $1 and e.id = oldest.id and e.created_at < to_timestamp($2 / 1000.0)
       and (u.id is null or e.id < u.id)`,
    [schemaId, before, most],
  )
  return rowCount ?? 0
}

/** Deletes deliveries that ended before that time, with their attempts, at most `most`. @returns how many */
export async function deleteDeliveries(
  client: ClientBase,
  schemaId: string,
  before: number,
  most: number,
): Promise<number> {
  const { rowCount } = await client.query(
    `delete from deliveries d
     using (
       select id from deliveries where schema_id = $1 and finished_at < to_timestamp($2 / 1000.0)
       order by finished_at limit $3
     ) as ended
     where d.schema_id = $1 and d.id = ended.id and d.state <> 'pending'`,
    [schemaId, before, most],
  )
  return rowCount ?? 0
}
