/**
 * How long an export waits, with the limits of production: fifteen seconds for a thread, and fifteen seconds for both
 * its connections. Then a request is refused, and a full export returns to the queue.
 */
import pg from 'pg'
import { expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { forTests } from '../support/for-tests.ts'
import { downloadFile, ended, trigger } from '../support/full-export.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { ensurePooledLogin, withLogin } from '../support/pooled/pooled-run.ts'
import { ask, connect, createTestDatabase } from '../support/servers/database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { request, startTestService } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(() => setExportStage({ exportThreads: 1, exportsPerThread: 1 }))

test.concurrent('an export that finds no free thread is refused with Retry-After, and the next one is not', async () => {
  const { service, company } = stage
  const blocker = await connect(stage.database.ownerUrl)
  const ask = (what: string) => request(`${service.url}/api/v1/mad/${what}?version=1.0.0`, company)
  try {
    await blocker.query('begin; lock table banks in access exclusive mode')
    const running = ask('banks').catch((error: Error) => ({ status: error.message }))
    await until(async () => {
      const { rows } = await stage.staff.client.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    const began = performance.now()
    const { status, headers, body } = await ask('journals')
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'ERR-UNAVAILABLE', '10'])
    // The wait may be a little shorter, because timers count whole milliseconds.
    expect(performance.now() - began).toBeGreaterThan(limits.exportWaitMs - 100)
    const logged = () => service.lines.find((line) => line.includes('request.failed'))
    await until(() => logged() !== undefined)
    expect(logged()).toContain('raise EXPORT_THREADS or EXPORTS_PER_THREAD')
    await blocker.query('rollback')
    expect((await running).status).toBe(200)
    expect((await ask('journals')).status).toBe(200)
  } finally {
    await blocker.end()
  }
})

const title = isPgBouncerInstalled ? '' : ' (needs PgBouncer: apt-get install pgbouncer)'
test.skipIf(!isPgBouncerInstalled)(
  `a full export whose connections are all taken returns to the queue, uses up no attempt, and ends later${title}`,
  { concurrent: true },
  async () => {
    const { database, headers } = await filledDatabase()
    const { ownerUrl } = database
    await ensurePooledLogin(ownerUrl)
    const login = withLogin(ownerUrl)
    // Two of three sessions are taken. The third is left for requests. An export needs two.
    const bouncer = await startPgBouncer([login], {
      poolMode: 'transaction',
      dropsOptions: false,
      sessions: 3,
    })
    const pooledUrl = bouncer.through(login)
    const service = await startTestService({ ownerUrl: pooledUrl }, { directDatabaseUrl: ownerUrl })
    const taken = [1, 2].map(() => new pg.Client({ connectionString: pooledUrl }))
    try {
      for (const client of taken) {
        await client.connect()
        await client.query('begin')
      }
      const { status, body } = await trigger(service.url, headers)
      expect([status, body.status]).toEqual([200, 'INIT'])
      const streamed = await request(`${service.url}/api/v1/mad/banks?version=1.0.0`, headers)
      expect([streamed.status, streamed.headers.get('retry-after')]).toEqual([503, '10'])
      const lineWith = (text: string) => service.lines.find((line) => line.includes(text))
      await until(() => lineWith('export.requeued') !== undefined)
      expect(lineWith('export.requeued')).toContain('"because":"noConnections"')
      expect(lineWith('request.failed')).toContain('raise default_pool_size of PgBouncer')
      for (const client of taken) await client.query('rollback')
      const job = await ended(service.url, headers, body.id)
      expect(job.status).toBe('DONE')
      expect((await downloadFile(job.url!)).sha256).toBe(job.sha256)
      const jobs = await ask(
        ownerUrl,
        `select distinct retry_count, retry_limit from pgboss.job where data ->> 'exportId' = $1`,
        [body.id],
      )
      expect(jobs).toEqual([{ retry_count: 0, retry_limit: 2 }])
    } finally {
      await Promise.all(taken.map((client) => client.end()))
      await service.stop()
      await bouncer.stop()
      await database.drop()
    }
  },
)

/** A separate database: a service of the other test would run the full export. */
async function filledDatabase() {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const thirdPartyId = await staff.thirdPartyId('PARTNER')
  await fillLedger(staff.client, { ...folders.first, label: 'one', thirdPartyId })
  const headers = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  await staff.end()
  return { database, headers }
}
