/** What the service exports from the folder of `fixtures/`, byte for byte. */
import { Buffer } from 'node:buffer'
import iconv from 'iconv-lite'
import { beforeAll, expect, test } from 'vitest'
import { createPool, whileDelivering } from '../../src/db/pool.ts'
import { publish } from '../../src/events/publish.ts'
import { openSnapshot } from '../../src/exports/read/snapshot.ts'
import { collections, collectionTexts, type FolderCollection } from '../../src/exports/render/collections.ts'
import { wholeFolder } from '../../src/exports/selection.ts'
import { checkTra } from '../../src/formats/tra/check/check.ts'
import { packBatch } from '../../src/webhooks/body.ts'
import { numberNext } from '../../src/webhooks/sequence/numbering.sql.ts'
import { insertSubscription } from '../../src/webhooks/subscriptions.sql.ts'
import { expectFixture, readFixture } from '../support/fixtures/fixture-files.ts'
import { fillFixtureFolder } from '../support/fixtures/fixture-folder.ts'
import { producedBytes, renderedFile, renderFec, traBytes } from '../support/fixtures/rendered-file.ts'
import { forTests } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'

const database = forTests(createTestDatabase)
const owner = forTests(() => connect(database.ownerUrl))
const pool = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'test' }))
let folder: { schemaId: string; folderId: string; exerciceId: string }

const ndjson = { form: 'ndjson', encoding: 'identity' } as const
const exportId = 'export_0123456789abcdef0123456789abcdef'
/** In Paris, 9:05 on the second of April. */
const now = Date.UTC(2024, 3, 2, 7, 5)

beforeAll(async () => {
  folder = await fillFixtureFolder(database.ownerUrl)
})

test('the MAD file equals its fixture, in which each item starts on a new line', async () => {
  const { bytes } = await renderedFile(pool, folder, 'JSON', { now, exportId })
  const text = String(bytes)
  expect(text).not.toContain('\n')
  const folded = text.replace(/(?<=[[,])\{/g, '\n{')
  expectFixture('ledger.mad.json', Buffer.from(folded))
  expect(JSON.parse(folded)).toEqual(JSON.parse(text))
})

test('the movements of the whole folder equal their fixture, one per line', async () => {
  const selection = wholeFolder(folder, 'Europe/Paris')
  const whole = { after: undefined, entries: undefined, since: undefined }
  const bytes = await producedBytes(pool, { what: 'movements', selection, ...whole, ...ndjson })
  expectFixture('movements.ndjson', bytes)
})

const { data } = JSON.parse(readFixture('ledger.mad.json').toString('utf8'))
const besideMadFile = Object.keys(collections).filter((name) => !(name in data)) as FolderCollection[]

test.each(besideMadFile)('%s equal their fixture; the MAD file does not contain them', async (what) => {
  const snapshot = await openSnapshot(pool, folder.schemaId)
  const owner = { ...folder, today: '2024-04-02', timeZone: 'Europe/Paris', withEmployees: true }
  const texts = await Array.fromAsync(collectionTexts(snapshot.first, { what, owner }, 'ndjson', () => {}))
  await snapshot.close()
  expectFixture(`${what}.ndjson`, Buffer.from(texts.join('')))
})

test('the balance of the whole folder equals its fixture, one account per line', async () => {
  const selection = { ...wholeFolder(folder, 'Europe/Paris'), draft: false }
  expectFixture('balance.ndjson', await producedBytes(pool, { what: 'balance', selection, ...ndjson }))
})

test('the TRA file equals its fixture, and the check finds no problem', async () => {
  expectFixture('ledger.tra', await traBytes(pool, folder, { now }))
  const { problems, movements, shares } = await checkTra(once(readFixture('ledger.tra')))
  expect([problems, movements, shares]).toEqual([[], 45, 8])
})

test('the FEC equals its fixture, which has the imported lines in their order', async () => {
  const { bytes } = await renderFec(pool, folder, folder.exerciceId, { columns: 'extended' })
  expectFixture('ledger.fec-out.txt', bytes)
  const filed = readFixture('ledger.fec.txt').toString('utf8').trimEnd().split('\n')
  const written = iconv.decode(bytes, 'iso-8859-15').replaceAll('\t', '|').split('\r\n')
  // ledger.sql adds seven lines, in entries whose ids are lower, and letters the salary of Zoé Dupré.
  written.splice(1, 7)
  const changed = filed.filter((line, at) => line !== written[at])
  expect(changed.map((line) => line.split('|')[6])).toEqual(['DUPRE'])
})

test('the CSV file equals its fixture', async () => {
  expectFixture('ledger.csv', (await renderedFile(pool, folder, 'CSV')).bytes)
})

test('the events of the import and of an export equal their fixture, as one delivery', async () => {
  const { schemaId } = folder
  const document = { id: exportId, status: 'completed' } as const
  await owner.query('begin')
  await publish(owner, schemaId, [
    { name: 'cloudDocument', operation: 'CREATE', data: document, folderId: folder.folderId },
  ])
  const { id } = await insertSubscription(owner, {
    schemaId,
    level: 'staff',
    firmId: null,
    thirdPartyId: '1',
    postUrl: 'https://hooks.example.com/grandlivre',
    onEvents: ['accountingFolder', 'exercice', 'accountingEntryLettering', 'cloudDocument'],
    folderIds: [],
  })
  // All events from the first one on, dated like the files.
  await owner.query('update grandlivre.subscriptions set start_position = 0')
  await owner.query('update grandlivre.events set created_at = to_timestamp($1 / 1000.0)', [now])
  await owner.query('commit')
  const found = await whileDelivering(pool, (client) => numberNext(client, id, 1000))
  expectFixture('events.json', packBatch(id, found).body)
})

async function* once(bytes: Buffer) {
  yield bytes
}
