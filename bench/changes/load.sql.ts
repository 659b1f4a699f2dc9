/** Statements of the owner of the server, on databases made for one load each. */
import { type ClientBase, escapeIdentifier } from 'pg'

export async function createDatabase(
  client: ClientBase,
  name: string,
  template = 'template1',
): Promise<void> {
  await client.query(`create database ${escapeIdentifier(name)} template ${escapeIdentifier(template)}`)
}

/** Sessions that have not ended yet are ended. */
export async function dropDatabase(client: ClientBase, name: string): Promise<void> {
  await client.query(`drop database if exists ${escapeIdentifier(name)} with (force)`)
}

/** From now on statements only give the ledger its next version: nothing is logged, and no event is published. */
export async function removeChangeLog(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select regexp_replace(
       regexp_replace(pg_get_triggerdef(t.oid), '^CREATE', 'CREATE OR REPLACE'),
       'advance_ledger_version\\(.+\\)$', 'advance_ledger_version()') as statement
     from pg_trigger t join pg_proc p on p.oid = t.tgfoid
     where p.proname = 'advance_ledger_version' and t.tgnargs > 0`,
  )
  for (const { statement } of rows) await client.query(statement)
  await client.query('drop trigger publish_ledger_change on grandlivre.folders')
}

export interface LogSize {
  rows: number
  /** Of the ids, as they are stored: compressed. */
  idsBytes: number
  /** On disk, with indexes. */
  diskBytes: number
}

/** Null in a database that has no log. */
export async function readLogSize(client: ClientBase): Promise<LogSize | null> {
  const { rows } = await client.query<{ there: boolean }>(
    `select to_regclass('grandlivre.ledger_changes') is not null as there`,
  )
  if (!rows[0]!.there) return null
  const sizes = await client.query<LogSize>(
    `select count(*)::integer as rows, coalesce(sum(pg_column_size(ids)), 0)::integer as "idsBytes",
       pg_total_relation_size('grandlivre.ledger_changes')::integer as "diskBytes"
     from grandlivre.ledger_changes`,
  )
  return sizes.rows[0]!
}
