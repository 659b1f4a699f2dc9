/**
 * A new database has the schema of src/db/schema.sql. A database of the release 0.2.0 has the same schema after all
 * migrations.
 */
import { appendFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkVersion, latestMigration, migrate } from '../../src/db/migrations/migrate.ts'
import { forEachTest } from '../support/for-tests.ts'
import { readSchemaText, withComments } from '../support/plain/schema-text.ts'
import { ask as askIn, connect, createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { makeFormerSchema } from '../support/upgrade/former-schema.ts'

const shipped = resolve(import.meta.dirname, '../../src/db')
const released = resolve(import.meta.dirname, '../support/upgrade/schema-0.2.0')

const database = forEachTest(() => createTestDatabase({ template: 'template1' }))
/** The folder for a copy of the SQL files. */
let folder: string
beforeEach(async () => {
  folder = `${await mkdtemp(join(tmpdir(), 'grandlivre-migrations-'))}/`
})
afterEach(() => rm(folder, { recursive: true }))

test('a database of 0.2.0 gets all migrations, and then equals what schema.sql creates (otherwise: npm run schema)', async () => {
  await makeFormerSchema(database.ownerUrl)
  expect((await migrate(database.ownerUrl))[0]).toBe(7)
  const upgraded = await schemaOf(database)
  const file = join(shipped, 'schema.sql')
  await expect(withComments(upgraded, await readFile(file, 'utf8'))).toMatchFileSnapshot(file)
  const fresh = await createTestDatabase({ template: 'template1' })
  await migrate(fresh.ownerUrl)
  expect(await schemaOf(fresh)).toBe(upgraded)
  expect(await rowsOf(fresh)).toEqual(await rowsOf(database))
  await fresh.drop()
})

test('a database from before 0.2.0 is refused with what to do, and no migration is applied', async () => {
  await makeFormerSchema(database.ownerUrl)
  await ask(
    'drop trigger ledger_version on grandlivre.third_parties; delete from grandlivre.migrations where version = 6',
  )
  const before = await schemaOf(database)
  await expect(migrate(database.ownerUrl)).rejects.toThrow(
    'at version 5, from before the release 0.2.0 (version 6), the oldest that this code upgrades. Migrate it with the release 0.3.0',
  )
  expect(await schemaOf(database)).toBe(before)
})

test('a schema that the service did not make is refused; an empty one is used', async () => {
  await ask('create schema grandlivre; create table grandlivre.books (id int)')
  await expect(migrate(database.ownerUrl)).rejects.toThrow(
    'The schema grandlivre of the database holds books, but no record of migrations',
  )
  // The failed first start of an earlier version left this table.
  await ask('drop table grandlivre.books; create table grandlivre.migrations (version int, name text)')
  expect((await migrate(database.ownerUrl)).at(-1)).toBe(await latestMigration())
})

test('a folder of an earlier version keeps its cursors; a new folder refuses cursors from before it', async () => {
  await makeFormerSchema(database.ownerUrl)
  const insertFolder = (id: number) =>
    ask(`insert into grandlivre.folders (schema_id, id, firm_id, name) values (1, ${id}, 2, 'Folder')`)
  await ask(`insert into grandlivre.schemas (schema_id, name) values (1, 'Tenant')`)
  await ask(`insert into grandlivre.firms (schema_id, id, name) values (1, 2, 'Firm')`)
  await insertFolder(3)
  await migrate(database.ownerUrl)
  await insertFolder(4)
  const refusals = await ask(
    `select f.id::int, c.refusal from set_config('grandlivre.schema_id', '1', false), grandlivre.folders f
     cross join grandlivre.read_ledger_cursor(grandlivre.ledger_cursor(1, f.id, 0, 'x'), 1, f.id, 'x') c order by f.id`,
  )
  expect(refusals).toEqual([
    { id: 3, refusal: null },
    { id: 4, refusal: 'forgotten' },
  ])
})

test('the log of changes can be set up while exports read the ledger', async () => {
  await migrate(database.ownerUrl)
  const migration = await readFile(join(shipped, 'migrations/0009_ledger_changes.sql'), 'utf8')
  const [setUp] = migration.match(/^do \$\$.*?^end \$\$;/ms)!
  const reader = await connect(database.ownerUrl)
  try {
    await reader.query('begin; select from entries, movements, accounts')
    await ask(`set lock_timeout = '10s'; ${setUp}`)
  } finally {
    await reader.end()
  }
})

test('each function has exactly one current definition, in functions/', async () => {
  const defined = await functionsIn(join(shipped, 'migrations/functions'))
  await migrate(database.ownerUrl)
  const rows = await ask(
    `select proname as name from pg_proc where pronamespace = 'grandlivre'::regnamespace order by proname`,
  )
  expect(defined).toEqual(rows.map(({ name }) => name))
})

// Without this rule, a function that is only in functions/ and is later removed would remain in existing databases. No
// new database would show it to the test above.
test('each function is created by a numbered file, and then defined in functions/', async () => {
  const created = new Set([
    ...(await functionsIn(released)),
    ...(await functionsIn(join(shipped, 'migrations'))),
  ])
  const defined = await functionsIn(join(shipped, 'migrations/functions'))
  expect(defined).not.toEqual([])
  expect(defined.filter((name) => !created.has(name))).toEqual([])
})

test('a function that changes without a migration is refused, and no function is applied', async () => {
  await cp(shipped, folder, { recursive: true })
  await changeTenant('0')
  await expect(migrate(database.ownerUrl, { folder })).rejects.toThrow(
    /^functions\/ differs from the hash in \d{4}_\w+(\.expand)?\.sql\. Add a migration with the line "-- functions: sha256 [0-9a-f]{64}"/,
  )
  expect(await ask(`select to_regnamespace('grandlivre') as schema`)).toEqual([{ schema: null }])
})

test('a changed function is updated in a database of the previous version, and keeps its rights', async () => {
  await migrate(database.ownerUrl)
  const before = await schemaOf(database)
  await cp(shipped, folder, { recursive: true })
  await changeTenant('0')
  const next = await recordFunctions()
  expect(await migrate(database.ownerUrl, { folder })).toEqual([next])
  const after = await schemaOf(database)
  const changed = before
    .replace(/;\n$/, `,\n  (${next}, '${String(next).padStart(4, '0')}_changed.sql');\n`)
    .replace('RETURN (NULLIF(', 'RETURN (COALESCE(')
    .replace(
      `'grandlivre.schema_id'::text, true), ''::text)`,
      `'grandlivre.schema_id'::text, true), '0'::text)`,
    )
  expect(changed).not.toBe(before)
  expect(after).toBe(changed)
  // A process of the previous version is refused, and does not restore its own function.
  await expect(migrate(database.ownerUrl)).rejects.toThrow(
    `is at version ${next} and this code knows versions up to`,
  )
  await expect(checkVersion(database.serviceUrl)).rejects.toThrow(`is at version ${next} and this code knows`)
  expect(await schemaOf(database)).toBe(after)
})

test('a login that may not migrate sees that functions are missing', async () => {
  await makeFormerSchema(database.ownerUrl)
  await expect(checkVersion(database.serviceUrl)).rejects.toThrow(
    `is at version 6 and this code needs ${await latestMigration()}, but the login`,
  )
})

test('a function that cannot be created is named in the error, and no function is applied', async () => {
  await migrate(database.ownerUrl)
  const before = await schemaOf(database)
  await cp(shipped, folder, { recursive: true })
  await changeTenant('0')
  await appendFile(join(folder, 'migrations/functions/tenancy.sql'), 'select nothing;\n')
  const next = await recordFunctions('create table extra ();')
  await expect(migrate(database.ownerUrl, { folder })).rejects.toThrow(
    'functions/tenancy.sql failed, and nothing was applied: column "nothing" does not exist',
  )
  expect(await schemaOf(database)).toBe(before)
  expect(await ask('select max(version) as version from grandlivre.migrations')).toEqual([
    { version: next - 1 },
  ])
})

test('a migration can use a function of its own version: its trigger calls an empty function, which functions/ replaces', async () => {
  await cp(shipped, folder, { recursive: true })
  await writeFile(
    join(folder, 'migrations/functions/a_new_one.sql'),
    `create or replace function refuse() returns trigger language plpgsql
     as $$ begin raise exception 'refused'; end $$;`,
  )
  await recordFunctions(
    `create or replace function refuse() returns trigger language plpgsql as 'begin return new; end';
     create trigger refuse before insert on schemas for each row execute function refuse();`,
  )
  await migrate(database.ownerUrl, { folder })
  await expect(ask(`insert into grandlivre.schemas values (1, 'x')`)).rejects.toThrow('refused')
})

/** Names of the functions that the SQL files of a folder create, sorted. */
async function functionsIn(path: string): Promise<string[]> {
  const files = (await readdir(path)).filter((name) => name.endsWith('.sql'))
  const texts = await Promise.all(files.map((name) => readFile(join(path, name), 'utf8')))
  const names = texts.flatMap((text) => [...text.matchAll(/^create (?:or replace )?function (\w+)/gm)])
  return names.map(([, name]) => name!).sort()
}

/** Changes tenant() in the copy of functions/, so that it returns the fallback if no tenant is set. */
async function changeTenant(fallback: string): Promise<void> {
  const path = join(folder, 'migrations/functions/tenancy.sql')
  const text = await readFile(path, 'utf8')
  const changed = text.replace(
    `nullif(current_setting('grandlivre.schema_id', true), '')`,
    `coalesce(current_setting('grandlivre.schema_id', true), '${fallback}')`,
  )
  expect(changed).not.toBe(text)
  await writeFile(path, changed)
}

/** Adds the next migration to the copy, with the line that the refusal asks for. @returns its version */
async function recordFunctions(sql = ''): Promise<number> {
  const refusal = await migrate(database.ownerUrl, { folder }).catch((error: Error) => error.message)
  const line = /"(-- functions: sha256 [0-9a-f]{64})"/.exec(String(refusal))?.[1]
  expect(line).toBeDefined()
  const version = (await latestMigration()) + 1
  await writeFile(
    join(folder, 'migrations', `${String(version).padStart(4, '0')}_changed.sql`),
    `${line}\n${sql}`,
  )
  return version
}

async function schemaOf({ ownerUrl }: TestDatabase): Promise<string> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  return readSchemaText(client).finally(() => client.end())
}

const ask = (sql: string) => askIn(database.ownerUrl, sql)

/** The rows of all tables and the values of all sequences. Leaves out random values, times and the names of servers. */
async function rowsOf({ ownerUrl }: TestDatabase): Promise<Record<string, unknown>> {
  const client = await connect(ownerUrl)
  const { rows: tables } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'grandlivre' order by 1`,
  )
  const { rows: sequences } = await client.query(
    `select sequencename, last_value from pg_sequences
     where schemaname = 'grandlivre' and sequencename not in ('epoch_began', 'server_name') order by 1`,
  )
  const found: Record<string, unknown> = { sequences }
  for (const { name } of tables) {
    const varying = `{cursor_key,applied_at,at,hash,details}`
    const { rows } = await client.query(
      `select to_jsonb(t) - '${varying}'::text[] as row from ${name} t order by 1`,
    )
    found[name] = rows
  }
  await client.end()
  return found
}
