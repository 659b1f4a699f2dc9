/** Which files of attempts that died are removed, and which are kept. */
import { expect, type TestContext, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { clearEarlier, clearEnded } from '../../src/jobs/retention/leftovers.ts'
import { StoreError } from '../../src/store/store.ts'
import { forTests } from '../support/for-tests.ts'
import { ended } from '../support/full-export.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startS3Proxy } from '../support/servers/s3-proxy.ts'
import { describeOnS3 } from '../support/servers/s3-servers.ts'
import { failingStageOf } from '../support/stages/failing-stage.ts'
import { openFolderStage, openS3Stage } from '../support/stages/store-stage.ts'
import { put } from '../support/store-contract.ts'
import { until } from '../support/until.ts'

const { schemaId, folderId } = folders.first
const id = (digit: string) => `export_${digit.repeat(32)}`

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const stage = forTests(openFolderStage)

const fileOf = (exportId: string, name: string) => `exports/${schemaId}/${exportId}/${name}`
/** A file of each kind, in turn. */
const ofAttempt = (attempt: number) =>
  `${attempt}-${'0'.repeat(16)}.${['json', 'json.gz', 'tra.zst'][attempt % 3]}`

const stored = async () =>
  (await Array.fromAsync(stage.store.listObjects(new Date(Date.now() + 3_600_000))))
    .map(({ key }) => key)
    .sort()

async function fill(keys: string[]): Promise<void> {
  for (const key of await stored()) await stage.store.remove(key)
  for (const key of keys) await put(stage.store, key, Buffer.from('{}'))
}

test('an attempt removes files of its earlier attempts, but not of later attempts or other exports', async () => {
  const stay = [
    // If the process was frozen for long, others have claimed the export since, and one may have finished it.
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
  test('an attempt continues if the store refuses to list files, and fails if the store is unreachable', async (context) => {
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

test('an ended export keeps only the file that its row names, and any other export keeps all its files', async () => {
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

/** Begins an export that waits for a lock while it reads, until the test ends the transaction. */
async function beginHeldExport(context: TestContext) {
  const scene = await failingStageOf(context)
  await scene.sql('begin')
  await scene.sql('lock table grandlivre.banks in access exclusive mode')
  const service = await scene.start()
  return { scene, service, id: await scene.begin(service) }
}

test('the files of an earlier attempt are removed when the export fails', async (context) => {
  const { scene, service, id } = await beginHeldExport(context)
  const key = `exports/${scene.schemaId}/${id}/${ofAttempt(0)}`
  await (await scene.store.create(key, 'application/json')).complete({ bytes: 0 })
  const unfinished = await scene.store.create(key, 'application/json')
  context.onTestFinished(() => unfinished.abort())
  // A missing table is an error that no retry can fix.
  await scene.sql('alter table grandlivre.banks rename to others')
  await scene.sql('commit')
  const { status, reason } = await ended(service.url, scene.headers, id)
  expect([status, reason]).toEqual(['FAILED', expect.stringContaining('failed to create the file')])
  await until(async () => (await scene.stored()).length === 0)
})

test('an export that a later attempt completes removes files that an earlier attempt left meanwhile', async (context) => {
  const { scene, service, id } = await beginHeldExport(context)
  await scene.store.check()
  const writes = (attempt: number) => async () =>
    (await scene.stored()).some((name) => name.startsWith(`.${attempt}-`))
  await until(writes(1))
  await scene.terminateConnections()
  await until(writes(2))
  // The second attempt has cleared the folder already, so only its end can remove this file.
  const key = `exports/${scene.schemaId}/${id}/${ofAttempt(1)}`
  await put(scene.store, key, Buffer.from('{}'))
  await scene.sql('rollback')
  await scene.expectRightFile(service, id)
  await until(async () => (await scene.stored()).length === 1)
})
