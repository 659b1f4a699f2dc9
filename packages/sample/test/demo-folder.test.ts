import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Credentials, writeCredentials } from '../../../src/http/reference/demo-credentials.ts'
import { cli } from '../../../test/support/cli.ts'
import { ended, type JobAnswer, trigger } from '../../../test/support/full-export.ts'
import { credentials } from '../../../test/support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/servers/database.ts'
import { request, startTestService, type TestService, testMasterKey } from '../../../test/support/service.ts'
import { ensureDemoFolder } from '../src/demo-folder.ts'

let database: TestDatabase
let service: TestService
let dataDir: string

beforeAll(async () => {
  database = await createTestDatabase()
  service = await startTestService(database)
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-demo-'))
})

afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
  await database?.drop()
})

async function ensure(movements?: number): Promise<Credentials> {
  const options = movements === undefined ? { dataDir } : { dataDir, movements }
  const folder = await ensureDemoFolder(database, [testMasterKey], options)
  writeCredentials(dataDir, { baseUrl: service.url, ...folder })
  return JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'))
}

async function count({ baseUrl, companyToken, thirdPartySecret, exercices }: Credentials): Promise<number> {
  let movements = 0
  for (const { id } of exercices)
    for (const draft of ['', '&draft=true']) {
      const path = `/api/v1/mad/movements?version=1.0.0&idExercice=${id}${draft}`
      movements += (await request(baseUrl + path, credentials(companyToken, thirdPartySecret))).body.length
    }
  return movements
}

function fullExport({ baseUrl, companyToken, thirdPartySecret }: Credentials): Promise<JobAnswer> {
  const headers = credentials(companyToken, thirdPartySecret)
  return trigger(baseUrl, headers).then(({ body }) => ended(baseUrl, headers, body.id))
}

test('the demo folder has all that a first request needs, and survives restarts', async () => {
  const first = await ensure(500)
  expect(await count(first)).toBe(500)
  expect((await stat(join(dataDir, 'credentials.json'))).mode & 0o777).toBe(0o600)
  const firm = { ...credentials(first.firmToken, first.thirdPartySecret), 'society-id': first.societyId }
  expect((await request(`${service.url}/api/v1/key/info`, firm)).status).toBe(200)
  expect(await ensure()).toEqual(first)
  expect(await ensure(500)).toEqual(first)
})

test('another number of movements refills the same folder, and its tokens stay', async () => {
  const before = await ensure()
  const after = await ensure(600)
  expect(await count(after)).toBe(600)
  expect({ ...after, exercices: [] }).toEqual({ ...before, exercices: [] })
})

test('the firm of the demo has four more small folders, or the requested number, and never loses one', async () => {
  await ensure(600)
  const references = async () => {
    const { out } = await cli(database.ownerUrl, 'folder', 'list')
    return [...out.matchAll(/ (DEMO-\d+) /g)].map(([, reference]) => reference)
  }
  const four = ['DEMO-1', 'DEMO-2', 'DEMO-3', 'DEMO-4']
  expect(await references()).toEqual(four)
  for (const besides of [6, 6, 2]) {
    await ensureDemoFolder(database, [testMasterKey], { dataDir, besides })
    expect(await references()).toEqual([...four, 'DEMO-5', 'DEMO-6'])
  }
})

test('an export made before a refill is not reused', async () => {
  await fullExport(await ensure(600))
  const { status, rows } = await fullExport(await ensure(700))
  expect({ status, rows }).toEqual({ status: 'DONE', rows: 700 })
})

test('lost or damaged credentials are replaced, and the old ones are refused', async () => {
  const before = await ensure()
  await writeFile(join(dataDir, 'credentials.json'), '{"societyId"')
  const after = await ensure()
  expect(after.companyToken).not.toBe(before.companyToken)
  expect(await count(after)).toBe(700)
  const old = await request(
    `${service.url}/api/v1/key/info`,
    credentials(before.companyToken, after.thirdPartySecret),
  )
  expect(old.status).toBe(401)
})
