/** What requests and /readyz get while the database cannot serve requests. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { migrate } from '../../src/db/migrations/migrate.ts'
import { Readiness } from '../../src/http/readiness.ts'
import { defaultTiming } from '../../src/timing.ts'
import { createTenants, credentials, folders, type Staff } from '../support/ledgers/tenants.ts'
import { fillDisk } from '../support/ops/fill-disk.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { ask } from '../support/servers/database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService, type TestService } from '../support/service.ts'
import { keyInfo } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

// These tests are about the address of the database, so no pooler replaces it.
withoutPooler()

/** The database server's own disk, if the test may mount one. */
let disk: string
let isMounted: boolean
let server: EmbeddedDatabase
/** The address with a login that is not a superuser, so that connection limits apply. */
let url: string
let staff: Staff
let signed: Record<string, string>

const journals = '/api/v1/mad/journals?version=1.0.0'

beforeAll(async () => {
  disk = await mkdtemp(join(tmpdir(), 'grandlivre-readiness-'))
  isMounted = mount(disk)
  await chmod(disk, 0o755)
  server = await startEmbeddedDatabase({ dataDir: join(disk, 'data'), durable: false })
  await ask(server.ownerUrl, `create role books_owner login createrole password 'secret'`)
  await ask(server.ownerUrl, 'grant grandlivre_service to books_owner with admin option, set true')
  await ask(server.ownerUrl, 'create database books owner books_owner')
  const address = new URL(server.ownerUrl)
  url = Object.assign(address, { username: 'books_owner', password: 'secret', pathname: '/books' }).href
  await migrate(url)
  staff = await createTenants(url)
  const secret = await staff.thirdParty('ONE')
  signed = credentials(await staff.token('ONE', 'api', folders.first), secret)
})

afterAll(async () => {
  await staff?.end()
  await server?.stop()
  if (isMounted) execFileSync('umount', ['-l', disk])
  await rm(disk, { recursive: true, force: true })
})

function mount(path: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'tmpfs', path], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** What /readyz reports as missing; empty if it is ready and not degraded. */
async function missing(service: TestService): Promise<string> {
  const { status, headers, body } = await request(`${service.url}/readyz`)
  if (status === 200) return ['degraded', ...(body.degraded ?? [])].slice(body.degraded ? 0 : 1).join(': ')
  expect([status, body.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect(JSON.stringify(body)).not.toMatch(/ECONN|postgres:|127\.0\.0\.1|books_owner|SQL/)
  return body.error.message.replace('Not ready: ', '')
}

async function statuses(service: TestService, ...paths: string[]): Promise<number[]> {
  const answers = await Promise.all(paths.map((path) => request(service.url + path, signed)))
  for (const { status, headers, body } of answers)
    if (status !== 200) {
      expect(body.error.code).toBe('ERR-UNAVAILABLE')
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
  return answers.map(({ status }) => status)
}

/** Waits until the service is ready, and expects it to serve requests. */
async function expectRecovery(service: TestService): Promise<void> {
  await until(async () => (await missing(service)) === '')
  expect(await statuses(service, keyInfo, journals)).toEqual([200, 200])
}

/** Starts a proxy in front of the database, which is away while the proxy is cut. */
async function proxyOf(isCut = false) {
  const proxy = await startProxy(url)
  onTestFinished(() => proxy.cut())
  if (isCut) await proxy.cut()
  return proxy
}

async function startBouncer() {
  const bouncer = await startPgBouncer([url], { poolMode: 'session', dropsOptions: true })
  onTestFinished(() => bouncer.stop())
  return bouncer
}

async function start(...settings: Parameters<typeof startTestService>): Promise<TestService> {
  const service = await startTestService(...settings)
  onTestFinished(() => service.stop())
  return service
}

describe('a database that is away when the process starts', () => {
  test('is reported until it is back; then requests and exports succeed', async () => {
    const proxy = await proxyOf(true)
    const service = await start({ ownerUrl: proxy.url })
    expect(await missing(service)).toBe('the database of DATABASE_URL')
    expect(await statuses(service, '/healthz', keyInfo, journals)).toEqual([200, 503, 503])
    expect(service.lines.some((line) => line.includes('service.waiting'))).toBe(true)
    await proxy.restore()
    await expectRecovery(service)
    const trigger = '/api/v1/mad/all?version=1.0.0&format=JSON'
    const { body } = await request(service.url + trigger, signed)
    const status = `/api/v1/mad/all/status?exportId=${body.id}`
    await until(async () => (await request(service.url + status, signed)).body.status === 'DONE')
  })

  test('blocks all requests while it is back with another schema version', async () => {
    const proxy = await proxyOf(true)
    const service = await start({ ownerUrl: proxy.url })
    onTestFinished(
      async () => void (await ask(url, 'delete from grandlivre.migrations where version = 9999')),
    )
    await ask(url, `insert into grandlivre.migrations (version, name) values (9999, 'of newer code')`)
    await proxy.restore()
    // Every ten seconds the service logs why it waits, so it has found the version when this line is there.
    await until(() => service.lines.some((line) => line.includes('is at version 9999')))
    expect(await statuses(service, keyInfo, journals)).toEqual([503, 503])
    expect(await missing(service)).toBe('the database of DATABASE_URL')
    await ask(url, 'delete from grandlivre.migrations where version = 9999')
    await expectRecovery(service)
  })

  test('is also awaited if it goes away during the start', async () => {
    const proxy = await proxyOf()
    const prepare = async () => {
      await proxy.cut()
      return () => {}
    }
    const service = await start({ ownerUrl: proxy.url }, {}, { prepare })
    expect(await missing(service)).toBe('the database of DATABASE_URL')
    await proxy.restore()
    await expectRecovery(service)
  })

  test('is also awaited if it has no free connection during the start', async () => {
    for (const statement of [
      `create role narrow login createrole connection limit 0 password 'secret'`,
      'grant grandlivre_service to narrow with admin option, set true',
      'create database of_narrow owner narrow',
    ])
      await ask(server.ownerUrl, statement)
    const service = await start({
      ownerUrl: url.replace('books_owner', 'narrow').replace('/books', '/of_narrow'),
    })
    expect(await missing(service)).toBe('the database of DATABASE_URL')
    expect(service.lines.join('')).toContain('refuses the connection: too many connections for role')
    await ask(server.ownerUrl, 'alter role narrow connection limit -1')
    await until(async () => (await missing(service)) === '')
  })

  test('does not prevent the process from stopping', async () => {
    const service = await startTestService({ ownerUrl: 'postgres://nobody:secret@127.0.0.1:1/none' })
    expect(await missing(service)).toBe('the database of DATABASE_URL')
    await service.stop()
  })

  test('is reported as degraded if only exports read from it, and they read the main database meanwhile', async () => {
    const proxy = await proxyOf(true)
    const service = await start({ ownerUrl: url }, { exportDatabaseUrl: proxy.url })
    expect(await missing(service)).toBe('degraded: the database of EXPORT_DATABASE_URL')
    expect(await statuses(service, keyInfo, journals)).toEqual([200, 200])
    await proxy.restore()
    await until(async () => (await missing(service)) === '')
    expect(await statuses(service, journals)).toEqual([200])
  })
})

describe.skipIf(!isPgBouncerInstalled)('a pooler that connects as another role', () => {
  test.each(['DATABASE_URL', 'EXPORT_DATABASE_URL'])(
    'is reported for the database of %s, and no request reads through it',
    async (name) => {
      const bouncer = await startBouncer()
      const proxy = await proxyOf()
      const isMain = name === 'DATABASE_URL'
      const service = await start(
        { ownerUrl: isMain ? proxy.url : url },
        isMain ? {} : { exportDatabaseUrl: proxy.url },
        // A server that is slow because the machine is busy is not away.
        { timing: { ...defaultTiming, replica: { ...defaultTiming.replica, silentMs: 10_000 } } },
      )
      expect(await missing(service)).toBe('')
      proxy.redirectTo(bouncer.through(url))
      await until(async () => (await missing(service)) !== '')
      expect(await missing(service)).toContain(`the database of ${name} (a safe connection to the database)`)
      expect(await statuses(service, keyInfo, journals)).toEqual(isMain ? [503, 503] : [200, 200])
      proxy.redirectTo(url)
      await expectRecovery(service)
    },
  )

  test('is reported even if its address was away at the start, and requests are refused', async () => {
    const bouncer = await startBouncer()
    const proxy = await proxyOf(true)
    const service = await start({ ownerUrl: proxy.url })
    proxy.redirectTo(bouncer.through(url))
    await proxy.restore()
    await until(async () => (await missing(service)).includes('a safe connection to the database'))
    expect(await statuses(service, keyInfo, journals)).toEqual([503, 503])
    proxy.redirectTo(url)
    await expectRecovery(service)
  })
})

describe('a running database server', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ ownerUrl: url })
  })
  afterAll(() => service?.stop())

  test('is reported if row-level security does not bind the service role any more', async () => {
    expect(await missing(service)).toBe('')
    await ask(server.ownerUrl, 'alter role grandlivre_service bypassrls')
    expect(await missing(service)).toContain('a safe connection to the database')
    await ask(server.ownerUrl, 'alter role grandlivre_service nobypassrls')
    await until(async () => (await missing(service)) === '')
  })

  test('is reported if it has another schema version', async () => {
    await ask(url, `insert into grandlivre.migrations (version, name) values (9999, 'of newer code')`)
    expect(await missing(service)).toBe('the database of DATABASE_URL (the version of this process)')
    expect(service.lines.join('')).toContain('The database is at version 9999, and this process needs ')
    // Processes of this version can use a newer database if its migrations only expand.
    await ask(url, `update grandlivre.migrations set name = '9999_newer.expand.sql' where version = 9999`)
    expect(await missing(service)).toBe('')
    await ask(url, 'delete from grandlivre.migrations where version = 9999')
    expect(await missing(service)).toBe('')
  })

  test('is reported once requests failed to get a connection, and recovers by itself', async () => {
    await ask(server.ownerUrl, 'alter role books_owner connection limit 1')
    const ofThreads = `from pg_stat_activity where application_name = 'grandlivre export'`
    await ask(server.ownerUrl, `select pg_terminate_backend(pid, 10000) ${ofThreads}`)
    expect(await statuses(service, ...Array(10).fill(journals))).toEqual(Array(10).fill(503))
    expect(await missing(service)).toContain('a free connection to the database')
    await ask(server.ownerUrl, 'alter role books_owner connection limit -1')
    await expectRecovery(service)
  })

  test('is reported until a connection is free, also if exports read elsewhere', async () => {
    await ask(server.ownerUrl, `create role reader login password 'secret'`)
    await ask(server.ownerUrl, 'grant grandlivre_service to reader with set true')
    const ofReader = url.replace('books_owner', 'reader')
    const timing = { ...defaultTiming, missingMs: 500 }
    const other = await start({ ownerUrl: ofReader }, { exportDatabaseUrl: url }, { timing })
    expect(await statuses(other, journals)).toEqual([200])
    await ask(server.ownerUrl, 'alter role reader connection limit 1')
    // The open connections wait for a lock, so that the other requests need new ones.
    await staff.client.query('begin; lock table grandlivre.rate_windows in access exclusive mode')
    const answers = statuses(other, ...Array(10).fill(journals))
    await until(() => other.lines.some((line) => line.includes('request.failed')))
    await staff.client.query('rollback')
    expect(await answers).toContain(503)
    await setTimeout(timing.missingMs)
    expect(await missing(other)).toBe('a free connection to the database')
    const failed = other.lines.filter((line) => line.includes('request.failed'))
    expect(failed.at(-1)).toContain('too many connections for role')
    await ask(server.ownerUrl, 'alter role reader connection limit -1')
    await until(async () => (await missing(other)) === '')
  })

  test('is reported once requests failed on a full disk, and recovers by itself', async ({ skip }) => {
    if (!isMounted) skip('needs permission to mount a disk')
    expect(await statuses(service, keyInfo, journals)).toEqual([200, 200])
    const filler = join(disk, 'filler')
    await fillDisk(filler)
    expect(await statuses(service, ...Array(5).fill(journals))).toEqual(Array(5).fill(503))
    expect(await missing(service)).toContain('disk space of the database')
    await rm(filler)
    await expectRecovery(service)
  })
})

test('simultaneous probes share one check; a later probe checks again', async () => {
  const { promise: checked, reject } = Promise.withResolvers<void>()
  let checks = 0
  const check = () => {
    checks += 1
    return checked
  }
  const readiness = new Readiness([{ name: 'the store of files', label: 'store', check }], async () => {}, 0)
  const probes = Promise.all([readiness.check(), readiness.check()])
  const error = new Error('It is not there')
  reject(error)
  expect(await probes).toEqual(
    Array(2).fill({ missing: [{ name: 'the store of files', label: 'store', error }], degraded: [] }),
  )
  expect(checks).toBe(1)
  await readiness.check()
  expect(checks).toBe(2)
})
