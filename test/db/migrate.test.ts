/** Migrations, and the two ways to use your own PostgreSQL server. */
import { chmod, cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { checkVersion, migrate } from '../../src/db/migrations/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { forEachTest } from '../support/for-tests.ts'
import { ask, createTestDatabase } from '../support/servers/database.ts'

const shipped = resolve(import.meta.dirname, '../../src/db')
/** The migrations of the release 0.2.0, which a new database records too, and the migrations of this code. */
const folders = [resolve(import.meta.dirname, '../support/upgrade/schema-0.2.0'), join(shipped, 'migrations')]
const listed = await Promise.all(folders.map((path) => readdir(path)))
const files = listed.flat().filter((name) => name.endsWith('.sql'))
const versions = files.map((_, index) => index + 1)
const version = versions.length

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const database = forEachTest(() => createTestDatabase({ template: 'template1' }))

test('a new database records every migration once, in order', async () => {
  expect(await migrate(database.ownerUrl)).toEqual(versions)
  expect(await migrate(database.ownerUrl)).toEqual([])
  const rows = await ask(
    database.ownerUrl,
    'select version, name from grandlivre.migrations order by version',
  )
  expect(rows).toEqual(files.sort().map((name, index) => ({ version: index + 1, name })))
})

test('simultaneous calls apply each migration once', async () => {
  const applied = await Promise.all([1, 2, 3, 4].map(() => migrate(database.ownerUrl)))
  expect(applied.flat().toSorted((one, other) => one - other)).toEqual(versions)
})

test('a database of a newer version is used as it is if only expanding migrations were added', async () => {
  await migrate(database.ownerUrl)
  await ask(
    database.ownerUrl,
    `insert into grandlivre.migrations (version, name) values (9998, '9998_wide.expand.sql'), (9999, '9999_wider.expand.sql');
     update pgboss.queue set heartbeat_seconds = 77`,
  )
  expect(await migrate(database.ownerUrl)).toEqual([])
  await (await openDatabase({ dataDir: folder, databaseUrl: database.ownerUrl })).close()
  await checkVersion(database.serviceUrl)
  // The options of the queue belong to the newer code, too.
  expect(await ask(database.ownerUrl, 'select distinct heartbeat_seconds from pgboss.queue')).toEqual([
    { heartbeat_seconds: 77 },
  ])
})

test('a database that is newer than the code is refused, and the error says what to do', async () => {
  await migrate(database.ownerUrl)
  await ask(
    database.ownerUrl,
    `insert into grandlivre.migrations (version, name) values (9998, '9998_later.sql'), (9999, '9999_wide.expand.sql')`,
  )
  const refusal =
    /is at version 9999 and this code knows versions up to \d+; version 9998 removed what this code needs. Start the newer code/
  await expect(migrate(database.ownerUrl)).rejects.toThrow(refusal)
  await expect(openDatabase({ dataDir: folder, databaseUrl: database.ownerUrl })).rejects.toThrow(refusal)
})

/** A copy of the SQL files with further migrations. */
async function withFurther(migrations: Record<string, string>): Promise<string> {
  const copy = `${await mkdtemp(join(folder, 'migrations-'))}/`
  await cp(shipped, copy, { recursive: true })
  for (const [name, sql] of Object.entries(migrations)) await writeFile(join(copy, 'migrations', name), sql)
  return copy
}

const leftOf = async () => {
  const [row] = await ask(
    database.ownerUrl,
    `select to_regclass('grandlivre.entries') as entries, to_regclass('grandlivre.first') as first`,
  )
  return row
}

/** The name of a migration that comes so many after the last. */
const further = (after: number, name: string) => `${String(version + after).padStart(4, '0')}_${name}.sql`

test('a failed migration undoes all of its run, and all are applied once it is repaired', async () => {
  const first = { [further(1, 'first')]: 'create table first ()' }
  const second = further(2, 'second')
  const failing = await withFurther({ ...first, [second]: 'create table second (); select 1 / 0;' })
  await expect(migrate(database.ownerUrl, { folder: failing })).rejects.toThrow(
    `${second} failed, and nothing was applied: division by zero`,
  )
  expect(await leftOf()).toEqual({ entries: null, first: null })
  // A migration that cannot be recorded leaves nothing, either.
  const recorded = `insert into migrations values (${version + 2}, 'x')`
  const unrecorded = await withFurther({ ...first, [second]: recorded })
  await expect(migrate(database.ownerUrl, { folder: unrecorded })).rejects.toThrow('duplicate key')
  expect(await leftOf()).toEqual({ entries: null, first: null })
  const repaired = await withFurther({ ...first, [second]: 'create table second ();' })
  expect(await migrate(database.ownerUrl, { folder: repaired })).toEqual([
    ...versions,
    version + 1,
    version + 2,
  ])
})

test.each([
  ['given twice', further(0, 'same')],
  ['missing', further(2, 'third')],
])('a migration number that is %s is refused, and no migration is applied', async (_, name) => {
  await expect(migrate(database.ownerUrl, { folder: await withFurther({ [name]: '' }) })).rejects.toThrow(
    `${name} does not have the next number`,
  )
  expect(await leftOf()).toEqual({ entries: null, first: null })
})

/** A server on which nothing is prepared, with logins like those of operators. */
let server: EmbeddedDatabase

beforeAll(async () => {
  server = await startEmbeddedDatabase({ dataDir: join(folder, 'data'), durable: false })
})

afterAll(() => server.stop())

beforeEach(async () => {
  for (const statement of [
    'drop database if exists books with (force)',
    'drop role if exists grandlivre_service',
    'drop role if exists web',
    'drop role if exists books_owner',
    `create role books_owner login createrole password 'secret'`,
    `create role web login password 'secret'`,
    'create database books owner books_owner',
  ])
    await ask(server.ownerUrl, statement)
})

test('a single login without superuser rights migrates, and requests run as a role that owns no object', async () => {
  const books = await open('books_owner')
  expect(await identity(books)).toEqual({
    session_user: 'books_owner',
    current_user: 'grandlivre_service',
    version,
  })
  const again = await open('books_owner')
  expect(await identity(again)).toEqual(await identity(books))
})

test('with two logins the owner migrates, and the service takes the role and checks the version', async () => {
  await migrate(urlOf('books_owner'))
  await expect(open('web')).rejects.toThrow(
    'may not act as grandlivre_service. As an administrator of the server: grant',
  )
  await ask(server.ownerUrl, 'grant grandlivre_service to web with set true')
  expect(await identity(await open('web'))).toEqual({
    session_user: 'web',
    current_user: 'grandlivre_service',
    version,
  })
  await ask(urlOf('books_owner'), `delete from grandlivre.migrations where version = ${version}`)
  await expect(open('web')).rejects.toThrow(
    `is at version ${version - 1} and this code needs ${version}, but the login of DATABASE_URL may not migrate it`,
  )
})

test('the error for a login that may not migrate an empty database names the command that does', async () => {
  await expect(open('web')).rejects.toThrow('npm run cli -- migrate')
})

test.each([
  ['an unreachable server', 'postgres://a:b@127.0.0.1:1/c', 'connect ECONNREFUSED'],
  ['an invalid address', 'postgres://a:b@127.0.0.1:port/c', 'Invalid URL'],
])('%s is reported with the name of the setting', async (_, databaseUrl, cause) => {
  await expect(openDatabase({ dataDir: folder, databaseUrl })).rejects.toThrow(
    `The server of DATABASE_URL refuses the connection: ${cause}`,
  )
})

function urlOf(login: string): string {
  return `postgres://${login}:secret@127.0.0.1:${new URL(server.ownerUrl).port}/books`
}

function open(login: string): Promise<Database> {
  return openDatabase({ dataDir: folder, databaseUrl: urlOf(login) })
}

async function identity(books: Database): Promise<unknown> {
  const pool = createPool(books.service, { max: 1, applicationName: 'test' })
  try {
    const { rows } = await pool.query(
      'select session_user, current_user, max(version) as version from migrations',
    )
    return rows[0]
  } finally {
    await pool.end()
  }
}
