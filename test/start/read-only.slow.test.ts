/** A server that takes no changes: a standby before its promotion, or one whose administrator has stopped them. */
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { routes } from '../../src/http/app.ts'
import { cli } from '../support/cli.ts'
import { fillPrimary } from '../support/replication/fill-primary.ts'
import { startReplication } from '../support/replication/standby.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService, type TestService } from '../support/service.ts'
import { type ReceivingStage, setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

/** Every route that knows its caller. */
const called = routes.filter(({ scope }) => scope !== 'open')

/** Fails unless each route gives 503 with Retry-After, and nothing is logged as a bug. */
async function expectUnavailable(service: TestService, headers: Record<string, string>): Promise<void> {
  expect(called.length).toBeGreaterThan(20)
  for (const { method, path } of called) {
    const url = `${service.url}${path.replaceAll(/\{\w+\}/g, '1')}`
    const answer = await request(url, headers, method.toUpperCase())
    expect([method, path, answer.status, answer.body.error?.code]).toEqual([
      method,
      path,
      503,
      'ERR-UNAVAILABLE',
    ])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect(service.lines.join('')).not.toContain('ERR-INTERNAL')
}

test('every route answers 503 on a standby, and normally again once the standby is promoted', async () => {
  const { primary, standby, drop } = await startReplication()
  endings.push(drop)
  const { staff, company } = await fillPrimary(primary.ownerUrl)
  await staff.end()
  const proxy = await startProxy(primary.ownerUrl)
  endings.push(() => proxy.cut())
  const service = await startTestService({ ownerUrl: proxy.url })
  endings.push(() => service.stop())
  const keyInfo = `${service.url}/api/v1/key/info`
  expect((await request(keyInfo, company)).status).toBe(200)
  await standby.catchUp()
  proxy.redirectTo(standby.ownerUrl)
  await until(async () => (await request(`${service.url}/readyz`)).body.error?.message.includes('writable'))
  await expectUnavailable(service, company)
  expect((await request(`${service.url}/readyz`)).body.error.message).toBe(
    'Not ready: the database of DATABASE_URL (a writable database)',
  )
  await standby.promote()
  await until(async () => (await request(keyInfo, company)).status === 200)
  await until(async () => (await request(`${service.url}/readyz`)).status === 200)
})

/** Sets it for sessions that begin from now on, and ends the open sessions of the service. */
async function setReadOnly({ sql }: ReceivingStage, value: 'on' | 'off'): Promise<void> {
  await sql(`begin read write; do $$ begin execute
    format('alter database %I set default_transaction_read_only = ${value}', current_database()); end $$; commit`)
  await sql(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name like 'grandlivre%'`)
}

test('deliveries and audit rows wait for a writable server, and use up no attempt', async () => {
  const stage = await setReceivingStage()
  endings.push(() => stage.close())
  const { id } = await stage.subscribe('/hook')
  const journals = '/api/v1/mad/journals?version=1.0.0'
  expect((await request(stage.service.url + journals, stage.own)).status).toBe(200)
  await setReadOnly(stage, 'on')
  // The dispatcher is notified of the event at once, and cannot record the beginning of a delivery.
  await stage.publish([documentEvent('7', '111')])
  await expectUnavailable(stage.service, stage.own)
  expect(stage.receiver.requests('/hook')).toEqual([])
  await setReadOnly(stage, 'off')
  await until(async () => {
    const deliveries = await stage.sql(
      'select state, attempts from grandlivre.deliveries where subscription_id = $1',
      [id],
    )
    return isDeepStrictEqual(deliveries, [{ state: 'delivered', attempts: 1 }])
  })
  expect(stage.receiver.requests('/hook')).toHaveLength(1)
  await until(async () => {
    const rows = await stage.sql(
      `select outcome from grandlivre.audit_rows where act = 'GET /api/v1/mad/journals'`,
    )
    return isDeepStrictEqual(rows, [{ outcome: 'sent' }])
  })
})

test('on a server that takes no changes, routes that write give 503 even if the caller is admitted without a write', async () => {
  const stage = await setReceivingStage()
  endings.push(() => stage.close())
  const { id } = await stage.subscribe('/hook')
  await stage.sql(`create or replace function grandlivre.enter(secret_hash bytea, token_hash bytea, window_ms integer)
    returns table (third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean, token_id bigint,
      schema_id bigint, level text, firm_id bigint, folder_id bigint, requests integer, window_started_at timestamptz)
    language sql volatile security definer set search_path = grandlivre, pg_temp as $$
      select c.third_party_id, c.kind, c.disconnected_reason, c.under_maintenance, c.token_id, c.schema_id, c.level,
        c.firm_id, c.folder_id, 1, now() from caller(secret_hash, token_hash) c $$`)
  await setReadOnly(stage, 'on')
  const { url } = stage.service
  const body = { postUrl: `${stage.receiver.url}/other`, onEvents: ['document'] }
  const writes: [string, string, unknown][] = [
    ['POST', '/webhook', body],
    ['PATCH', `/webhook/${id}`, [{ op: 'replace', path: '/onEvents', value: ['exercice'] }]],
    ['DELETE', `/webhook/${id}`, undefined],
    ['POST', `/webhook/${id}/rotate-secret`, undefined],
    ['GET', '/mad/all?version=1.0.0&format=JSON', undefined],
  ]
  for (const [method, path, sent] of writes) {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { ...stage.own, 'Content-Type': 'application/json' },
      ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
    })
    expect([
      method,
      path,
      answer.status,
      Number(answer.headers.get('retry-after')) > 0,
      await answer.text(),
    ]).toEqual([method, path, 503, true, expect.stringContaining('ERR-UNAVAILABLE')])
  }
  expect(stage.service.lines.join('')).not.toContain('ERR-INTERNAL')
})

test('a staff command on a standby says what to do', async () => {
  const database = await createTestDatabase()
  endings.push(() => database.drop())
  const owner = new pg.Client({ connectionString: database.ownerUrl })
  await owner.connect()
  await owner.query(`do $$ begin execute
    format('alter database %I set default_transaction_read_only = on', current_database()); end $$`)
  await owner.end()
  expect(await cli(database.ownerUrl, 'partner', 'create', '--code', 'NEW', '--name', 'New')).toMatchObject({
    code: 1,
    out: '',
    error: expect.stringMatching(
      /^The server of DATABASE_URL refuses .*\. The server takes no changes: it is a standby/,
    ),
  })
})
