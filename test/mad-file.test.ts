/** The file of a full export against what SQL says is in the folder. */
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type pg from 'pg'
import { pick } from 'stream-json/filters/pick.js'
import { streamArray } from 'stream-json/streamers/stream-array.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool, isConnectionLoss } from '../src/db/pool.ts'
import { dayIn } from '../src/exports/day.ts'
import { countMovements, type MadTotals, renderMadFile } from '../src/exports/mad-file.ts'
import { openSnapshot, type Snapshot } from '../src/exports/snapshot.ts'
import { exerciceItems } from '../src/formats/mad/exercice.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { addToFolder, hostileText } from './support/full-ledger.ts'
import { addEntry, fillLedger } from './support/ledger.ts'
import { collectionNames, readPlainCollection, readPlainEntries } from './support/plain-mad.ts'
import { createTenants, folders, type Staff } from './support/tenants.ts'

let database: TestDatabase
let staff: Staff
let pool: pg.Pool

/** Within the year 2025-07-01 to 2026-06-30, the last of the ledger. */
const today = '2026-03-15'
const now = 1_767_225_600_123
const metadata = {
  version: '1.0.0',
  createdAt: now,
  producer: 'Grandlivre',
  additionalFreeProperties: { exportId: 'export_0123' },
}
type Key = { schemaId: string; folderId: string }

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  for (const [label, { schemaId, folderId }] of Object.entries(folders)) {
    if (label === 'sameFirm') continue
    const folder = { schemaId, folderId }
    await fillLedger(staff.client, { ...folder, label, thirdPartyId: rows[0].id })
    await addToFolder(staff.client, folder)
  }
  pool = createPool(database.serviceUrl, { max: 4, applicationName: 'test' })
})

afterAll(async () => {
  await pool?.end()
  await staff?.end()
  await database?.drop()
})

function render(snapshot: Snapshot, folder: Key, chunkBytes = 256 * 1024) {
  const totals: MadTotals[] = []
  const room = (bytes: number) => new Uint8Array(bytes)
  const { schemaId, folderId } = folder
  const options = {
    schemaId,
    folderId,
    exportId: 'export_0123',
    version: '1.0.0',
    now,
    today,
    chunkBytes,
    room,
  }
  return { totals, chunks: renderMadFile(snapshot, { ...options, counted: (sum) => totals.push(sum) }) }
}

async function file(folder: Key, chunkBytes?: number) {
  const snapshot = await openSnapshot(pool, folder.schemaId)
  const { totals, chunks } = render(snapshot, folder, chunkBytes)
  const parts: Buffer[] = []
  try {
    for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  } catch (error) {
    await snapshot.close(error as Error)
    throw error
  }
  await snapshot.close()
  const bytes = Buffer.concat(parts)
  return { bytes, text: bytes.toString('utf8'), parts, totals: totals.at(-1)!, counts: totals }
}

/** What SQL says, as the text it has to be. */
async function expected(folder: Key): Promise<string> {
  const data: Record<string, unknown> = {}
  for (const name of collectionNames) {
    const items = await readPlainCollection(staff.client, folder, name, today)
    data[name] = name === 'accountingFolder' ? items[0] : items
  }
  data['entries'] = await readPlainEntries(staff.client, folder)
  return JSON.stringify({ metadata, data })
}

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
  test('read by a streaming parser holds, item by item, what SQL says is in the folder', async () => {
    const { first } = folders
    const { bytes, text } = await file(first)
    for (const name of collectionNames.filter((each) => each !== 'accountingFolder')) {
      const items = await readPlainCollection(staff.client, first, name, today)
      expect(items.length, name).toBeGreaterThan(1)
      expect((await streamed(bytes, name)).map((item) => JSON.stringify(item))).toEqual(
        items.map((item) => JSON.stringify(item)),
      )
    }
    const entries = await readPlainEntries(staff.client, first)
    const found = await streamed(bytes, 'entries')
    expect(found.length).toBe(entries.length)
    for (const [i, entry] of entries.entries())
      expect(JSON.stringify(found[i])).toBe(JSON.stringify(JSON.parse(JSON.stringify(entry))))
    expect(text.slice(0, text.indexOf('"data"'))).toBe(`{"metadata":${JSON.stringify(metadata)},`)
  })

  test.each(['first', 'otherFirm', 'otherTenant'] as const)(
    'of folder %s is its own, byte for byte',
    async (name) => {
      expect((await file(folders[name])).text).toBe(await expected(folders[name]))
    },
  )

  test('has its parts in the order of the contract', async () => {
    const parsed = JSON.parse((await file(folders.first)).text)
    expect(Object.keys(parsed)).toEqual(['metadata', 'data'])
    expect(Object.keys(parsed.data)).toEqual(
      'accountingFolder payments banks journals accounts exercices analytics entries'.split(' '),
    )
    expect(parsed.metadata).toEqual(metadata)
  })

  test('of an empty folder is complete, too', async () => {
    const { text, totals } = await file(folders.sameFirm)
    expect(text).toBe(await expected(folders.sameFirm))
    const { accountingFolder, ...collections } = JSON.parse(text).data
    expect(accountingFolder.name).toBe('Folder 112')
    expect(Object.values(collections)).toEqual(Array.from({ length: 7 }, () => []))
    expect(totals).toEqual({ rows: 0, entries: 0, bytes: text.length, debit: 0n, credit: 0n })
  })

  test('is the same whatever the size of its chunks, which only single items exceed', async () => {
    const whole = await file(folders.first)
    for (const chunkBytes of [600, 4096, 20_000]) {
      const { text, parts } = await file(folders.first, chunkBytes)
      expect(text).toBe(whole.text)
      expect(parts.length).toBeGreaterThan(whole.parts.length)
      expect(parts.filter((part) => part.length === 0)).toEqual([])
      if (chunkBytes === 20_000)
        expect(Math.max(...parts.slice(4).map((part) => part.length))).toBeLessThanOrEqual(chunkBytes)
    }
  })

  test('of a folder that is not there is refused before its first byte', async () => {
    await expect(file({ schemaId: '100', folderId: '999' })).rejects.toMatchObject({
      code: 'ERR-FOLDER-NOT-FOUND',
    })
    await expect(file({ schemaId: '100', folderId: '211' })).rejects.toMatchObject({
      code: 'ERR-FOLDER-NOT-FOUND',
    })
  })
})

describe('totals', () => {
  test('are those of SQL to the cent, and never go back', async () => {
    const { totals, counts, bytes } = await file(folders.first, 4096)
    const { rows } = await staff.client.query(
      `select count(*), sum(debit) as debit, sum(credit) as credit, (select count(*) from grandlivre.entries e
         where e.schema_id = 100 and e.folder_id = 111) as entries
       from grandlivre.movements m where m.schema_id = 100 and m.folder_id = 111`,
    )
    const { count, entries, debit, credit } = rows[0]
    expect(totals).toEqual({
      rows: Number(count),
      entries: Number(entries),
      bytes: bytes.length,
      debit: BigInt(debit),
      credit: BigInt(credit),
    })
    for (const [i, later] of counts.slice(1).entries()) {
      expect(later.bytes).toBeGreaterThan(counts[i]!.bytes)
      expect(later.rows).toBeGreaterThanOrEqual(counts[i]!.rows)
    }
    const snapshot = await openSnapshot(pool, '100')
    expect(await countMovements(snapshot.second, '100', '111')).toBe(totals.rows)
    await snapshot.close()
  })

  test('are exact beyond what a double can hold', async () => {
    const folder = folders.otherFirm
    const before = (await file(folder)).totals
    const large = [9_007_199_254_740_993n, 9_223_372_036_854_775_807n, 999_999_999_999_999n, 1n, -3n]
    const amounts = [...large, ...Array.from({ length: 40 }, () => 999_999_999_999_999n)]
    await addEntry(
      staff.client,
      folder,
      { id: '70001' },
      amounts.flatMap((money, i) => [
        { id: String(70_100 + 2 * i), debit: money },
        { id: String(70_101 + 2 * i), credit: -money },
      ]),
    )
    const { totals, text } = await file(folder)
    const added = amounts.reduce((sum, money) => sum + money)
    expect(totals.debit - before.debit).toBe(added)
    expect(totals.credit - before.credit).toBe(-added)
    expect(text).toContain('"debit":92233720368547758.07,"amount":-92233720368547758.07')
    expect(text).toBe(await expected(folder))
  })
})

// biome-ignore lint/suspicious/noExplicitAny: three shapes
const accounts = async (): Promise<Map<string, any>> => {
  const { data } = JSON.parse((await file(folders.first)).text)
  return new Map(data.accounts.map((account: { number: string }) => [account.number, account]))
}

const general = 'producerId number name closed counterpartAccount correspondanceAccount'
const company = 'producerId number name closed counterpartAccount company'
const employee = 'producerId number name closed employee'

describe('accounts', () => {
  test('have the shape that the root of their number says', async () => {
    const shapes = [...(await accounts())].map(([number, account]) => [
      number,
      Object.keys(account).join(' '),
    ])
    expect(Object.fromEntries(shapes)).toMatchObject({
      '706000': general,
      '40': general,
      '41': general,
      '4220001': general,
      '401ALPHA': company,
      '401': company,
      '4010': company,
      '4111': company,
      '411DUPONT': company,
      '42100001': employee,
      '421': employee,
      '4210002': employee,
    })
  })

  test('show all that is known of a company', async () => {
    const place = {
      addressNumber: '12',
      addressComplement: 'BP 1',
      postalCode: '44000',
      streetName: hostileText,
      streetType: 'rue',
      locatingIndex: 'bis',
      fullName: `12 bis rue ${hostileText}`,
      fullname: `12 bis rue ${hostileText}`,
      city: hostileText,
      country: 'FRANCE',
    }
    const found = (await accounts()).get('401ALPHA').company
    expect(found).toEqual({
      name: hostileText,
      SIREN: '123456789',
      CEO: hostileText,
      payment: { producerId: '55', code: 'PRE' },
      address: place,
      ape: { producerId: '1', code: '62.01Z', name: hostileText },
      vat: { producerId: '83', customerReferenceCode: 'Z', rate: 0 },
      IBANs: ['FR76', hostileText, ''],
      contacts: [
        { firstname: 'Ça', lastname: 'Né', phoneNumber: '+33', role: null, email: 'a@b.fr' },
        { firstname: null, lastname: null, phoneNumber: null, role: 'x', email: null },
      ],
      miscellaneous: { referent: 'R', language: 'fr', group: 'G', archived: true },
    })
    expect(Object.keys(found).join(' ')).toBe(
      'name SIREN CEO payment address ape vat IBANs contacts miscellaneous',
    )
  })

  test('show a company of which nothing is known by the name of its account', async () => {
    expect((await accounts()).get('401').company).toEqual({
      name: 'Fournisseurs',
      SIREN: null,
      CEO: null,
      payment: null,
      address: null,
      ape: null,
      vat: null,
      IBANs: [],
      contacts: [],
      miscellaneous: null,
    })
    const { name, address } = (await accounts()).get('4010').company
    expect([name, address.fullName]).toEqual(['', null])
  })
})

describe('accounts', () => {
  test('show an employee, and a doubtful account beside nothing else', async () => {
    const found = await accounts()
    const { employee: full } = found.get('42100001')
    expect(Object.keys(full).join(' ')).toBe(
      'firstName lastName email phoneNumber phoneNumberBis NIR profession payment address IBANs contacts miscellaneous',
    )
    expect(full.payment).toEqual({ producerId: '57', code: 'CHQ' })
    expect(Object.entries(full.miscellaneous).slice(0, 4)).toEqual(
      Object.entries({ referent: 'R', language: null, group: null, archived: false }),
    )
    expect(full.miscellaneous.doubtfulAccount.number).toBe('411DUPONT')
    expect(found.get('421').employee.miscellaneous.doubtfulAccount.number).toBe('60')
    expect(found.get('4210002').employee.miscellaneous).toBeNull()
  })
})

test('modes of payment are named as the contract lists them', async () => {
  const { data } = JSON.parse((await file(folders.first)).text)
  const shown = data.payments.map((payment: { [key: string]: unknown }) => Object.values(payment))
  const property = (code: string) => ({ code })
  expect(shown).toEqual([
    ['51', 'Carte Bleue', 'CB', property('CB')],
    ['52', 'Virement', 'VIR', property('VIRT')],
    ['53', 'Espèce', 'ESP', property('ESP')],
    ['54', 'Chèque', 'CHQ', property('CHQ')],
    ['55', 'Prélèvement', 'PRE', property('PRLV')],
    ['56', 'Lettre de change', 'LCR', property('LCR')],
    ['57', 'Chèque', 'CHQ', property('CHQ')],
  ])
})

test('entries show their drafts, and those without movements', async () => {
  const { data } = JSON.parse((await file(folders.first)).text)
  // biome-ignore lint/suspicious/noExplicitAny: as parsed
  const entries: any[] = data.entries
  const dates = entries.map((entry) => entry.additionalProducerProperties.validationDate)
  expect(dates.filter((date) => date === null).length).toBeGreaterThan(10)
  expect(dates.filter((date) => /^\d{4}-\d\d-\d\d$/.test(date)).length).toBeGreaterThan(10)
  const empty = entries.filter((entry) => entry.movements.length === 0)
  expect(empty.map((entry) => entry.producerId)).toEqual(['1', '2', '500', '700', '4000'])
  expect(Object.keys(entries[0]).join(' ')).toBe(
    'producerId attachments date dueDate journal currency movements additionalProducerProperties',
  )
  const movement = entries.find((entry) => entry.movements.length > 0).movements[0]
  expect(Object.keys(movement).join(' ')).toBe(
    'producerId description dueDate freeNumber invoiceNumber value attachments account payment analytics lettering',
  )
  const foreign = entries.filter((entry) => 'rate' in entry.currency)
  expect(new Set(foreign.map((entry) => entry.currency.rate))).toEqual(new Set([1.0832, 0.000001]))
})

describe('fiscal years', () => {
  const year = (start: string, end: string) => ({
    id: '1',
    start,
    end,
    lettering: 'MONO',
    closedAt: null,
    closedById: null,
    closedByFirstName: null,
    closedByLastName: null,
  })
  const years = [
    year('2023-07-01', '2024-06-30'),
    year('2024-07-01', '2024-12-31'),
    year('2025-01-01', '2026-06-15'),
    year('2027-01-01', '2027-01-31'),
  ]
  const shown = (day: string) => exerciceItems(years, day) as { name: string; period: { duration: number } }[]

  test.each([
    ['2023-06-30', 'N+1 N+2 N+3 N+4'],
    ['2023-07-01', 'N N+1 N+2 N+3'],
    ['2024-12-31', 'N-1 N N+1 N+2'],
    ['2025-01-01', 'N-2 N-1 N N+1'],
    ['2026-12-31', 'N-2 N-1 N N+1'],
    ['2030-01-01', 'N-3 N-2 N-1 N'],
  ])('on %s are named %s', (day, names) => {
    expect(
      shown(day)
        .map(({ name }) => name)
        .join(' '),
    ).toBe(names)
  })

  test('that overlap are named after the one that contains today', () => {
    const overlapping = [year('2024-01-01', '2025-12-31'), year('2025-02-01', '2025-03-31')]
    const names = exerciceItems(overlapping, '2025-07-01') as { name: string }[]
    expect(names.map(({ name }) => name)).toEqual(['N', 'N+1'])
  })

  test('last so many months, a begun one counted', () => {
    expect(shown('2025-01-01').map(({ period }) => period.duration)).toEqual([12, 6, 18, 1])
  })

  test('change their names at midnight in the time zone of the platform', () => {
    const instant = Date.parse('2025-12-31T23:30:00Z')
    expect([
      dayIn('Europe/Paris', instant),
      dayIn('UTC', instant),
      dayIn('America/New_York', instant),
    ]).toEqual(['2026-01-01', '2025-12-31', '2025-12-31'])
  })
})

test('a file is one state of the folder, whatever is committed while it is made', async () => {
  const before = await expected(folders.otherTenant)
  const snapshot = await openSnapshot(pool, folders.otherTenant.schemaId)
  const { chunks } = render(snapshot, folders.otherTenant, 2000)
  const parts = [Buffer.from((await chunks.next()).value!)]
  const ofFolder = 'schema_id = 200 and folder_id = 211'
  for (const statement of [
    `update grandlivre.accounts set name = 'changed' where ${ofFolder}`,
    `delete from grandlivre.entries where ${ofFolder} and id > 600`,
    `update grandlivre.movements set debit = 7, credit = 0 where ${ofFolder}`,
  ])
    expect((await staff.client.query(statement)).rowCount).toBeGreaterThan(0)
  for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  await snapshot.close()
  expect(Buffer.concat(parts).toString('utf8')).toBe(before)
  expect(await expected(folders.otherTenant)).not.toBe(before)
})

/** The file as far as it comes when the database goes away behind some chunks. */
async function cutOff(folder: Key, chunkBytes: number, chunksBefore: number): Promise<unknown> {
  const snapshot = await openSnapshot(pool, folder.schemaId)
  const { chunks } = render(snapshot, folder, chunkBytes)
  for (let i = 0; i < chunksBefore; i++) expect((await chunks.next()).done).toBe(false)
  await staff.client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test' and state <> 'idle'`,
  )
  const outcome = await Array.fromAsync(chunks).catch((error: Error) => error)
  await snapshot.close(outcome instanceof Error ? outcome : new Error('the connection is gone'))
  return outcome
}

test.each([1, 2, 3, 5, 8, 13])(
  'a database that goes away among the collections ends the file with an error',
  async (chunks) => {
    expect(isConnectionLoss(await cutOff(folders.first, 600, chunks))).toBe(true)
  },
)

test('a database that goes away among the entries ends the file with an error', async () => {
  for (let i = 0; i < 40; i++) {
    const entry = { id: String(80_000 + i), comment: 'x'.repeat(300_000) }
    await addEntry(staff.client, folders.otherTenant, entry, [{ id: String(90_000 + i) }])
  }
  expect(isConnectionLoss(await cutOff(folders.otherTenant, 20_000, 20))).toBe(true)
})
