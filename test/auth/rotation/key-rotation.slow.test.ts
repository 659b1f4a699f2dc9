/** `rotate-key`, with a process that has both keys and goes on through it. */
import { execFileSync } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sweepAudit } from '../../../src/audit/retention.ts'
import { linkKey, sealingKey } from '../../../src/auth/master-key.sql.ts'
import { decrypt, encrypt } from '../../../src/auth/secrets.ts'
import { openStore } from '../../../src/store/open-store.ts'
import { storeSettings } from '../../../src/store/store.ts'
import { defaultTiming } from '../../../src/timing.ts'
import { cli } from '../../support/cli.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { createTenants, credentials, folders } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { request, startTestService, type TestService, testMasterKey } from '../../support/service.ts'

/** For states of a rotation that last some milliseconds, on a busy machine too. */
const patient = { interval: 5, timeout: 20_000 }
const fresh = randomBytes(32)
const both = { masterKey: fresh, formerMasterKey: testMasterKey }
const nameOf = (key: Buffer) =>
  createHmac('sha256', key).update('grandlivre master key').digest('hex').slice(0, 8)
const [oldName, newName] = [nameOf(testMasterKey), nameOf(fresh)]

const database = forEachTest(() => createTestDatabase())
const staff = forEachTest(() => createTenants(database.ownerUrl))
let secret: string
let headers: Record<string, string>
let running: TestService[]
let ends: (() => Promise<void>)[]

beforeEach(async () => {
  running = []
  ends = []
  secret = await staff.thirdParty('ONE')
  headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
  await (await start({ masterKey: testMasterKey })).stop()
  running = []
})
afterEach(async () => {
  for (const service of running) await service.stop()
  for (const end of ends.reverse()) await end()
})

async function start(settings: Parameters<typeof startTestService>[1]): Promise<TestService> {
  const service = await startTestService(database, { webhookAllowInsecure: true, ...settings })
  running.push(service)
  return service
}

const keysOf = (to?: Buffer, former?: Buffer) => ({
  MASTER_KEY: to?.toString('hex') ?? '',
  FORMER_MASTER_KEY: former?.toString('hex') ?? '',
})
const command = (keys: Record<string, string>, ...words: string[]) =>
  cli({ ownerUrl: database.ownerUrl, env: keys }, ...words)
const rotate = (to: Buffer, former: Buffer) => command(keysOf(to, former), 'rotate-key')

/** A session of a process without keys. */
async function connectAs(name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.serviceUrl, application_name: name })
  await client.connect()
  ends.push(() => client.end())
  return client
}

/** Every encrypted secret. */
async function sealed(): Promise<Buffer[]> {
  const { rows } = await staff.client.query(
    `select secret_encrypted as sealed from grandlivre.third_party_secrets where secret_encrypted <> ''
     union all select secret_encrypted from grandlivre.signing_secrets`,
  )
  return rows.map((row) => row.sealed)
}

async function subscribe({ url }: TestService): Promise<{ id: string; signingSecret: string }> {
  const body = JSON.stringify({ postUrl: 'http://127.0.0.1:9/hook', onEvents: ['document'] })
  const answer = await fetch(`${url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  expect(answer.status).toBe(201)
  return (await answer.json()) as { id: string; signingSecret: string }
}

/** 1 once a rotation has begun. */
const hasBegun = async () => (await staff.client.query('select from grandlivre.next_key')).rowCount

/** Everything that the command may change. */
async function stateOf(): Promise<unknown[]> {
  const { rows } = await staff.client.query(
    `select (select fingerprint from grandlivre.adopted_key), (select count(*) from grandlivre.next_key) as next,
       (select count from grandlivre.audit_head) as audit`,
  )
  return [rows, (await sealed()).map(String).sort()]
}

test('a process with both keys keeps working through a rotation; afterwards the new key alone is enough', async () => {
  const service = await start(both)
  const before = await subscribe(service)
  expect((await sealed()).every((each) => decrypt(each, [testMasterKey]) !== '')).toBe(true)
  const done = await rotate(fresh, testMasterKey)
  expect(done.error).toContain(`From key ${oldName} to key ${newName}`)
  expect(done.out).toContain(
    `Key ${newName} is that of this database; before it was ${oldName}. 2 secrets were re-encrypted.`,
  )
  expect(done.out).toContain('In an hour, when addresses of files that the former key signed have ended')
  expect(done.out).toMatch(new RegExp(`Keep key ${oldName} as long as the backups from before 20`))
  expect((await request(`${service.url}/readyz`)).status).toBe(200)
  const after = await subscribe(service)
  const secrets = (await sealed()).map((each) => decrypt(each, [fresh]))
  expect(secrets.toSorted()).toEqual([secret, before.signingSecret, after.signingSecret].toSorted())
  const { rows } = await staff.client.query(
    `select act, details::jsonb as details from grandlivre.audit_rows where act like 'rotate-key%' order by number`,
  )
  const between = { from: oldName, to: newName }
  expect(rows).toEqual([
    { act: 'rotate-key begins', details: between },
    { act: 'rotate-key', details: { ...between, secrets: 2 } },
  ])
  await start({ masterKey: fresh })
  await expect(start({ masterKey: testMasterKey })).rejects.toThrow(`The database names key ${newName}`)
  expect((await command(keysOf(fresh), 'token', 'list')).error).toBe('')
})

test('a rotation names a process that lacks the new key, and changes nothing', async () => {
  // An application name in the address does not hide the sessions of the process.
  const databaseUrl = `${database.ownerUrl}&application_name=ledger`
  const service = await start({ masterKey: testMasterKey, databaseUrl })
  const status = async () => (await command(keysOf(testMasterKey), 'status')).out
  await expect.poll(status, patient).toMatch(new RegExp(`^[^ ]+:${process.pid} `, 'm'))
  const before = await stateOf()
  const refused = await rotate(fresh, testMasterKey)
  expect(refused.code).toBe(1)
  expect(refused.error).toMatch(
    new RegExp(`Processes run without key ${newName} of MASTER_KEY: [^ ]+:${process.pid} .*connection \\d+`),
  )
  expect(await stateOf()).toEqual(before)
  expect((await request(`${service.url}/readyz`)).status).toBe(200)
})

test('a process of an earlier version counts as one that lacks the new key', async () => {
  const former = await connectAs('grandlivre dispatcher')
  expect((await rotate(fresh, testMasterKey)).error).toContain('of a former version')
  await former.end()
  await expect.poll(async () => (await rotate(fresh, testMasterKey)).code, patient).toBe(0)
})

test('the last step of a rotation refuses a process without the key that appeared after the first step', async () => {
  // A session of a process that has lost the session of its dispatcher.
  const others = await connectAs('grandlivre notifications')
  const rotation = rotate(fresh, testMasterKey)
  await expect.poll(hasBegun, patient).toBe(1)
  // Without the other session, the command would have ended by then.
  await delay(500)
  const back = await connectAs('grandlivre dispatcher web-1:4711 0.2.0')
  const refused = await rotation
  expect([refused.code, refused.error]).toEqual([1, expect.stringContaining('web-1:4711')])
  const { rows } = await staff.client.query('select fingerprint from grandlivre.adopted_key')
  expect(rows[0].fingerprint.toString('hex')).toMatch(new RegExp(`^${oldName}`))
  for (const client of [back, others]) await client.end()
  await expect.poll(async () => (await rotate(fresh, testMasterKey)).code, patient).toBe(0)
})

describe('bad keys are refused, and change nothing:', () => {
  const wrong = randomBytes(32)
  test.each([
    [
      'the same key twice',
      keysOf(testMasterKey, testMasterKey),
      'FORMER_MASTER_KEY is the same key as MASTER_KEY',
    ],
    ['no former key', keysOf(testMasterKey), 'FORMER_MASTER_KEY is not set'],
    ['no former key beside the new one', keysOf(fresh), 'set FORMER_MASTER_KEY to the one before'],
    [
      'a wrong former key',
      keysOf(fresh, wrong),
      `The database names key ${oldName}; MASTER_KEY and FORMER_MASTER_KEY hold keys`,
    ],
    ['no key at all', keysOf(), 'MASTER_KEY is required'],
    [
      'a malformed former key',
      { ...keysOf(fresh), FORMER_MASTER_KEY: 'abc' },
      'FORMER_MASTER_KEY must be 64 hexadecimal digits',
    ],
  ])('%s', async (_, keys, complaint) => {
    const before = await stateOf()
    const refused = await command(keys, 'rotate-key')
    expect([refused.code, refused.error]).toEqual([1, expect.stringContaining(complaint)])
    expect(await stateOf()).toEqual(before)
  })
})

describe('a rotation that was cut off', () => {
  beforeEach(async () => {
    await staff.thirdParty('TWO')
    await staff.client.query(
      `insert into grandlivre.next_key (fingerprint) values ('\\x${createHmac('sha256', fresh).update('grandlivre master key').digest('hex')}')`,
    )
    await staff.client.query(
      `update grandlivre.third_party_secrets set secret_encrypted = $1
       where third_party_id = (select id from grandlivre.third_parties where code = 'ONE')`,
      [encrypt(secret, fresh)],
    )
  })

  test('needs both keys until it is done, and resumes', async () => {
    for (const alone of [testMasterKey, fresh]) {
      const complaint = `rotate-key goes from key ${oldName} to key ${newName}, and MASTER_KEY holds key ${nameOf(alone)}`
      await expect(start({ masterKey: alone })).rejects.toThrow(complaint)
      expect((await command(keysOf(alone), 'token', 'list')).error).toContain(complaint)
    }
    const done = await rotate(fresh, testMasterKey)
    expect(done.error).toContain('after a run that was cut off')
    expect(done.out).toContain('1 secrets were re-encrypted')
    expect((await sealed()).map((each) => decrypt(each, [fresh]))).toContain(secret)
    await start({ masterKey: fresh })
  })

  test('is undone by a run with the keys exchanged', async () => {
    const service = await start(both)
    expect((await rotate(testMasterKey, fresh)).code).toBe(0)
    expect((await sealed()).map((each) => decrypt(each, [testMasterKey]))).toContain(secret)
    expect((await request(`${service.url}/readyz`)).status).toBe(200)
    await start({ masterKey: testMasterKey })
  })
})

test('a process that has only the former key is not ready once a rotation has begun', async () => {
  const service = await start({ masterKey: testMasterKey })
  await staff.client.query(`insert into grandlivre.next_key (fingerprint) values (sha256('next'))`)
  const { status, body } = await request(`${service.url}/readyz`)
  expect([status, body.error.message]).toEqual([
    503,
    'Not ready: the database of DATABASE_URL (rotate-key goes to a key that this process does not have)',
  ])
})

test('a writer that has already chosen its key delays the last step, and its row is re-encrypted too', async () => {
  const pool = new pg.Pool({ connectionString: database.serviceUrl, max: 2 })
  // The pool ends before its database is dropped, also if the test fails.
  ends.push(() => pool.end())
  const writer = await pool.connect()
  ends.push(async () => writer.release(true))
  await writer.query('begin')
  const chosen = await sealingKey(writer, [fresh, testMasterKey])
  expect(chosen).toEqual(testMasterKey)
  const rotation = rotate(fresh, testMasterKey)
  const waiting = `select from pg_locks where locktype = 'advisory' and not granted
    and mode = 'ExclusiveLock' and database = (select oid from pg_database where datname = current_database())`
  await expect.poll(async () => (await staff.client.query(waiting)).rowCount, patient).toBe(1)
  // The command gives up its lock and tries again. Meanwhile others can choose their key.
  await pool.query('select grandlivre.sealing_key()')
  await staff.client.query(
    `insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted, retired_at)
     select id, sha256('late'), $1, now() from grandlivre.third_parties`,
    [encrypt('late', chosen)],
  )
  await writer.query('commit')
  expect((await rotation).code).toBe(0)
  expect((await sealed()).map((each) => decrypt(each, [fresh]))).toContain('late')
  expect(await sealingKey(writer, [fresh, testMasterKey])).toEqual(fresh)
  await expect(sealingKey(writer, [testMasterKey])).rejects.toThrow('another MASTER_KEY')
})

test('a rotation holds no other locks while it waits for a locked row, and re-encrypts that row too', async () => {
  await staff.client.query('begin')
  await staff.client.query('update grandlivre.third_party_secrets set retired_at = retired_at')
  const rotation = rotate(fresh, testMasterKey)
  await expect.poll(hasBegun, patient).toBe(1)
  await staff.client.query('commit')
  expect((await rotation).code).toBe(0)
  expect((await sealed()).map((each) => decrypt(each, [fresh]))).toEqual([secret])
})

test('a later run re-encrypts what a command of an earlier version wrote, and names secrets that no key decrypts', async () => {
  expect((await rotate(fresh, testMasterKey)).code).toBe(0)
  expect((await rotate(fresh, testMasterKey)).out).toContain(
    `Key ${newName} of MASTER_KEY is that of this database already: every secret was encrypted with it.`,
  )
  await staff.thirdParty('LATE')
  await staff.client.query(
    `insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted, retired_at)
     select id, sha256('lost'), $1, now() from grandlivre.third_parties where code = 'LATE'`,
    [encrypt('lost', randomBytes(32))],
  )
  const { out } = await rotate(fresh, testMasterKey)
  expect(out).toContain('1 secrets were not encrypted with it, and are now')
  expect(out).toContain('open with neither key, as before, and have to be replaced: partner LATE.')
  await start({ masterKey: fresh })
})

describe('the start of the audit', () => {
  const signedBy = async (key: Buffer) => {
    // The rows so far are too young to be followed by an old one.
    await staff.client.query(
      `set session_replication_role = replica;
       delete from grandlivre.audit_rows;
       update grandlivre.audit_head set count = 0, hash = decode(repeat('00', 32), 'hex');
       set session_replication_role = origin;
       select grandlivre.append_audit(
         '[{"act":"test","at":"2020-01-01T00:00:00Z","details":"{}","outcome":"done"}]', 'test')`,
    )
    const pool = new pg.Pool({ connectionString: database.serviceUrl, max: 1 })
    expect(await sweepAudit({ database: pool, months: 12, signingKey: async () => key })).toBeGreaterThan(0)
    await pool.end()
  }
  const complaintOf = async (key: Buffer) => (await command(keysOf(key), 'audit', 'verify')).out

  test('is signed again with the new key', async () => {
    await signedBy(testMasterKey)
    expect((await command(keysOf(fresh, testMasterKey), 'audit', 'verify')).out).toContain(
      'The audit is whole',
    )
    expect((await rotate(fresh, testMasterKey)).code).toBe(0)
    expect(await complaintOf(fresh)).toContain('The audit is whole')
  })

  test('stays unchanged if neither key has signed it', async () => {
    await signedBy(randomBytes(32))
    expect((await rotate(fresh, testMasterKey)).out).toContain(
      'The start of the audit is signed with neither key, and keeps its signature',
    )
    expect(await complaintOf(fresh)).toContain('is not signed with this MASTER_KEY')
  })
})

test('links are signed with the key that the database names, and stay valid as long as a process has that key', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-links-'))
  const store = { kind: 'filesystem', folder } as const
  const pool = new pg.Pool({ connectionString: database.serviceUrl, max: 1 })
  const key = '100/export_1_1.json'
  const linkOf = async () => {
    const keys = [fresh, testMasterKey] as const
    const settings = storeSettings({ store, publicUrl: undefined }, keys, '')
    return (await openStore(settings, defaultTiming.store, () => linkKey(pool, keys))).signedUrl(key, 'a', 60)
  }
  const answersOf = (links: string[], { url }: TestService) =>
    Promise.all(links.map(async (link) => (await fetch(url + link)).status))
  const before = await linkOf()
  const old = await start({ masterKey: testMasterKey, store })
  // 410: the link is valid, and there is no such file.
  expect(await answersOf([before], old)).toEqual([410])
  await old.stop()
  running = []
  await rotate(fresh, testMasterKey)
  const links = [before, await linkOf()]
  expect(await answersOf(links, await start({ ...both, store }))).toEqual([410, 410])
  expect(await answersOf(links, await start({ masterKey: fresh, store }))).toEqual([403, 410])
  await pool.end()
  await rm(folder, { recursive: true })
})

test('the page on keys names keys as messages do, and its commands replace a key file', async ({ skip }) => {
  const page = await readFile(new URL('../../../docs/operators/keys.md', import.meta.url), 'utf8')
  const [naming, , replacing] = [...page.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, block]) => block!)
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-key-'))
  ends.push(() => rm(folder, { recursive: true }))
  const run = (script: string) =>
    execFileSync('sh', ['-ec', script], {
      cwd: folder,
      env: { PATH: process.env['PATH'], ...keysOf(fresh) },
      encoding: 'utf8',
    })
  expect(run(naming!)).toBe(`${newName}\n`)
  try {
    run('openssl version')
  } catch {
    skip('openssl is not installed')
  }
  const file = join(folder, '.data/master.key')
  await mkdir(join(folder, '.data'))
  await writeFile(file, `${testMasterKey.toString('hex')}\n`, { mode: 0o600 })
  expect(run(`${replacing!}\necho "$FORMER_MASTER_KEY"`)).toBe(`${testMasterKey.toString('hex')}\n`)
  expect(await readFile(`${file}.former`, 'utf8')).toBe(`${testMasterKey.toString('hex')}\n`)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const service = await start({
    masterKey: undefined,
    formerMasterKey: testMasterKey,
    dataDir: join(folder, '.data'),
  })
  const made = Buffer.from((await readFile(file, 'utf8')).trim(), 'hex')
  expect((await rotate(made, testMasterKey)).code).toBe(0)
  expect((await request(`${service.url}/readyz`)).status).toBe(200)
  await start({ masterKey: undefined, dataDir: join(folder, '.data') })
})
