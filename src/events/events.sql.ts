/** Statements on `events`: writing, and listing for staff. Run inside a transaction of the tenant, or as the owner. */
import type { ClientBase } from 'pg'
import type { EventPayload } from './kinds.ts'

/** Where an event happened. An absent id means the schema as a whole. Ids are decimal digits. */
export interface EventOrigin {
  folderId?: string | null
  /** Needed only without `folderId`: the firm of a folder is known. */
  firmId?: string | null
}

export type NewEvent = EventPayload & EventOrigin

/**
 * Locks the schema's events until the transaction ends. To be called before event ids are drawn (see `lock_events`).
 */
export async function lockEvents(client: ClientBase, schemaId: string): Promise<void> {
  await client.query('select grandlivre.lock_events($1)', [schemaId])
}

/** Inserts events in this order. To be called after `lockEvents`. */
export async function insertEvents(
  client: ClientBase,
  schemaId: string,
  events: readonly NewEvent[],
): Promise<void> {
  const column = (read: (event: NewEvent) => string | null) => events.map(read)
  await client.query(
    `insert into grandlivre.events (schema_id, folder_id, name, operation, scope, data)
     select $1::bigint, e.folder_id, e.name, e.operation,
            grandlivre.event_scope($1::bigint, e.firm_id, e.folder_id), e.data::json
     from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])
       with ordinality as e (folder_id, firm_id, name, operation, data, position)
     order by e.position`,
    [
      schemaId,
      column((event) => event.folderId ?? null),
      column((event) => event.firmId ?? null),
      column((event) => event.name),
      column((event) => event.operation),
      column((event) => JSON.stringify(event.data)),
    ],
  )
}

/** Notifies the dispatchers of all processes, once the transaction commits, that this schema has new events. */
export async function notifyEvents(client: ClientBase, schemaId: string): Promise<void> {
  await client.query(`select pg_notify('grandlivre_events', $1)`, [schemaId])
}

/** An event as staff commands list it. */
export interface ListedEvent {
  id: string
  folderId: string | null
  name: string
  operation: string
  /** JSON. */
  data: string
  /** ISO 8601, UTC. */
  createdAt: string
}

/** Newest first. As the owner. */
export async function listEvents(
  client: ClientBase,
  filter: { schemaId: string; folderId: string | undefined; name: string | undefined; most: number },
): Promise<ListedEvent[]> {
  const { rows } = await client.query<ListedEvent>(
    `select id, folder_id as "folderId", name, operation, data::text as data,
            to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt"
     from grandlivre.events
     where schema_id = $1 and ($2::bigint is null or folder_id = $2) and ($3::text is null or name = $3)
     order by id desc limit $4`,
    [filter.schemaId, filter.folderId, filter.name, filter.most],
  )
  return rows
}
