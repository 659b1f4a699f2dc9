import type pg from 'pg'

/**
 * Counts the statements of this database that wait for a lock of the table. Tables have the same id in all databases
 * that come from one template, and other files lock theirs at the same time.
 */
export async function lockWaits(client: pg.ClientBase, table: string): Promise<number> {
  const { rowCount } = await client.query(
    `select from pg_locks where not granted and relation = $1::regclass
     and database = (select oid from pg_database where datname = current_database())`,
    [`grandlivre.${table}`],
  )
  return rowCount!
}
