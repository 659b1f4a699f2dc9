import { describe, expect, test } from 'vitest'
import { migrate } from '../../src/db/migrations/migrate.ts'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { ensurePooledLogin, pooledLogin, withLogin } from '../support/pooled/pooled-run.ts'
import { ask } from '../support/servers/database.ts'
import { startOwnDatabase } from '../support/servers/own-database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { request, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const server = forTests(startOwnDatabase)
const logins = () => [withLogin(server.ownerUrl), server.ownerUrl]
const asTransactions = { poolMode: 'transaction', dropsOptions: false } as const
const bouncer = forTests(async () => {
  await ensurePooledLogin(server.ownerUrl)
  return startPgBouncer(logins(), asTransactions)
})
const sessions = forTests(() => startPgBouncer(logins(), { poolMode: 'session', dropsOptions: true }))

/** The error message of a start; undefined if it succeeds. */
async function complaintOf(databaseUrl: string, directDatabaseUrl: string): Promise<string | undefined> {
  const begun = performance.now()
  try {
    const service = await startTestService({ ownerUrl: databaseUrl }, { directDatabaseUrl })
    await service.stop()
    return undefined
  } catch (error) {
    expect(performance.now() - begun).toBeLessThan(5_000)
    return (error as Error).message
  } finally {
    expect(await locks()).toBe(0)
  }
}

async function locks(): Promise<number> {
  const [row] = await ask(
    server.ownerUrl,
    `select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database
     where locktype = 'advisory' and d.datname = current_database()`,
  )
  return Number(row?.['n'])
}

const title = isPgBouncerInstalled
  ? 'two addresses'
  : 'two addresses (needs PgBouncer: apt-get install pgbouncer)'

describe.skipIf(!isPgBouncerInstalled)(title, () => {
  const through = () => bouncer.through(withLogin(server.ownerUrl))

  /**
   * The error message of a start after a change to the login. The pooler is new, because a pooler remembers the date
   * style of its first session.
   */
  async function complaintAfter(change: string): Promise<string | undefined> {
    await ask(server.ownerUrl, `alter role ${pooledLogin.name} ${change}`)
    const own = await startPgBouncer([withLogin(server.ownerUrl)], asTransactions)
    try {
      return await complaintOf(own.through(withLogin(server.ownerUrl)), server.ownerUrl)
    } finally {
      await own.stop()
      for (const setting of [`role = 'grandlivre_service'`, 'search_path = grandlivre', 'datestyle = ISO'])
        await ask(server.ownerUrl, `alter role ${pooledLogin.name} set ${setting}`)
    }
  }

  test('a service starts with a pooler beside the server, and commands need only the server', async () => {
    expect(await complaintOf(through(), server.ownerUrl)).toBeUndefined()
    const { code, out } = await cli(server.ownerUrl, 'migrate')
    expect([code, out]).toEqual([0, expect.stringContaining('The database is at version')])
  })

  test.each([
    ['the role', 'reset role', 'Requests would run with the role web and not grandlivre_service.'],
    [
      'the search path',
      'reset search_path',
      'Requests would run with the search path "$user", public and not',
    ],
    [
      'the date style',
      `set datestyle = 'German'`,
      'Requests would run with the date style German, DMY and not ISO.',
    ],
  ])('a login without %s is refused, with the statements that it needs', async (_, change, sentence) => {
    const complaint = await complaintAfter(change)
    expect(complaint).toContain('The connection to DATABASE_URL is not safe to use:\n')
    expect(complaint).toContain(sentence)
    expect(complaint).toContain(
      `alter role web set role = 'grandlivre_service'; alter role web set search_path =`,
    )
  })

  test('a login that owns the tables is refused, even if its settings switch to the service role', async () => {
    const owner = new URL(server.ownerUrl).username
    await ask(
      server.ownerUrl,
      `alter role ${owner} set role = 'grandlivre_service'; alter role ${owner} set search_path = grandlivre`,
    )
    try {
      expect(await complaintOf(bouncer.through(server.ownerUrl), server.ownerUrl)).toContain(
        `The login ${owner} is one that row-level security does not bind, whatever its role`,
      )
    } finally {
      await ask(
        server.ownerUrl,
        `set role = none; alter role ${owner} reset role; alter role ${owner} reset search_path`,
      )
    }
  })

  test.each(['transaction', 'session'] as const)(
    'DIRECT_DATABASE_URL through a pooler in %s mode is refused',
    async (mode) => {
      const pooler = mode === 'session' ? sessions : bouncer
      const complaint = await complaintOf(through(), pooler.through(server.ownerUrl))
      expect(complaint).toContain('The connection to DIRECT_DATABASE_URL is not safe to use:\n')
      expect(complaint).toMatch(/pooler (in front of PostgreSQL|refuses our settings)/)
    },
  )

  test('a pooled and a direct address of different databases are refused', async () => {
    await ask(server.ownerUrl, 'create database other')
    const other = server.ownerUrl.replace(/\/[a-z]+(?=\?|$)/, '/other')
    await migrate(other)
    expect(await complaintOf(bouncer.through(withLogin(other)), server.ownerUrl)).toContain(
      'DATABASE_URL and DIRECT_DATABASE_URL lead to different databases',
    )
  })

  test('the service waits for an unreachable address, and /readyz names it', async () => {
    const nowhere = server.ownerUrl.replace(/:\d+\//, ':1/')
    for (const [name, databaseUrl, directDatabaseUrl] of [
      ['DATABASE_URL', nowhere, server.ownerUrl],
      ['DIRECT_DATABASE_URL', through(), nowhere],
    ] as const) {
      await using service = await startTestService({ ownerUrl: databaseUrl }, { directDatabaseUrl })
      const { status, body } = await request(`${service.url}/readyz`)
      expect([status, body.error.message]).toEqual([503, expect.stringContaining(`the database of ${name}`)])
    }
  })

  test('a restart of the pooler has no lasting effect', async () => {
    const own = await startPgBouncer([withLogin(server.ownerUrl)], asTransactions)
    const address = own.through(withLogin(server.ownerUrl))
    const { url, stop } = await startTestService(
      { ownerUrl: address },
      { directDatabaseUrl: server.ownerUrl },
    )
    const ready = async () => (await request(`${url}/readyz`)).status
    try {
      expect(await ready()).toBe(200)
      await own.stop()
      expect(await ready()).toBe(503)
      const port = Number(new URL(address).port)
      const again = await startPgBouncer([withLogin(server.ownerUrl)], { ...asTransactions, port })
      await until(async () => (await ready()) === 200)
      await stop()
      await again.stop()
    } finally {
      await ask(
        server.ownerUrl,
        'select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where usename = $1',
        [pooledLogin.name],
      )
    }
  })
})
