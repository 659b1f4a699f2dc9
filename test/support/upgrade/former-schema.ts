/** Databases as earlier code made them: by numbered files alone, from an empty schema. */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** The files of the release 0.2.0, which ends at version 6. */
const released = join(import.meta.dirname, 'schema-0.2.0')

/** @param folder has numbered files, and maybe functions/; by default those of the release 0.2.0 */
export async function makeFormerSchema(ownerUrl: string, folder = released): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  await client.query(`create schema grandlivre; set search_path = grandlivre;
    create table migrations (version integer primary key, name text not null, applied_at timestamptz(0) not null default now())`)
  for (const name of await sqlIn(folder)) {
    await client.query(await readFile(join(folder, name), 'utf8'))
    await client.query('insert into migrations (version, name) values ($1, $2)', [
      Number(name.slice(0, 4)),
      name,
    ])
  }
  const functions = join(folder, 'functions')
  if (existsSync(functions))
    for (const name of await sqlIn(functions))
      await client.query(await readFile(join(functions, name), 'utf8'))
  await client.query('grant select on migrations to grandlivre_service')
  await client.end()
}

async function sqlIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
}
