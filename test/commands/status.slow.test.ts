/** `status` with and without a running service, and with problems that need the operator. */
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { exportQueue, queueSchema } from '../../src/db/migrations/queue-schema.ts'
import { cli } from '../support/cli.ts'
import { forEachTest, forTests } from '../support/for-tests.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { startTlsServer } from '../support/ops/certificate.ts'
import { setReplicatedStage } from '../support/replication/replicated-stage.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const days = (count: number) => new Date(Date.now() + count * 86_400_000)

const tls = forTests(() => startTlsServer(days(90)))
const database = forEachTest(createTestDatabase)
const owner = forEachTest(() => connect(database.ownerUrl))
let service: TestService | undefined
afterEach(async () => {
  await service?.stop()
  service = undefined
})

const status = (env: Record<string, string> = {}, ...words: string[]) =>
  cli({ ownerUrl: database.ownerUrl, env }, 'status', ...words)

async function read(env: Record<string, string> = {}) {
  const { code, out } = await status(env, '--json')
  return { code, status: JSON.parse(out) }
}

/** Starts the service, and waits until its session is there. */
async function start() {
  service = await startTestService(database)
  await until(async () => (await read()).status.processes.length === 1)
}

/** Starts the service once, which makes the database adopt its keys. */
async function adoptKeys() {
  await (await startTestService(database)).stop()
}

test('status without a running service says so, and exits with 2', async () => {
  const { code, out, error } = await status()
  expect(code).toBe(2)
  expect(out).toMatch(/^No process runs\.$/m)
  expect(out).not.toContain('All is well')
  expect(error).toBe('Not well:\n  No process of the service is connected to this database.\n')
  const json = await read()
  expect(json).toMatchObject({ code: 2, status: { well: false, processes: [], replica: null } })
  expect(json.status.problems).toEqual(['No process of the service is connected to this database.'])
})

test('status with a running service names its process, version, epoch and key, and exits with 0', async () => {
  await start()
  const { code, out, error } = await status({ PUBLIC_URL: tls.url })
  expect({ code, error }).toEqual({ code: 0, error: '' })
  expect(out).toMatch(new RegExp(`^\\S+:${process.pid} +${packageJson.version} .*as the database$`, 'm'))
  expect(out).toMatch(/^epoch +\d+, began 20\S+Z, \d+ (s|min|h|days) ago$/m)
  expect(out).toMatch(/^key +[0-9a-f]{8}$/m)
  expect(out).toMatch(/^certificate public +https:\S+ until 20\S+Z$/m)
  expect(out).toMatch(/^All is well\.$/m)
  const json = await read()
  expect(json.code).toBe(0)
  expect(json.status).toMatchObject({
    well: true,
    problems: [],
    version: packageJson.version,
    queue: { length: 0, ageSeconds: 0 },
    deliveries: { enabled: 0, oldestSeconds: 0 },
    certificates: [],
    tokensThatEnd: [],
  })
})

test('jobs that wait too long, a certificate near its end and maintenance are reported as problems', async () => {
  await adoptKeys()
  await owner.query(
    `insert into ${queueSchema}.job (name, start_after) values ($1, now() - interval '2 hours')`,
    [exportQueue],
  )
  await owner.query('update service_state set under_maintenance = true')
  await owner.query(
    `insert into erasures (kind, id, code, begun_at, ended_at)
     values ('partner', 900, 'GONE', '2026-01-31Z', null), ('folder', 901, null, '2026-01-31Z', now())`,
  )
  await tls.present(days(3))
  const { code, status } = await read({ PUBLIC_URL: tls.url })
  expect(code).toBe(2)
  expect(status.problems).toEqual([
    'No process of the service is connected to this database.',
    'Maintenance is on: every authenticated request gets 503 (maintenance off).',
    'The erasure of partner GONE, begun 2026-01-31T00:00:00Z, has not ended. If it is not running, run partner delete GONE --yes again.',
    'A full export has waited for 2 h for a process to begin it.',
    expect.stringMatching(/^The certificate of https:\S+ expires in [23] days\.$/),
  ])
  await tls.present(days(-1))
  expect((await read({ PUBLIC_URL: tls.url })).status.problems.at(-1)).toMatch(/ has expired\.$/)
  await owner.query('update service_state set under_maintenance = false; delete from erasures')
})

test('a delivery that waits too long is a problem only if its receiver does not fail', async () => {
  await (await createTenants(database.ownerUrl)).end()
  await adoptKeys()
  for (const words of [
    'partner create --code WAITS --name Waits',
    'webhook create --partner WAITS --url https://example.com/ --events document --schema 100',
    'event emit --schema 100 --folder 111 --name document --operation CREATE --data {"id":"77","kind":"PF","name":"a.pdf"}',
  ])
    expect((await cli(database.ownerUrl, ...words.split(' '))).error).toBe('')
  await owner.query(`update events set created_at = now() - interval '3 hours'`)
  expect((await read()).status.problems.slice(1)).toEqual([
    'A delivery has waited for 3 h, though its receiver does not fail.',
  ])
  await owner.query('update subscriptions set failing_since = now()')
  const { status: failing } = await read()
  expect([failing.problems.length, failing.deliveries.failing]).toEqual([1, 1])
})

test('a replica that stops replaying is reported as behind', async () => {
  const stage = await setReplicatedStage()
  try {
    const replica = async () => {
      const env = { EXPORT_DATABASE_URL: stage.standby.ownerUrl }
      return JSON.parse((await cli({ ownerUrl: stage.primary.ownerUrl, env }, 'status', '--json')).out)
        .replica
    }
    expect(await replica()).toEqual({ behindSeconds: 0, error: null })
    await stage.standby.pauseReplay()
    await stage.change('late')
    expect((await replica()).behindSeconds).toBeGreaterThan(0)
  } finally {
    await stage.standby.resumeReplay()
    await stage.close()
  }
})

test('an address that does not answer is reported as a problem, and status continues', async () => {
  await start()
  const nobody = await startTlsServer(days(90))
  await nobody.close()
  const replica = database.ownerUrl.replace(/:\d+\//, `:${new URL(nobody.url).port}/`)
  const { code, status } = await read({ PUBLIC_URL: nobody.url, EXPORT_DATABASE_URL: replica })
  expect(code).toBe(2)
  expect(status.problems).toEqual([
    expect.stringMatching(/^The replica of EXPORT_DATABASE_URL cannot be used: .*ECONNREFUSED/),
    expect.stringMatching(/^The certificate of https:\S+ cannot be read: .*ECONNREFUSED/),
  ])
})

test('status reports an EXPORT_DATABASE_URL of another database, and accepts one of the same database', async () => {
  await start()
  const other = await createTestDatabase()
  try {
    const { status } = await read({ EXPORT_DATABASE_URL: other.ownerUrl })
    expect(status.problems).toEqual([
      'The replica of EXPORT_DATABASE_URL cannot be used: no replica of the main database.',
    ])
    expect((await read({ EXPORT_DATABASE_URL: database.ownerUrl })).status.replica).toEqual({
      behindSeconds: 0,
      error: null,
    })
  } finally {
    await other.drop()
  }
})

test('tokens that end within 14 days are listed, but are no problem', async () => {
  const staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('ENDS')
  const issue = async (...expires: string[]) => {
    const words = 'token issue --partner ENDS --level api --folder 111'.split(' ')
    return /^Token (\d+)/.exec((await cli(database.ownerUrl, ...words, ...expires)).out)![1]!
  }
  const soon = await issue('--expires', '5')
  await issue()
  await issue('--expires', '15')
  const ended = await issue('--expires', '5')
  expect((await cli(database.ownerUrl, 'token', 'revoke', ended)).code).toBe(0)
  await staff.end()
  await start()
  const { code, out } = await status()
  expect(code).toBe(0)
  expect(out.split('Tokens that end within 14 days:\n')[1]).toMatch(
    new RegExp(`^ID .*\n${soon} +ENDS .*\n\nAll is well`),
  )
  expect((await read()).status.tokensThatEnd.map(({ id }: { id: string }) => id)).toEqual([soon])
})

test('status shows a session of a previous version, and reports a process that lacks the keys', async () => {
  const [former, lacking] = ['grandlivre dispatcher', 'grandlivre dispatcher web-1:4711 0.3.0'].map(
    (application_name) => new pg.Client({ connectionString: database.serviceUrl, application_name }),
  ) as [pg.Client, pg.Client]
  await former.connect()
  try {
    await adoptKeys()
    const { code, out } = await status()
    expect(code).toBe(0)
    expect(out).toMatch(/^of a former version .*\?$/m)
    await lacking.connect()
    const { status: found } = await read()
    expect(found.problems).toEqual([
      expect.stringMatching(/^A process lacks the keys of this database: web-1:4711 /),
    ])
  } finally {
    await former.end()
    await lacking.end()
  }
})

test('status does not migrate a database, and does not create one at a wrong address', async () => {
  await owner.query('delete from migrations where version = (select max(version) from migrations)')
  const { rows } = await owner.query('select count(*)::int as count from migrations')
  const refused = await status()
  expect(refused.code).toBe(1)
  expect(refused.error).toMatch(
    /^The database is at version \d+ and this code needs \d+, but this command does not migrate it\./,
  )
  expect((await owner.query('select count(*)::int as count from migrations')).rows).toEqual(rows)
  const away = await cli({ ownerUrl: 'postgres://nobody@127.0.0.1:1/none', env: {} }, 'status')
  expect([away.code, away.out]).toEqual([1, ''])
  const wrong = await status({}, '--jason')
  expect([wrong.code, wrong.error]).toEqual([1, expect.stringContaining('--jason')])
  expect((await status({ PUBLIC_URL: 'ledger' })).error).toContain('PUBLIC_URL')
})
