/** What others do to a copy. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'

/** Runs a statement as another program does. @param address of the copy, as `--to` takes it */
export async function tamper(address: string, sql: string): Promise<void> {
  if (!address.startsWith('postgres')) {
    const database = new DatabaseSync(address)
    database.exec(sql)
    return database.close()
  }
  const url = new URL(address)
  const schema = url.searchParams.get('schema')
  url.searchParams.delete('schema')
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query(`set search_path to ${schema}; ${sql}`)
  await client.end()
}
