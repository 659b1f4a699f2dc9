/**
 * How rows reach the audit: while the database is away, in batches that are sent twice, and when the process dies. How
 * retention deletes old rows.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appendRequests, listAudit, recordStaffAct } from '../../src/audit/audit.sql.ts'
import { type AnsweredRequest, AuditTrail, answeredRequest } from '../../src/audit/audit-trail.ts'
import { sweepAudit } from '../../src/audit/retention.ts'
import { limits } from '../../src/config.ts'
import { createOwnerPool, createPool, inTransaction } from '../../src/db/pool.ts'
import type { LogEvents } from '../../src/log.ts'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { startProcess } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { testMasterKey } from '../support/service.ts'
import { until } from '../support/until.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const owner = forTests(() =>
  createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'grandlivre test' }),
)
const service = forTests(() =>
  createPool(database.serviceUrl, { max: 2, applicationName: 'grandlivre test' }),
)

function request(requestId: string): AnsweredRequest {
  const { schemaId, folderId } = folders.first
  const facts = { thirdPartyId: '1000', tokenId: '1001', schemaId, route: '/api/v1/key/info', selection: {} }
  const whole = { status: 200, isWhole: true, code: undefined }
  return answeredRequest(facts, { at: new Date(), method: 'GET', requestId, folderId, ...whole })
}

const idsOf = async (prefix: string) =>
  (await listAudit(owner, { most: 2 * limits.auditRowsMax }))
    .flatMap(({ requestId }) => (requestId?.startsWith(prefix) ? [requestId] : []))
    .reverse()
const verified = async () => (await cli(database.ownerUrl, 'audit', 'verify')).out

test('rows wait while the database is away, and one more row counts those beyond the limit', async () => {
  const proxy = await startProxy(database.serviceUrl)
  const pool = createPool(proxy.url, { max: 1, applicationName: 'grandlivre test' })
  const logged: (keyof LogEvents)[] = []
  const trail = new AuditTrail(pool, (event) => void logged.push(event))
  await proxy.cut()
  trail.record(request('away-first'))
  await until(() => logged.includes('audit.waiting'))
  expect(trail.stalledSeconds).toBeGreaterThan(limits.auditAppendMs / 1_000)
  for (let i = 0; i < limits.auditRowsMax + 5; i++) trail.record(request(`away-${i}`))
  await proxy.restore()
  await until(() => trail.waiting === 0)
  expect(trail.stalledSeconds).toBe(0)
  await trail.close()
  await pool.end()
  await proxy.cut()
  const ids = await idsOf('away-')
  expect(ids).toHaveLength(limits.auditRowsMax + 1)
  expect(ids.slice(0, 2)).toEqual(['away-first', 'away-0'])
  const [lost] = await listAudit(owner, { most: 1 })
  expect(lost).toMatchObject({ act: 'audit lost', outcome: 'failed', thirdPartyId: null })
  expect(JSON.parse(lost!.details)).toMatchObject({ rows: 5 })
  expect(logged).toEqual(['audit.waiting'])
})

test('a process that ends while the database is away logs how many rows it loses', async () => {
  const pool = createPool('postgres://grandlivre@127.0.0.1:1/none', {
    max: 1,
    applicationName: 'grandlivre test',
  })
  const logged: unknown[] = []
  const trail = new AuditTrail(
    pool,
    (event, fields) => void logged.push(event === 'audit.lost' ? fields : event),
  )
  for (const id of ['one', 'two', 'three']) trail.record(request(id))
  await trail.close()
  await pool.end()
  expect(logged).toEqual(['audit.waiting', { rows: 3 }])
})

test('rows whose content the database refuses are counted, and do not hold up others', async () => {
  const trail = new AuditTrail(service, () => {})
  trail.record({ ...request('content-0'), details: null as unknown as string })
  trail.record(request('content-beside'))
  trail.record({ ...request('content-1'), act: 'a NUL \0 is no text' })
  await until(() => trail.waiting === 0)
  trail.record(request('content-2'))
  await trail.close()
  expect(await idsOf('content-')).toEqual(['content-beside', 'content-2'])
  const [, lost] = await listAudit(owner, { most: 2 })
  expect(JSON.parse(lost!.details)).toMatchObject({ rows: 2 })
})

test('the trail counts lost rows and can be closed while the database refuses every row', async () => {
  const logged: unknown[] = []
  const trail = new AuditTrail(
    service,
    (event, fields) => void logged.push(event === 'audit.lost' ? fields : event),
  )
  await owner.query('alter table audit_rows add constraint refuses_all check (false) not valid')
  try {
    for (const id of ['one', 'two', 'three']) trail.record(request(id))
    await until(() => trail.waiting === 1)
    await trail.close()
  } finally {
    await owner.query('alter table audit_rows drop constraint refuses_all')
  }
  expect(logged).toEqual(['audit.waiting', { rows: 3 }])
})

test('a batch that is sent twice is appended once', async () => {
  const rows = [{ at: new Date(), act: 'GET /', details: '{}', request_id: 'twice-0', outcome: 'sent' }]
  const batch = { sender: randomUUID(), number: 1, rows }
  await Promise.all([appendRequests(service, batch), appendRequests(service, batch)])
  await appendRequests(service, batch)
  await appendRequests(service, { ...batch, number: 2 })
  expect(await idsOf('twice-')).toHaveLength(2)
})

test('a killed process loses no appended row, and the chain stays whole', {
  timeout: 60_000,
}, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-audit-'))
  const secret = await staff.thirdParty('KILLED')
  const headers = credentials(await staff.token('KILLED', 'api', folders.first), secret)
  const running = await startProcess({ DATABASE_URL: database.ownerUrl, DATA_DIR: dataDir })
  const ask = async (id: string) => {
    const answer = await fetch(`${running.url}/api/v1/key/info`, {
      headers: { ...headers, 'x-request-id': id },
    })
    await answer.text()
  }
  for (let i = 0; i < 10; i++) await ask(`killed-${i}`)
  await until(async () => (await idsOf('killed-')).length === 10)
  await Promise.all([10, 11, 12].map((i) => ask(`killed-${i}`)))
  await running.kill()
  await rm(dataDir, { recursive: true })
  expect((await idsOf('killed-')).slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, i) => `killed-${i}`))
  expect(await verified()).toMatch(/^The audit is whole/)
})

test('an act of staff that fails leaves no row; one that succeeds leaves a row with its login', async () => {
  const acted = inTransaction(owner, async (client) => {
    await recordStaffAct(client, { staff: 'someone', act: 'token issue', details: { partner: 'UNDONE' } })
    throw new Error('after all not')
  })
  await expect(acted).rejects.toThrow('after all not')
  const issued = await cli(database.ownerUrl, 'partner', 'create', '--code', 'DONE', '--name', 'Done')
  expect(issued.code).toBe(0)
  const [newest] = await listAudit(owner, { most: 1 })
  expect(newest).toMatchObject({
    act: 'partner create',
    outcome: 'done',
    staff: expect.stringMatching(/^\S+ as \w+$/),
  })
  expect(JSON.parse(newest!.details)).toEqual({ kind: 'partner', partner: 'DONE' })
  expect(newest!.thirdPartyId).not.toBeNull()
  // A command that fails.
  await cli(database.ownerUrl, 'token', 'revoke', '999999')
  expect((await listAudit(owner, { most: 1 }))[0]!.number).toBe(newest!.number)
})

test('staff list rows by folder, partner and time, and check them against an anchor', async () => {
  const line = /^\d+ +20\S+Z +KILLED, token \d+ +GET \/api\/v1\/key\/info +111 +sent/m
  const list = (...words: string[]) => cli(database.ownerUrl, 'audit', 'list', ...words)
  expect((await list('--folder', '111')).out).toMatch(line)
  expect((await list('--folder', '112')).out).not.toMatch(line)
  expect((await list('--partner', 'KILLED', '--most', '1')).out.trim().split('\n')).toHaveLength(2)
  expect((await list('--to', '2020-01-01')).out.trim().split('\n')).toHaveLength(1)
  expect(await list('--from', 'yesterday')).toMatchObject({
    code: 1,
    error: expect.stringContaining('--from takes'),
  })
  const [, count, hash] = /Anchor: (\d+):(\w+)/.exec(await verified())!
  const against = (anchor: string) => cli(database.ownerUrl, 'audit', 'verify', '--anchor', anchor)
  expect(await against(`${count}:${hash}`)).toMatchObject({ code: 0 })
  const cut = await against(`${Number(count) + 1}:${hash}`)
  expect(cut).toMatchObject({ code: 1, out: expect.stringContaining('its end was cut off') })
  const other = await against(`${Number(count) - 1}:${hash}`)
  expect(other).toMatchObject({ code: 1, out: expect.stringContaining('were replaced') })
  expect(await against('12')).toMatchObject({ code: 1, error: expect.stringContaining('--anchor takes') })
})

test('retention deletes rows in order, signs the first row that is left, and keeps the last month', async () => {
  const own = await createTestDatabase()
  const [pool, staffPool] = [
    createPool(own.serviceUrl, { max: 1, applicationName: 'grandlivre test' }),
    createOwnerPool(own.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
  ]
  const parts = { database: pool, months: 12, signingKey: async () => testMasterKey }
  await staffPool.query(`set session_replication_role = replica; delete from audit_rows;
    update audit_head set count = 0, hash = decode(repeat('00', 32), 'hex')`)
  const row = (at: string) => ({ at, act: 'GET /', details: '{}', outcome: 'sent' })
  const month = 31 * 24 * 3_600_000
  const times = [30, 14, 13.5, 2, 14].map((months) => new Date(Date.now() - months * month).toISOString())
  await appendRequests(pool, { sender: randomUUID(), number: 1, rows: times.map(row) })
  const anchor = async () => /Anchor: (\S+)/.exec((await cli(own.ownerUrl, 'audit', 'verify')).out)![1]!
  const before = await anchor()
  expect(await sweepAudit(parts)).toBe(3)
  expect(await sweepAudit(parts)).toBe(0)
  const rows = await listAudit(staffPool, { most: 10 })
  expect(rows.map(({ number }) => number)).toEqual(['6', '5', '4'])
  expect(rows[0]).toMatchObject({ act: 'audit retention', details: '{"months":12,"rows":3,"until":3}' })
  const { out } = await cli(own.ownerUrl, 'audit', 'verify', '--anchor', before)
  expect(out).toMatch(/^The audit is whole: 3 rows, 4 to 6\.\nRetention has deleted .* after row 3\.\n/)
  const old = await cli(own.ownerUrl, 'audit', 'verify', '--anchor', `2:${'0'.repeat(64)}`)
  expect(old).toMatchObject({ code: 1, out: expect.stringContaining('which retention has deleted') })
  // Called directly by the service's role, with any months.
  for (const months of ['0', '-1000', 'null'])
    await expect(pool.query(`select grandlivre.forget_audit(6, now(), '', ${months})`)).rejects.toThrow(
      'not old enough',
    )
  await Promise.all([pool.end(), staffPool.end()])
  await own.drop()
})
