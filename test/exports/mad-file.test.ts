/** The file of a full export, compared with what SQL reads from the folder. */
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { pick } from 'stream-json/filters/pick.js'
import { streamArray } from 'stream-json/streamers/stream-array.js'
import { describe, expect, test } from 'vitest'
import { isConnectionLoss } from '../../src/db/outage.ts'
import { openSnapshot } from '../../src/exports/read/snapshot.ts'
import type { FolderKey } from '../../src/formats/rows.ts'
import { renderChunks } from '../support/fixtures/rendered-file.ts'
import { forTests } from '../support/for-tests.ts'
import { addEntry } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { madCollectionNames, readPlainCollection, readPlainEntries } from '../support/plain/plain-mad.ts'
import { metadata, now, setMadStage, today } from '../support/stages/mad-stage.ts'

const stage = forTests(setMadStage)

// biome-ignore lint/suspicious/noExplicitAny: items of any shape
async function streamed(bytes: Buffer, name: string): Promise<any[]> {
  const pieces = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, i) =>
    bytes.subarray(1000 * i, 1000 * (i + 1)),
  )
  const items = []
  const parsed = Readable.from(pieces)
    .pipe(pick.withParserAsStream({ filter: `data.${name}` }))
    .pipe(streamArray.asStream())
  for await (const { value } of parsed) items.push(value)
  return items
}

describe('a file', () => {
  test('read with a streaming parser equals, item by item, what SQL reads from the folder', async () => {
    const { first } = folders
    const { bytes, text } = await stage.file(first)
    for (const name of madCollectionNames.filter((each) => each !== 'accountingFolder')) {
      const items = await readPlainCollection(stage.staff.client, first, name, today)
      expect(items.length, name).toBeGreaterThan(1)
      expect((await streamed(bytes, name)).map((item) => JSON.stringify(item))).toEqual(
        items.map((item) => JSON.stringify(item)),
      )
    }
    const entries = await readPlainEntries(stage.staff.client, first)
    const found = await streamed(bytes, 'entries')
    expect(found.length).toBe(entries.length)
    for (const [i, entry] of entries.entries())
      expect(JSON.stringify(found[i])).toBe(JSON.stringify(JSON.parse(JSON.stringify(entry))))
    expect(text.slice(0, text.indexOf('"data"'))).toBe(`{"metadata":${JSON.stringify(metadata)},`)
  })

  test.each(['first', 'otherFirm', 'otherTenant'] as const)(
    'of folder %s holds that folder alone, byte for byte',
    async (name) => {
      expect((await stage.file(folders[name])).text).toBe(await stage.expected(folders[name]))
    },
  )

  test('has its parts in the documented order', async () => {
    const parsed = JSON.parse((await stage.file(folders.first)).text)
    expect(Object.keys(parsed)).toEqual(['metadata', 'data'])
    expect(Object.keys(parsed.data)).toEqual(
      'accountingFolder payments banks journals accounts exercices analytics entries'.split(' '),
    )
    expect(parsed.metadata).toEqual(metadata)
  })

  test('of an empty folder is complete', async () => {
    const { text, totals } = await stage.file(folders.sameFirm)
    expect(text).toBe(await stage.expected(folders.sameFirm))
    const { accountingFolder, ...collections } = JSON.parse(text).data
    expect(accountingFolder.name).toBe('Folder 112')
    expect(Object.values(collections)).toEqual(Array.from({ length: 7 }, () => []))
    expect(totals).toEqual({ rows: 0, entries: 0, bytes: text.length, debit: 0n, credit: 0n })
  })
})

describe('totals', () => {
  test('are exact beyond what a double can hold', async () => {
    const folder = folders.otherFirm
    const before = (await stage.file(folder)).totals
    const large = [9_007_199_254_740_993n, 9_223_372_036_854_775_807n, 999_999_999_999_999n, 1n, -3n]
    const amounts = [...large, ...Array.from({ length: 40 }, () => 999_999_999_999_999n)]
    await addEntry(
      stage.staff.client,
      folder,
      { id: '70001' },
      amounts.flatMap((money, i) => [
        { id: String(70_100 + 2 * i), debit: money },
        { id: String(70_101 + 2 * i), credit: -money },
      ]),
    )
    const { totals, text } = await stage.file(folder)
    const added = amounts.reduce((sum, money) => sum + money)
    expect(totals.debit - before.debit).toBe(added)
    expect(totals.credit - before.credit).toBe(-added)
    expect(text).toContain('"debit":92233720368547758.07,"amount":-92233720368547758.07')
    expect(text).toBe(await stage.expected(folder))
  })
})

test('a file shows one state of the folder, whatever is committed meanwhile', async () => {
  const before = await stage.expected(folders.otherTenant)
  const snapshot = await openSnapshot(stage.pool, folders.otherTenant.schemaId)
  const { chunks } = renderChunks(snapshot, folders.otherTenant, 'JSON', { now, chunkBytes: 2000 })
  const parts = [Buffer.from((await chunks.next()).value!)]
  const ofFolder = 'schema_id = 200 and folder_id = 211'
  for (const statement of [
    `update grandlivre.accounts set name = 'changed' where ${ofFolder}`,
    `delete from grandlivre.entries where ${ofFolder} and id > 600`,
    `update grandlivre.movements set debit = 7, credit = 0 where ${ofFolder}`,
  ])
    expect((await stage.staff.client.query(statement)).rowCount).toBeGreaterThan(0)
  for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  await snapshot.close()
  expect(Buffer.concat(parts).toString('utf8')).toBe(before)
  expect(await stage.expected(folders.otherTenant)).not.toBe(before)
})

/** The rest of a file, or its error, when the database connections are cut after some chunks. */
async function cutOff(folder: FolderKey, chunkBytes: number, chunksBefore: number): Promise<unknown> {
  const snapshot = await openSnapshot(stage.pool, folder.schemaId)
  const { chunks } = renderChunks(snapshot, folder, 'JSON', { chunkBytes })
  for (let i = 0; i < chunksBefore; i++) expect((await chunks.next()).done).toBe(false)
  await stage.staff.client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'test' and state <> 'idle'`,
  )
  const outcome = await Array.fromAsync(chunks).catch((error: Error) => error)
  await snapshot.close(outcome instanceof Error ? outcome : new Error('the connection is gone'))
  return outcome
}

test.each([1, 2, 3, 5, 8, 13])(
  'a database connection lost within the collections ends the file with an error',
  async (chunks) => {
    expect(isConnectionLoss(await cutOff(folders.first, 600, chunks))).toBe(true)
  },
)

test('a database connection lost within the entries ends the file with an error', async () => {
  for (let i = 0; i < 40; i++) {
    const entry = { id: String(80_000 + i), comment: 'x'.repeat(300_000) }
    await addEntry(stage.staff.client, folders.otherTenant, entry, [{ id: String(90_000 + i) }])
  }
  expect(isConnectionLoss(await cutOff(folders.otherTenant, 20_000, 20))).toBe(true)
})
