/** The file of a full export: its items, compared with what SQL reads from the folder, and their shapes. */
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
import { hostileText } from '../support/ledgers/full-ledger.ts'
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
  test('read with a streaming parser equals, item by item, the rows that SQL reads from the folder', async () => {
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
    'of folder %s contains only that folder, byte for byte',
    async (name) => {
      expect((await stage.file(folders[name])).text).toBe(await stage.expected(folders[name]))
    },
  )

  test('has its sections in the documented order', async () => {
    const parsed = JSON.parse((await stage.file(folders.first)).text)
    expect(Object.keys(parsed)).toEqual(['metadata', 'data'])
    expect(Object.keys(parsed.data)).toEqual(
      'accountingFolder payments banks journals accounts exercices analytics entries'.split(' '),
    )
    expect(parsed.metadata).toEqual(metadata)
  })

  test('of an empty folder is a complete file', async () => {
    const { text, totals } = await stage.file(folders.sameFirm)
    expect(text).toBe(await stage.expected(folders.sameFirm))
    const { accountingFolder, ...collections } = JSON.parse(text).data
    expect(accountingFolder.name).toBe('Folder 112')
    expect(Object.values(collections)).toEqual(Array.from({ length: 7 }, () => []))
    expect(totals).toEqual({ rows: 0, entries: 0, debit: 0n, credit: 0n })
  })
})

// biome-ignore lint/suspicious/noExplicitAny: three shapes
const accounts = async (): Promise<Map<string, any>> => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
  return new Map(data.accounts.map((account: { number: string }) => [account.number, account]))
}

const general = 'producerId number name closed counterpartAccount correspondanceAccount'
const company = 'producerId number name closed counterpartAccount company'
const employee = 'producerId number name closed employee'

describe('accounts', () => {
  test('have the form that the root of their number prescribes', async () => {
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

  test('show all details of a company', async () => {
    const address = {
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
      address,
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

  test('show a company without details under the name of its account', async () => {
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

  test('show all details of an employee, and a doubtful account even if it is the only detail', async () => {
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

test('payment modes have their documented names', async () => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
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

test('the entries include drafts and entries without movements', async () => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
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

describe('totals', () => {
  test('are exact where a double would not be', async () => {
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

test('a file shows a single state of the folder, even if changes are committed meanwhile', async () => {
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
  'losing the database connection within the collections ends the file with an error',
  async (chunks) => {
    expect(isConnectionLoss(await cutOff(folders.first, 600, chunks))).toBe(true)
  },
)

test('losing the database connection within the entries ends the file with an error', async () => {
  for (let i = 0; i < 40; i++) {
    const entry = { id: String(80_000 + i), comment: 'x'.repeat(300_000) }
    await addEntry(stage.staff.client, folders.otherTenant, entry, [{ id: String(90_000 + i) }])
  }
  expect(isConnectionLoss(await cutOff(folders.otherTenant, 20_000, 20))).toBe(true)
})
