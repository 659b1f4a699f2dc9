import pg from 'pg'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asServiceRole } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { startProcess } from '../support/process.ts'
import { ask } from '../support/servers/database.ts'
import { startOwnDatabase } from '../support/servers/own-database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { startTestService } from '../support/service.ts'

// Runs without the pooler of the run: the tests are about the address itself.
withoutPooler()

/** A server with a login of each kind, each with a database of its own. */
const server = forTests(startOwnDatabase)

const logins = ['grandlivre', 'books_owner', 'bypasser'] as const
type Login = (typeof logins)[number]

beforeAll(async () => {
  for (const statement of [
    `create role books_owner login createrole password 'secret'`,
    `create role bypasser login bypassrls createrole password 'secret'`,
    'grant grandlivre_service to books_owner, bypasser with admin option, set true',
    ...logins.map((login) => `create database of_${login} owner ${login}`),
  ])
    await ask(server.ownerUrl, statement)
})

function urlOf(login: Login): string {
  const url = new URL(server.ownerUrl)
  url.pathname = `/of_${login}`
  if (login !== 'grandlivre') Object.assign(url, { username: login, password: 'secret' })
  return url.href
}

/** The error message of a start; undefined if it succeeds. */
async function complaintOf(databaseUrl: string): Promise<string | undefined> {
  try {
    const service = await startTestService({ ownerUrl: databaseUrl })
    await service.stop()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

async function advisoryLocks(): Promise<number> {
  const rows = await ask(
    server.ownerUrl,
    `select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database
     where locktype = 'advisory' and d.datname like 'of_%'`,
  )
  return Number(rows[0]?.['n'])
}

async function requestsOf(login: Login): Promise<unknown> {
  const pool = createPool(asServiceRole(urlOf(login)), { max: 1, applicationName: 'test' })
  try {
    const { rows } = await pool.query(
      `select current_user as role, row_security_active('folders') as folders,
         row_security_active('movements') as movements, row_security_active('events') as events`,
    )
    return rows[0]
  } finally {
    await pool.end()
  }
}

const bound = { role: 'grandlivre_service', folders: true, movements: true, events: true }

test.each(logins)(
  'directly, the login %s starts, and row-level security binds its requests',
  async (login) => {
    expect(await complaintOf(urlOf(login))).toBeUndefined()
    expect(await requestsOf(login)).toEqual(bound)
  },
)

const title = isPgBouncerInstalled ? 'a pooler' : 'a pooler (needs PgBouncer: apt-get install pgbouncer)'
describe.skipIf(!isPgBouncerInstalled).each([
  { poolMode: 'session', dropsOptions: true },
  { poolMode: 'transaction', dropsOptions: true },
  { poolMode: 'session', dropsOptions: false },
] as const)(`${title} in $poolMode mode (drops our settings: $dropsOptions)`, (options) => {
  const bouncer = forTests(() => startPgBouncer(logins.map(urlOf), options))

  test.each(logins)('is refused with the login %s, and leaves no lock', async (login) => {
    // The database is migrated, like that of a service that has run before.
    await migrate(urlOf(login))
    const complaint = await complaintOf(bouncer.through(urlOf(login)))
    expect(complaint).toContain('The connection to DATABASE_URL is not safe to use:\n')
    expect(complaint).toMatch(/pooler (in front of PostgreSQL|refuses our settings)/)
    if (options.dropsOptions) {
      expect(complaint).toContain(
        `Requests would run as the role ${login}, which row-level security does not`,
      )
      expect(complaint).toContain('The search path is "$user", public and not grandlivre')
    }
    expect(await advisoryLocks()).toBe(0)
    expect(await complaintOf(urlOf(login))).toBeUndefined()
    expect(await requestsOf(login)).toEqual(bound)
  })

  test('is refused for an empty database, which stays empty', async () => {
    await ask(server.ownerUrl, 'create database empty owner books_owner')
    const url = urlOf('books_owner').replace('/of_books_owner', '/empty')
    await expect(migrate(bouncer.through(url))).rejects.toThrow('pooler')
    expect(await complaintOf(bouncer.through(url))).toContain('pooler')
    expect(await ask(url, `select to_regnamespace('grandlivre') as schema`)).toEqual([{ schema: null }])
    await ask(server.ownerUrl, 'drop database empty with (force)')
  })
})

// A login with its own search path finds the schema even if the start-up options are dropped, so a check of the schema
// alone would not notice the pooler.
test.skipIf(!isPgBouncerInstalled).each([
  ['grandlivre', false],
  ['elsewhere', true],
] as const)('a pooler is refused even if the search path of the login is %s', async (path, isWrong) => {
  await ask(server.ownerUrl, `alter role books_owner set search_path = ${path}`)
  const bouncer = await startPgBouncer([urlOf('books_owner')], { poolMode: 'session', dropsOptions: true })
  try {
    const complaint = await complaintOf(bouncer.through(urlOf('books_owner')))
    expect(complaint).toContain('There is a pooler in front of PostgreSQL')
    expect(complaint).toContain('Requests would run as the role books_owner')
    expect(complaint?.includes('The search path is')).toBe(isWrong)
  } finally {
    await bouncer.stop()
    await ask(server.ownerUrl, 'alter role books_owner reset search_path')
  }
})

test.skipIf(!isPgBouncerInstalled)(
  'the process ends and prints the reasons, even if only exports go through a pooler',
  async () => {
    const bouncer = await startPgBouncer(logins.map(urlOf), { poolMode: 'session', dropsOptions: true })
    const direct = urlOf('books_owner')
    const pooled = bouncer.through(direct)
    try {
      await expect(startProcess({ DATABASE_URL: pooled })).rejects.toThrow(
        'The connection to DATABASE_URL is not safe to use:\n  - There is a pooler in front of PostgreSQL',
      )
      await expect(startProcess({ DATABASE_URL: direct, EXPORT_DATABASE_URL: pooled })).rejects.toThrow(
        'The connection to EXPORT_DATABASE_URL is not safe to use:\n  - There is a pooler in front of',
      )
      const { code, error } = await cli(pooled, 'migrate')
      expect([code, error]).toEqual([
        1,
        expect.stringContaining('  - There is a pooler in front of PostgreSQL'),
      ])
    } finally {
      await bouncer.stop()
    }
  },
)

describe('a direct connection', () => {
  beforeEach(() => migrate(urlOf('books_owner')))

  afterEach(async () => {
    await ask(server.ownerUrl, 'alter role grandlivre_service nosuperuser nobypassrls')
    await ask(urlOf('books_owner'), 'alter table grandlivre.banks enable row level security')
    await ask(
      urlOf('grandlivre').replace('of_grandlivre', 'of_books_owner'),
      'drop event trigger if exists at_login',
    )
  })

  const complaint = () => complaintOf(urlOf('books_owner'))

  test.each(['bypassrls', 'superuser'])('is refused if the service role has %s', async (attribute) => {
    await ask(server.ownerUrl, `alter role grandlivre_service ${attribute}`)
    expect(await complaint()).toMatch(
      /- Row-level security does not bind grandlivre_service on \w+, \w+, \w+ and \d+ more\. As an administrator: alter role grandlivre_service nosuperuser nobypassrls/,
    )
  })

  test('is refused if row-level security of a single table is off', async () => {
    await ask(urlOf('books_owner'), 'alter table grandlivre.banks disable row level security')
    expect(await complaint()).toContain('does not bind grandlivre_service on banks.')
  })

  test.each([
    ['search_path', 'public', 'The search path is public and not grandlivre'],
    ['datestyle', 'German', 'The date style is German, DMY and not ISO'],
  ])('is refused if a login trigger sets another %s', async (name, value, sentence) => {
    const admin = urlOf('grandlivre').replace('of_grandlivre', 'of_books_owner')
    await ask(
      admin,
      `create or replace function at_login() returns event_trigger language plpgsql as
         $$ begin perform set_config('${name}', '${value}', false); end $$;
       create event trigger at_login on login execute function at_login()`,
    )
    expect(await complaint()).toContain(sentence)
  })
})

test('a migration that waits too long for another names the holder of the lock, and leaves no lock', async () => {
  const url = urlOf('books_owner')
  await migrate(url)
  const holder = new pg.Client({ connectionString: url, application_name: 'a leaked one' })
  await holder.connect()
  const { rows } = await holder.query('select pg_advisory_lock(7301001), pg_backend_pid() as pid')
  try {
    await expect(migrate(url, { lockMs: 50 })).rejects.toThrow(
      new RegExp(
        'Another connection has held the lock of the migrations for 0.05 seconds: ' +
          `process ${rows[0].pid} of login books_owner from 127.0.0.1 \\(a leaked one\\), connected since \\d{4}-`,
      ),
    )
    expect(await advisoryLocks()).toBe(1)
  } finally {
    await holder.end()
  }
  expect(await migrate(url)).toEqual([])
})

test('the message omits details of the lock holder that the server hides', async () => {
  const url = urlOf('books_owner')
  await migrate(url)
  // The login of the migration may not see the connections of the administrator.
  const holder = new pg.Client(urlOf('grandlivre').replace('of_grandlivre', 'of_books_owner'))
  await holder.connect()
  await holder.query('select pg_advisory_lock(7301001)')
  try {
    await expect(migrate(url, { lockMs: 50 })).rejects.toThrow(
      / of login grandlivre from an unknown address \(no name\), connected at an unknown time\. /,
    )
  } finally {
    await holder.end()
  }
})
