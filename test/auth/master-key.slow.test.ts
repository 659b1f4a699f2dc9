/** A database knows the fingerprint of its key, and refuses every other key before anything is written. */
import { createHmac, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sampleCommands } from '../../packages/sample/src/sample-commands.ts'
import { createTerminal } from '../../packages/terminal/src/terminal.ts'
import { keyCheck, loadMasterKeys } from '../../src/auth/master-key.sql.ts'
import { encrypt } from '../../src/auth/secrets.ts'
import { runCli } from '../../src/commands/run-cli.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { ask, createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { request, startTestService, testMasterKey } from '../support/service.ts'

let database: TestDatabase
let dataDir: string

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-key-'))
})
afterEach(async () => {
  await database.drop()
  await rm(dataDir, { recursive: true })
})

/** Makes a database with secrets under `testMasterKey`, as the code before fingerprints left it. */
async function makeOld(): Promise<void> {
  database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('ONE')
  await staff.end()
  await ask(
    database.ownerUrl,
    `drop function grandlivre.master_key_standing(), grandlivre.adopt_master_key(bytea), grandlivre.sealing_key();
     drop table grandlivre.adopted_key, grandlivre.next_key;
     delete from grandlivre.migrations where name in ('0013_master_key.expand.sql', '0022_rotate_key.expand.sql')`,
  )
}

/** Makes a database with secrets and the fingerprint of `testMasterKey`. */
async function makeKnown(): Promise<void> {
  await makeOld()
  expect(await start(testMasterKey)).toBeUndefined()
}

const databases = {
  new: async () => {
    database = await createTestDatabase({ template: 'template1' })
  },
  old: makeOld,
  known: makeKnown,
  restored: async () => {
    await makeKnown()
    const backup = database
    database = await createTestDatabase({ template: new URL(backup.ownerUrl).pathname.slice(1) })
    await backup.drop()
  },
}
type Kind = keyof typeof databases

/** Starts the service, and stops it. @returns why it did not start */
async function start(masterKey: Buffer | undefined): Promise<string | undefined> {
  try {
    await (await startTestService(database, { masterKey, dataDir })).stop()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** What a staff command prints on standard error. @param words by default of one that reads no secret */
async function command(masterKey: Buffer, ...words: string[]): Promise<string> {
  let error = ''
  const env = { MASTER_KEY: masterKey.toString('hex'), DATA_DIR: dataDir, DATABASE_URL: database.ownerUrl }
  const terminal = createTerminal({
    input: Readable.from([]),
    out: { write: () => {} },
    err: { write: (text) => (error += text) },
  })
  const stop = () => new AbortController().signal
  const code = await runCli(
    words.length > 0 ? words : ['token', 'list'],
    { ...terminal, env, stop },
    sampleCommands,
  )
  expect(code).toBe(error === '' ? 0 : 1)
  return error
}

/** Every row, column, sequence, function and file. */
async function contentOf(): Promise<unknown> {
  const rows = await ask(
    database.ownerUrl,
    `select c.oid::regclass::text as name,
       case when c.relkind = 'S' then (select pg_sequence_last_value(c.oid)::text)
       else md5(query_to_xml(format('select * from %s t order by t::text', c.oid::regclass), true, false, '')::text)
       end as content
     from pg_class c where c.relkind in ('r', 'S') and c.relnamespace::regnamespace::text in ('grandlivre', 'pgboss')
     union all select p.oid::regprocedure::text, md5(prosrc) from pg_proc p
       where p.pronamespace::regnamespace::text in ('grandlivre', 'pgboss')
     order by 1`,
  )
  return { rows, files: await readdir(dataDir) }
}

const remedy = /Set MASTER_KEY to the former key|Put the former file back, or set MASTER_KEY/

describe.each(['old', 'known', 'restored'] satisfies Kind[])('a database that is %s', (kind) => {
  beforeEach(() => databases[kind]())

  test('refuses services and staff commands that have another key, and stays unchanged', async () => {
    const before = await contentOf()
    const other = randomBytes(32)
    const complaints = [
      await start(other),
      await command(other),
      await command(other, 'partner', 'create', '--code', 'TWO', '--name', 'Two'),
    ]
    for (const complaint of complaints) {
      expect(complaint).toContain('stored under another key than that of MASTER_KEY. Nothing was changed')
      expect(complaint).toMatch(remedy)
    }
    expect(await command(Buffer.alloc(0))).toContain('MASTER_KEY is required with DATABASE_URL')
    expect(await contentOf()).toEqual(before)
  })

  test('refuses a start without its key file, and the start creates none', async () => {
    const before = await contentOf()
    const complaint = await start(undefined)
    expect(complaint).toContain(`${join(dataDir, 'master.key')} is missing`)
    expect(complaint).toMatch(remedy)
    expect(await contentOf()).toEqual(before)
  })

  test.each(['', '\n', 'abc'])('refuses a key file that holds %j, and keeps it', async (content) => {
    await writeFile(join(dataDir, 'master.key'), content)
    const before = await contentOf()
    expect(await start(undefined)).toContain('must hold 64 hexadecimal digits. Restore it')
    expect(await contentOf()).toEqual(before)
    expect(await readFile(join(dataDir, 'master.key'), 'utf8')).toBe(content)
  })

  test('accepts its own key, from the setting or from the file', async () => {
    expect(await command(testMasterKey)).toBe('')
    await writeFile(join(dataDir, 'master.key'), testMasterKey.toString('hex'))
    expect(await start(undefined)).toBeUndefined()
  })
})

describe('a new database', () => {
  beforeEach(() => databases.new())

  test('gets a key file, which later starts require', async () => {
    expect(await start(undefined)).toBeUndefined()
    const made = await readFile(join(dataDir, 'master.key'), 'utf8')
    expect(made).toMatch(/^[0-9a-f]{64}\n$/)
    expect(await start(undefined)).toBeUndefined()
    expect(await readFile(join(dataDir, 'master.key'), 'utf8')).toBe(made)
    // No secret has been stored: the fingerprint alone says that there was a key.
    await rm(join(dataDir, 'master.key'))
    expect(await start(undefined)).toContain('is missing, and')
    expect(await readdir(dataDir)).not.toContain('master.key')
  })

  test('gets a single key file, readable only by its owner, from processes that start at once', async () => {
    await (await openDatabase({ dataDir, databaseUrl: database.ownerUrl })).close()
    const pool = new pg.Pool({ connectionString: database.ownerUrl, max: 10 })
    const settings = { masterKey: undefined, dataDir: join(dataDir, 'made', 'by', 'need') }
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const client = await pool.connect()
        await (await keyCheck(settings))(client).finally(() => client.release())
      }),
    )
    await pool.end()
    expect(await readdir(settings.dataDir)).toEqual(['master.key'])
    expect((await stat(join(settings.dataDir, 'master.key'))).mode & 0o777).toBe(0o600)
    const { dataDir: made } = settings
    expect(await ask(database.ownerUrl, 'select fingerprint as kept from grandlivre.adopted_key')).toEqual([
      {
        kept: createHmac('sha256', (await loadMasterKeys({ masterKey: undefined, dataDir: made }))[0])
          .update('grandlivre master key')
          .digest(),
      },
    ])
  })

  test('is not migrated while the key file is empty', async () => {
    await writeFile(join(dataDir, 'master.key'), '')
    expect(await start(undefined)).toContain('must hold 64 hexadecimal digits')
    expect(await ask(database.ownerUrl, `select to_regnamespace('grandlivre') as schema`)).toEqual([
      { schema: null },
    ])
  })

  test('takes the key of its service, even if a command with another key came first but stored no secret', async () => {
    expect(await command(randomBytes(32), 'migrate')).toBe('')
    expect(await command(testMasterKey, 'partner', 'create', '--code', 'ONE', '--name', 'One')).toBe('')
    expect(await command(randomBytes(32), 'migrate')).toMatch(remedy)
    expect(await start(randomBytes(32))).toMatch(remedy)
    expect(await start(testMasterKey)).toBeUndefined()
  })

  test('adopts one of two keys that arrive at once, and refuses the other', async () => {
    const opened = await Promise.allSettled(
      [randomBytes(32), randomBytes(32)].map(async (masterKey) => {
        const check = await keyCheck({ masterKey, dataDir })
        return openDatabase({ dataDir, databaseUrl: database.ownerUrl }, { check })
      }),
    )
    const refused = opened.filter((each) => each.status === 'rejected')
    expect(refused.map(({ reason }) => String(reason))).toEqual([expect.stringMatching(remedy)])
  })

  test('adopts one of two keys even through logins that may not migrate', async () => {
    await (await openDatabase({ dataDir, databaseUrl: database.ownerUrl })).close()
    const adopted = await Promise.allSettled(
      [testMasterKey, randomBytes(32)].map(async (masterKey) => {
        const check = await keyCheck({ masterKey, dataDir })
        const client = new pg.Client({ connectionString: database.serviceUrl })
        await client.connect()
        await check(client).finally(() => client.end())
      }),
    )
    expect(adopted.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})

test('a database of an earlier version refuses another key before it is migrated', async () => {
  await makeOld()
  const steps: string[] = []
  const onStep = (doing: string) => {
    steps.push(doing)
    return () => {}
  }
  const check = await keyCheck({ masterKey: randomBytes(32), dataDir })
  await expect(openDatabase({ dataDir, databaseUrl: database.ownerUrl }, { check, onStep })).rejects.toThrow(
    remedy,
  )
  expect(steps).toEqual([])
})

test('a database of an earlier version adopts the key of its newest secret, not of an older one', async () => {
  await makeOld()
  const former = randomBytes(32)
  await ask(
    database.ownerUrl,
    `insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted, created_at, retired_at)
     select id, sha256('former'), '\\x${encrypt('former', former).toString('hex')}', now() - interval '1 day', now()
     from grandlivre.third_parties`,
  )
  expect(await command(former)).toMatch(remedy)
  expect(await command(testMasterKey)).toBe('')
})

test('a process becomes not ready once its database has adopted another key', async () => {
  await databases.new()
  const service = await startTestService(database)
  try {
    expect((await request(`${service.url}/readyz`)).status).toBe(200)
    await ask(database.ownerUrl, `update grandlivre.adopted_key set fingerprint = sha256('another')`)
    const { status, body } = await request(`${service.url}/readyz`)
    expect([status, body.error.message]).toEqual([
      503,
      'Not ready: the database of DATABASE_URL (its MASTER_KEY is not that of this process)',
    ])
  } finally {
    await service.stop()
  }
})

test('a database whose key is lost accepts a new key once its secrets are deleted', async () => {
  await makeKnown()
  const page = await readFile(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  const [statements] = page.match(/^begin;\n[^`]*commit;$/m)!
  await ask(database.ownerUrl, statements)
  const key = randomBytes(32)
  expect(await start(key)).toBeUndefined()
  expect(await command(key, 'partner', 'rotate-secret', '--code', 'ONE')).toBe('')
  expect(await command(testMasterKey)).toMatch(remedy)
})
