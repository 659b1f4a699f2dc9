/**
 * Statements that write events and list them for staff. Each runs inside a transaction of the tenant, or as the owner.
 */
import type { ClientBase } from 'pg'
import { idLiteral } from '../db/literal.ts'
import { type Connection, queryRows } from '../db/statement.ts'
import { type EventKind, type EventPayload, eventKinds } from './kinds.ts'

/** The greatest value of bigint. */
export const idMax = '9223372036854775807'

/**
 * An event, and where it happened. If it has neither firm nor folder, it concerns the whole schema. Ids are decimal
 * digits.
 */
export type NewEvent = EventPayload & {
  folderId?: string | null
  /** Needed only without `folderId`: otherwise it is the firm of the folder. */
  firmId?: string | null
  /** The person who caused the event, if known: 1 to 2^53-1. */
  personId?: string | null
}

/** Locks the schema's events until the transaction ends. Call it before event ids are drawn (see `lock_events`). */
export async function lockEvents(client: ClientBase, schemaId: string): Promise<void> {
  await client.query({ name: 'lock-events', text: 'select grandlivre.lock_events($1)', values: [schemaId] })
}

/** Inserts events in this order. Call it after `lockEvents`. */
export async function insertEvents(client: ClientBase, schemaId: string, events: readonly NewEvent[]) {
  const column = (read: (event: NewEvent) => string | null) => events.map(read)
  await client.query({
    name: 'insert-events',
    text: `insert into grandlivre.events (schema_id, folder_id, name, operation, scope, data)
     select $1::bigint, e.folder_id, e.name, e.operation,
            case when e.person_id is null then at.scope
              else (at.scope::jsonb || jsonb_build_object('persPhysiqueId', e.person_id))::json end, e.data::json
     from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
       with ordinality as e (folder_id, firm_id, name, operation, data, person_id, position)
     cross join lateral (select grandlivre.event_scope($1::bigint, e.firm_id, e.folder_id) as scope offset 0) as at
     order by e.position`,
    values: [
      schemaId,
      column((event) => event.folderId ?? null),
      column((event) => event.firmId ?? null),
      column((event) => event.name),
      column((event) => event.operation),
      column((event) => JSON.stringify(event.data)),
      column((event) => event.personId ?? null),
    ],
  })
}

/** Notifies the dispatchers of all processes, once the transaction commits, that this schema has new events. */
export async function notifyEvents(client: ClientBase, schemaId: string): Promise<void> {
  await client.query(`select pg_notify('grandlivre_events', $1)`, [schemaId])
}

/** An event as staff see it. */
export interface ListedEvent {
  schemaId: string
  id: string
  folderId: string | null
  name: string
  operation: string
  /** JSON. */
  data: string
  /** ISO 8601, UTC. */
  createdAt: string
}

export interface EventFilter {
  /** If absent, events of all tenants are listed. */
  schema?: string | undefined
  folder?: string | undefined
  name?: EventKind | undefined
  /** Only events older than the one with this id. */
  after?: string | undefined
  most?: number | undefined
}

/**
 * Lists events, newest first. Runs as the owner.
 *
 * Each list is read from the end of an index: that of the schema, of the kind, or of the folder and the kind. A probe
 * therefore takes rows in the order of that index, between two of its keys. If it had a condition on the kind alone,
 * the planner could choose to walk through all events by id. A folder without a kind takes one probe per kind; all
 * tenants take one per schema.
 */
export function listEvents(client: Connection, filter: EventFilter) {
  const { schema, folder, name, after, most } = filter
  const ofFolder = folder === undefined ? undefined : idLiteral(folder)
  const byKind = ofFolder !== undefined || name !== undefined
  const key = ['schema_id', ...(ofFolder ? ['folder_id'] : []), ...(byKind ? ['name'] : []), 'id']
  const start = ['at.schema_id', ...(ofFolder ? [ofFolder] : []), ...(byKind ? ['kind'] : [])].join(', ')
  const columns = key.map((column) => `e.${column}`)
  const tenants = ofFolder ? `grandlivre.folders where id = ${ofFolder}` : 'grandlivre.schemas where true'
  const text = `select e.schema_id as "schemaId", e.id, e.folder_id as "folderId", e.name, e.operation, e.data::text as data,
            to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt"
     from (select schema_id from ${tenants} and ($1::bigint is null or schema_id = $1)) as at
     cross join unnest($2::text[]) as kind
     cross join lateral (
       select * from grandlivre.events e
       where (${columns}) > (${start}, 0) and (${columns}) < (${start}, $3::bigint)
         ${ofFolder ? 'and e.folder_id is not null' : ''} and e.data::text <> 'null'
       order by ${columns.map((column) => `${column} desc`)} limit $4) as e
     order by e.id desc limit $4`
  return queryRows<ListedEvent>(client, text, [
    schema,
    byKind && name === undefined ? eventKinds : [name],
    after ?? idMax,
    most,
  ])
}
