/** What requests leave in the audit: two services on one database. */
import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { type AuditRow, listAudit } from '../../src/audit/audit.sql.ts'
import { createOwnerPool } from '../../src/db/pool.ts'
import { cli } from '../support/cli.ts'
import { download, movementsUrl, open } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { startTestService } from '../support/service.ts'
import { setTwoServices } from '../support/stages/two-services.ts'
import { until } from '../support/until.ts'

const stage = forTests(setTwoServices)
const owner = forTests(() =>
  createOwnerPool(stage.database.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
)
beforeAll(() => addLargeExercice(stage.staff.client, 30_000))

const { folderId, schemaId } = folders.first

/** The row of a request, as soon as it is appended. */
async function rowOf(requestId: string): Promise<AuditRow> {
  let found: AuditRow | undefined
  await until(async () => {
    found = (await listAudit(owner, { most: 100 })).find((row) => row.requestId === requestId)
    return found !== undefined
  })
  return found!
}

/** Headers of the company token, with a request id. */
const as = (requestId: string, headers: Record<string, string> = {}) => ({
  ...stage.company,
  'x-request-id': requestId,
  ...headers,
})
const movements = (query: Record<string, string> = {}) =>
  movementsUrl(stage.url, { idExercice: '11', ...query })

test('an export records who asked, for what, and the evidence of what was sent', async () => {
  const answer = await download(movements({ draft: 'true' }), as('exported'))
  const row = await rowOf('exported')
  expect(row).toMatchObject({
    act: 'GET /api/v1/mad/movements',
    thirdPartyId: stage.thirdPartyId,
    staff: null,
    schemaId,
    folderId,
    rows: answer.trailers['x-row-count'],
    sha256: answer.trailers['x-content-sha256'],
    bytes: String(answer.bytes.length),
    cursor: answer.headers['x-ledger-cursor'],
    outcome: 'sent',
    code: null,
  })
  expect(row.sha256).toBe(answer.sha256)
  expect(JSON.parse(row.details)).toMatchObject({ idExercice: '11', draft: true, version: '1.0.0' })
  expect(Math.abs(Number(row.at) * 1000 - Date.now())).toBeLessThan(60_000)
})

test('HEAD requests, 304 answers and refusals record their outcome, and no evidence of data', async () => {
  const answer = await download(movements(), as('first'))
  const etag = String(answer.headers.etag)
  await download(movements(), as('again', { 'if-none-match': etag }))
  await download(movements(), as('head'), 'HEAD')
  await download(movements({ idExercice: '4711' }), as('missing'))
  await download(movements(), as('foreign', { 'society-id': folders.otherTenant.folderId }))
  const nothing = { rows: null, sha256: null, bytes: null }
  expect(await rowOf('again')).toMatchObject({
    ...nothing,
    outcome: 'unchanged',
    cursor: answer.headers['x-ledger-cursor'],
  })
  expect(await rowOf('head')).toMatchObject({
    ...nothing,
    act: 'HEAD /api/v1/mad/movements',
    outcome: 'sent',
  })
  expect(await rowOf('missing')).toMatchObject({
    ...nothing,
    outcome: 'refused',
    code: 'ERR-EXERCICE-NOT-FOUND',
  })
  expect(await rowOf('foreign')).toMatchObject({
    ...nothing,
    outcome: 'refused',
    code: 'ERR-FORBIDDEN-ACCESS',
    thirdPartyId: stage.thirdPartyId,
    folderId: null,
  })
})

test('a transfer that the client cuts off is recorded as cut, without rows and digest', async () => {
  const message = await open(movementsUrl(stage.url, { idExercice: largeExercice }), as('cut'))
  message.destroy()
  expect(await rowOf('cut')).toMatchObject({ outcome: 'cut', rows: null, sha256: null, folderId })
})

test('a full export records who received its address, and each download', async () => {
  const job = await stage.exported(as('triggered'))
  const response = await fetch(job.url!, { headers: { 'x-request-id': 'downloaded' } })
  const bytes = Buffer.from(await response.arrayBuffer())
  await fetch(job.url!, { headers: { 'x-request-id': 'part', range: 'bytes=10-19' } }).then((part) =>
    part.text(),
  )
  // The status is read under the request id of the trigger. The last such row has the address of the file.
  const { details } = await rowOf('triggered')
  expect(JSON.parse(details)).toMatchObject({ exportId: job.id })
  await until(async () =>
    (await listAudit(owner, { most: 100 })).some(
      (row) =>
        row.act === 'GET /api/v1/mad/all/status' &&
        row.sha256 === job.sha256 &&
        row.rows === String(job.rows),
    ),
  )
  const downloaded = { act: 'GET /files', thirdPartyId: null, schemaId, folderId, outcome: 'sent' }
  expect(await rowOf('downloaded')).toMatchObject({
    ...downloaded,
    rows: String(job.rows),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    bytes: String(bytes.length),
  })
  const part = await rowOf('part')
  expect(part).toMatchObject({ ...downloaded, rows: null, sha256: null, bytes: '10' })
  expect(JSON.parse(part.details)).toEqual({ exportId: job.id, attempt: 1, from: 10, to: 20 })
})

test('an invoice number is not recorded', async () => {
  const url = new URL('/api/v1/mad/entry?version=1.0.0&id=INVOICE-2023', stage.url)
  await download(url.href, as('invoice'))
  const { details, code } = await rowOf('invoice')
  expect(code).toBe('ERR-ENTRY-NOT-FOUND')
  expect(details).not.toContain('INVOICE')
  await download(url.href, { ...as('refused'), accept: 'image/png' })
  const refused = await rowOf('refused')
  expect(refused.code).toBe('ERR-NOT-ACCEPTABLE')
  expect(refused.details).not.toContain('INVOICE')
})

test('requests of unknown callers and requests beyond the rate limit leave no row', async () => {
  const strict = await startTestService(stage.database, {
    rateLimit: { requests: 1, windowMs: 60_000, concurrent: 10 },
  })
  const headers = await stage.strangers()
  const keyInfo = (id: string, changed = {}) =>
    fetch(`${strict.url}/api/v1/key/info`, { headers: { ...headers, 'x-request-id': id, ...changed } })
  expect((await keyInfo('unknown', { Authorization: 'Bearer glv_api_wrong' })).status).toBe(401)
  expect((await keyInfo('within')).status).toBe(200)
  expect((await keyInfo('beyond')).status).toBe(429)
  // The service appends its last rows before it ends.
  await strict.stop()
  const found = (await listAudit(owner, { most: 100 })).map(({ requestId }) => requestId)
  expect(found).toContain('within')
  expect(found).not.toContain('unknown')
  expect(found).not.toContain('beyond')
})

test('two processes append to one chain, each row once', async () => {
  const ids = Array.from({ length: 60 }, (_, index) => `shared-${index}`)
  await Promise.all(
    ids.map((id, index) => download(`${index % 2 ? stage.url : stage.second.url}/api/v1/key/info`, as(id))),
  )
  await rowOf(ids[58]!)
  await rowOf(ids[59]!)
  const rows = await listAudit(owner, { most: 1000 })
  expect(rows.filter(({ requestId }) => requestId?.startsWith('shared-'))).toHaveLength(60)
  const { code, out } = await cli(stage.database.ownerUrl, 'audit', 'verify')
  expect(out).toMatch(/^The audit is whole: [\d,]+ rows, 1 to \d+\.\nAnchor: \d+:[0-9a-f]{64}\n/)
  expect(code).toBe(0)
})

test('the roles that serve requests can neither read nor write the audit', async () => {
  const { client } = stage.staff
  await client.query('begin; set local role grandlivre_service; set local grandlivre.schema_id = 100')
  for (const statement of [
    'select from grandlivre.audit_rows',
    'delete from grandlivre.audit_rows',
    'update grandlivre.audit_head set count = 0',
    `select grandlivre.append_audit('[]', 'someone')`,
  ])
    await expect(
      client
        .query('savepoint s')
        .then(() => client.query(statement).finally(() => client.query('rollback to s'))),
    ).rejects.toThrow('permission denied')
  await client.query('rollback')
  await expect(client.query('update grandlivre.audit_rows set rows = 1')).rejects.toThrow('are never changed')
  await expect(client.query('truncate grandlivre.audit_rows')).rejects.toThrow('are never changed')
})
