/** What is removed of attempts that ended without a word, and what is not. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { clearEarlier, clearEnded } from '../../src/jobs/retention/leftovers.ts'
import { StoreError } from '../../src/store/store.ts'
import { ended } from '../support/full-export.ts'
import { createTenants, folders, type Staff } from '../support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { startS3Proxy } from '../support/servers/s3-proxy.ts'
import { describeOnS3 } from '../support/servers/s3-servers.ts'
import { folderIn, setFailingStage } from '../support/stages/failing-stage.ts'
import { type FolderStage, openFolderStage, openS3Stage } from '../support/stages/store-stage.ts'
import { put } from '../support/store-contract.ts'
import { until } from '../support/until.ts'

const { schemaId, folderId } = folders.first
const id = (digit: string) => `export_${digit.repeat(32)}`

let database: TestDatabase
let staff: Staff
let stage: FolderStage

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  stage = await openFolderStage()
})

afterAll(async () => {
  await stage?.close()
  await staff?.end()
  await database?.drop()
})

const fileOf = (exportId: string, name: string) => `exports/${schemaId}/${exportId}/${name}`
const ofAttempt = (attempt: number) => `${attempt}-${'0'.repeat(16)}.json`

const stored = async () =>
  (await Array.fromAsync(stage.store.list(new Date(Date.now() + 3_600_000)))).map(({ key }) => key).sort()

async function fill(keys: string[]): Promise<void> {
  for (const key of await stored()) await stage.store.remove(key)
  for (const key of keys) await put(stage.store, key, Buffer.from('{}'))
}

test('an attempt removes what was before it, and neither what is after it nor of others', async () => {
  const stay = [
    // It was frozen for so long that others have had the export since, and one may have finished it.
    ...[10, 11].map((attempt) => fileOf(id('a'), ofAttempt(attempt))),
    fileOf(id('a'), 'notes-of-others.txt'),
    fileOf(id('b'), ofAttempt(1)),
    `exports/9${schemaId}/${id('a')}/${ofAttempt(1)}`,
  ].sort()
  const earlier = [1, 2, 9].map((attempt) => fileOf(id('a'), ofAttempt(attempt)))
  await fill([...stay, ...earlier])
  await clearEarlier(stage.store, { schemaId, exportId: id('a'), attempt: 1 })
  expect(await stored()).toEqual([...stay, ...earlier].sort())
  await clearEarlier(stage.store, { schemaId, exportId: id('a'), attempt: 10 })
  expect(await stored()).toEqual(stay)
})

describeOnS3((server) => {
  test('an attempt goes on where the store will not list, and fails where it is out of reach', async (context) => {
    const proxy = await startS3Proxy(server().endpoint)
    context.onTestFinished(() => proxy.close())
    const { store } = openS3Stage(server(), proxy.endpoint)
    await store.check()
    const claim = { schemaId, exportId: id('a'), attempt: 2 }
    const lists = () => proxy.seen.filter((request) => request.lists).length
    proxy.inflict((request) => (request.lists ? { status: 403, code: 'AccessDenied' } : undefined))
    await clearEarlier(store, claim)
    expect(lists()).toBe(1)
    proxy.inflict((request) => (request.lists ? 503 : undefined))
    await expect(clearEarlier(store, claim)).rejects.toThrow(StoreError)
    expect(lists()).toBeGreaterThan(2)
  })
})

test('of an export that has ended the file stays that its row names, and of another one everything', async () => {
  const running = [1, 2].map((attempt) => fileOf(id('a'), ofAttempt(attempt)))
  const done = [1, 2, 3].map((attempt) => fileOf(id('b'), ofAttempt(attempt)))
  const failed = [1, 2].map((attempt) => fileOf(id('c'), ofAttempt(attempt)))
  const unknown = [fileOf(id('d'), ofAttempt(1))]
  const stranger = fileOf(id('c'), 'notes-of-others.txt')
  await fill([...running, ...done, ...failed, ...unknown, stranger])
  const insert = (exportId: string, columns: string, values: string) =>
    staff.client.query(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, ${columns})
       values ($1, $2, $3, '1.0.0', 'JSON', repeat(right($2, 1), 64), 'request', ${values})`,
      [schemaId, exportId, folderId],
    )
  await insert(id('a'), 'state, attempt', `'running', 2`)
  await insert(
    id('b'),
    'state, attempt, finished_at, file_key, sha256, debit, credit, snapshot_on',
    `'done', 2, now(), '${done[1]}', repeat('0', 64), 1, 1, now()`,
  )
  await insert(id('c'), 'state, attempt, finished_at, reason', `'failed', 2, now(), 'reason'`)
  const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'test leftovers' })
  for (const digit of 'abcd') await clearEnded(pool, stage.store, { schemaId, exportId: id(digit) })
  await pool.end()
  expect(await stored()).toEqual([...running, done[1], stranger, ...unknown].sort())
})

test('what a killed process left goes although the export was cancelled meanwhile', async ({
  onTestFinished,
}) => {
  const scene = await setFailingStage()
  onTestFinished(() => scene.close())
  const { service, gate } = await scene.startGated()
  const id = await scene.begin(service)
  await scene.readUpTo(0.3, gate, service, id)
  await service.kill()
  expect(await scene.stored()).toHaveLength(1)
  await scene.sql(
    `update grandlivre.exports set state = 'failed', finished_at = now(), reason = 'reason' where id = $1`,
    [id],
  )
  await scene.noticeSilence([id])
  const heir = await scene.start()
  await until(async () => (await scene.stored()).length === 0)
  expect(heir.logged('export.started', id)).toBe(false)
})

test('what an earlier attempt left goes when the export fails', async ({ onTestFinished }) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-leftovers-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const files = await folderIn(dataDir)
  const scene = await setFailingStage({ files })
  onTestFinished(() => scene.close())
  // Held up by a lock while it reads, it does not find the table then: a mistake that no retry mends.
  await scene.sql('begin')
  await scene.sql('lock table grandlivre.banks in access exclusive mode')
  const service = await scene.start()
  const id = await scene.begin(service)
  const key = `exports/${scene.schemaId}/${id}/0-${'0'.repeat(16)}.json`
  await (await files.store.create(key, 'application/json')).complete({ bytes: 0 })
  const unfinished = await files.store.create(key, 'application/json')
  onTestFinished(() => unfinished.abort())
  await scene.sql('alter table grandlivre.banks rename to others')
  await scene.sql('commit')
  const { status, reason } = await ended(service.url, scene.headers, id)
  expect([status, reason]).toEqual(['FAILED', expect.stringContaining('failed to make the file')])
  await until(async () => (await scene.stored()).length === 0)
})
