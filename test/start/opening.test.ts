/** Answers to probes and other requests while a process opens its database. */
import { createServer } from 'node:http'
import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrate } from '../../src/db/migrations/migrate.ts'
import { listen } from '../../src/listen.ts'
import { startCli } from '../support/cli.ts'
import { forEachTest } from '../support/for-tests.ts'
import { ask, connect, createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const database = forEachTest(createTestDatabase)
/** Its transaction holds up the migration that creates the tables of the master key. */
let holder: pg.Client
/** The addresses at which the services will listen. */
let urls: string[]

beforeEach(async () => {
  await ask(
    database.ownerUrl,
    `drop function grandlivre.master_key_standing(), grandlivre.adopt_master_key(bytea), grandlivre.sealing_key();
     drop table grandlivre.adopted_key, grandlivre.next_key;
     delete from grandlivre.migrations where name in ('0013_master_key.expand.sql', '0022_rotate_key.expand.sql')`,
  )
  holder = await connect(database.ownerUrl)
  await holder.query('begin; update grandlivre.folders set name = name where false')
  urls = []
})
afterEach(() => holder.end())

/** Settings with a port that is free. */
async function onFreePort(): Promise<{ port: number }> {
  const server = createServer()
  const port = await listen(server, { host: '127.0.0.1', port: 0 }, { port: 'PORT', host: 'HOST' })
  server.close()
  urls.push(`http://127.0.0.1:${port}`)
  return { port }
}

const readiness = async (url: string) => {
  const { status, body } = await request(`${url}/readyz`).catch(() => ({ status: 0, body: undefined }))
  return [status, body?.error?.message ?? body?.status]
}
const isAt = (url: string, text: RegExp) =>
  until(async () => {
    const [status, message] = await readiness(url)
    return status === 503 && text.test(message)
  })
const locksOfMigrations = `select count(*)::int as held from pg_locks where locktype = 'advisory' and objid = 7301001
  and granted and database = (select oid from pg_database where datname = current_database())`
const eventsOf = (lines: string[], event: string) =>
  lines.map((line) => JSON.parse(line)).filter((line) => line.event === event)

test('a process that migrates, and a process that waits for it, answer probes and give 503 to all other requests', async () => {
  const migrating = startTestService(database, await onFreePort())
  await isAt(urls[0]!, /^Not ready: migrating, step 1 of \d+, \d+ s$/)
  const waiting = startTestService(database, await onFreePort())
  await isAt(urls[1]!, /^Not ready: waiting for another process that migrates, \d+ s$/)
  // The message counts the seconds of the step.
  await isAt(urls[0]!, /^Not ready: migrating, step 1 of \d+, [1-9]\d* s$/)
  for (const url of urls) {
    expect(await request(`${url}/healthz`)).toMatchObject({ status: 200, body: { status: 'up' } })
    for (const [path, method] of [
      ['/api/v1/key/info', 'GET'],
      ['/api/v1/mad/movements', 'HEAD'],
      ['/api/v1/webhook', 'POST'],
      ['/files/any', 'GET'],
      ['/docs', 'GET'],
      ['/nowhere', 'GET'],
    ] as const) {
      const { status, headers, body } = await request(url + path, {}, method)
      expect([path, status, headers.get('retry-after')]).toEqual([path, 503, '5'])
      if (method !== 'HEAD') expect(body.error.code).toBe('ERR-UNAVAILABLE')
    }
  }
  await holder.query('rollback')
  const services = await Promise.all([migrating, waiting])
  try {
    for (const { url } of services) expect(await readiness(url)).toEqual([200, 'ready'])
    const [lines, linesOfWaiting] = services.map((service) => service.lines) as [string[], string[]]
    const began = eventsOf(lines, 'migration.began')
    expect(began.map(({ doing }) => doing)).toEqual(
      began.map((_, index) => `migrating, step ${index + 1} of ${began.length}`),
    )
    expect(began[0].file).toBe('0013_master_key.expand.sql')
    const ended = eventsOf(lines, 'migration.ended')
    expect(ended.map(({ doing, file }) => [doing, file])).toEqual(
      began.map(({ doing, file }) => [doing, file]),
    )
    // The test has seen the first step take more than a second.
    expect(ended[0].ms).toBeGreaterThan(1_000)
    for (const { ms } of ended) expect(ms).toBeTypeOf('number')
    expect(eventsOf(linesOfWaiting, 'database.waiting')).toMatchObject([
      { level: 'warn', doing: 'waiting for another process that migrates' },
    ])
    expect(eventsOf(linesOfWaiting, 'migration.began')).toEqual([])
  } finally {
    for (const service of services) await service.stop()
  }
})

test('a process whose database came back while it waited answers probes and gives 503 to all other requests', async (context) => {
  const proxy = await startProxy(database.ownerUrl)
  context.onTestFinished(() => proxy.cut())
  await proxy.cut()
  await using service = await startTestService({ ownerUrl: proxy.url })
  expect(await readiness(service.url)).toEqual([503, 'Not ready: the database of DATABASE_URL'])
  await proxy.restore()
  await isAt(service.url, /^Not ready: migrating, step 1 of \d+, \d+ s$/)
  expect((await request(`${service.url}/api/v1/key/info`)).status).toBe(503)
  await holder.query('rollback')
  await until(async () => (await readiness(service.url))[0] === 200)
})

test('a staff command that waits for a migration in another process says so', async () => {
  const migrating = migrate(database.ownerUrl)
  await until(async () => (await ask(database.ownerUrl, locksOfMigrations))[0]?.['held'] === 1)
  const { ended, soFar } = startCli(database.ownerUrl, 'token', 'list')
  await until(() => soFar.error === 'waiting for another process that migrates\n')
  await holder.query('rollback')
  await migrating
  expect((await ended).code).toBe(0)
})

test('an up-to-date database is opened without any migration step', async () => {
  await holder.query('rollback')
  await migrate(database.ownerUrl)
  const service = await startTestService(database)
  await service.stop()
  expect(service.lines.join('')).not.toMatch(/migration\.|database\.waiting/)
})
