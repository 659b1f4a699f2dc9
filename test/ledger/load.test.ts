import { beforeEach, expect, test } from 'vitest'
import { type AccountRow, accountTable } from '../../src/formats/items/accounts/account.ts'
import { type CompanyRow, companyTable } from '../../src/formats/items/accounts/parties.ts'
import { type EntryRow, entryTable, type MovementRow, movementTable } from '../../src/formats/items/entry.ts'
import { exerciceTable } from '../../src/formats/items/exercice.ts'
import { journalTable } from '../../src/formats/items/journal.ts'
import type { Given } from '../../src/formats/items/table.ts'
import { IdSource } from '../../src/ledger/ids.ts'
import { TableWriter } from '../../src/ledger/load.ts'
import { createFirm, createFolder, createSchema } from '../../src/ledger/tenants.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'

const database = forTests(createTestDatabase)
const client = forTests(() => connect(database.ownerUrl))
let ids: IdSource
let key: { schemaId: string; folderId: string }

beforeEach(async () => {
  ids = new IdSource(client)
  await ids.reserve(100)
  const [schemaId, firmId, folderId] = [ids.next(), ids.next(), ids.next()]
  await createSchema(client, { id: schemaId, name: 'Test' })
  await createFirm(client, { schemaId, id: firmId, name: 'Test' })
  await createFolder(client, { schemaId, id: folderId, firmId, name: 'Test' })
  key = { schemaId, folderId }
})

const hostileTexts = [
  '',
  ' ',
  '\\',
  '\\N',
  '\\.',
  '\\t\\n',
  'tab\tline\nreturn\rboth\r\nend\\',
  '\b\f\v\u0001\u001f\u007f',
  'quotes " \' ` «»',
  '{a,"b"}',
  '(1,,"x")',
  '\u2028\u2029\ufeff\u00a0',
  'é e\u0301 ß 漢字 👩‍👩‍👧 𝔘',
  'x'.repeat(200_000),
]

function account(changes: Partial<AccountRow> = {}) {
  const id = ids.next()
  return { ...key, id, number: `6${id}`, name: 'Compte', closed: false, ...changes }
}

/** Counts the accounts of the folder. */
async function accounts(): Promise<number> {
  return (await client.query('select from accounts where folder_id = $1', [key.folderId])).rowCount!
}

async function loadOne<Row>(
  table: ConstructorParameters<typeof TableWriter<Row>>[1],
  ...rows: Given<NoInfer<Row>>[]
) {
  const writer = new TableWriter(client, table)
  for (const row of rows) writer.add(row)
  await writer.flush()
}

function company(accountId: string, changes: Partial<CompanyRow>): Given<CompanyRow> {
  return { ...key, accountId, name: 'Société', ibans: [], contacts: [], ...changes }
}

test('any text is read back unchanged', async () => {
  const rows = hostileTexts.map((name) => account({ name }))
  await loadOne(accountTable, ...rows)
  const { rows: loaded } = await client.query('select name from accounts where folder_id = $1 order by id', [
    key.folderId,
  ])
  expect(loaded.map((row) => row.name)).toEqual(hostileTexts)
})

test('texts in arrays, addresses and JSON are read back unchanged', async () => {
  const row = account({ number: '401A' })
  const contacts = hostileTexts.map((role) => ({
    firstname: null,
    lastname: '\\u0000',
    phoneNumber: '',
    role,
    email: null,
  }))
  const address = {
    number: '',
    locatingIndex: null,
    streetType: '"',
    streetName: '\\',
    complement: 'a\tb\n,()',
    postalCode: ' ',
  }
  await loadOne(accountTable, row)
  await loadOne(
    companyTable,
    company(row.id, { ibans: hostileTexts, contacts, address: { ...address, city: 'NULL', country: null } }),
  )
  const { rows } = await client.query(
    `select ibans, contacts, miscellaneous, ceo, (address).* from companies where account_id = $1`,
    [row.id],
  )
  const { ibans, contacts: loadedContacts, miscellaneous, ceo, ...parts } = rows[0]
  expect(ibans).toEqual(hostileTexts)
  expect(loadedContacts).toEqual(contacts)
  expect({ miscellaneous, ceo }).toEqual({ miscellaneous: null, ceo: null })
  expect(Object.values(parts)).toEqual(['', null, '"', '\\', 'a\tb\n,()', ' ', 'NULL', null])
})

test('an absent address stays distinct from an address of nulls, and lists stay empty', async () => {
  const [without, blank] = [account(), account()]
  const nulls = { number: null, locatingIndex: null, streetType: null, streetName: null, complement: null }
  await loadOne(accountTable, without, blank)
  await loadOne(
    companyTable,
    company(without.id, {}),
    company(blank.id, { address: { ...nulls, postalCode: null, city: null, country: null } }),
  )
  const { rows } = await client.query(
    'select address::text, ibans, contacts from companies where folder_id = $1 order by account_id',
    [key.folderId],
  )
  expect(rows).toEqual([
    { address: null, ibans: [], contacts: [] },
    { address: '(,,,,,,,)', ibans: [], contacts: [] },
  ])
})

test.each([
  ['a text', (id: string) => company(id, { name: 'a\0b' }), 'companies.name'],
  ['an array', (id: string) => company(id, { ibans: ['FR76', '\0'] }), 'companies.ibans'],
  [
    'JSON',
    (id: string) =>
      company(id, { miscellaneous: { referent: '\\\0', language: null, group: null, archived: false } }),
    'companies.miscellaneous',
  ],
])('a NUL character in %s is refused with the name of the column', (_what, row, column) => {
  const writer = new TableWriter(client, companyTable)
  expect(() => writer.add(row('1'))).toThrow(`${column} contains the character NUL`)
  expect(writer.pendingBytes).toBe(0)
})

/** The exercice, journal and account that entries need. */
async function ledgerParts() {
  const row = account()
  const [exerciceId, journalId] = [ids.next(), ids.next()]
  await loadOne(accountTable, row)
  const year = { startDate: '2024-01-01', endDate: '2024-12-31', lettering: 'MONO' as const }
  await loadOne(exerciceTable, { ...key, id: exerciceId, ...year })
  await loadOne(journalTable, { ...key, id: journalId, code: 'OD', name: 'OD', type: 'OD', locked: true })
  const entry: Given<EntryRow> = {
    ...key,
    id: ids.next(),
    exerciceId,
    journalId,
    date: '2024-02-29',
    accountedAt: '2024-03-01',
    createdAt: '2024-02-29T23:30:00Z',
    source: 'API',
    currency: 'USD',
    rate: '1.083400',
    partnerMetadata: { partnerId: 'a"b', json: { deep: ['\t', 1, null] } },
    number: 'A\t\\1',
  }
  const movement: Given<Omit<MovementRow, 'id'>> = {
    letteringState: 'none',
    ...key,
    exerciceId,
    entryId: entry.id,
    accountId: row.id,
    description: '',
    invoiceNumber: '',
    debit: 0n,
    credit: 0n,
  }
  return { entry, movement }
}

test('amounts and shares of any size are read back to the cent, and nulls as nulls', async () => {
  const { entry, movement } = await ledgerParts()
  const shares = [9007199254740991n, 9007199254740993n, 1_000_000n, 2n, -1n, 0n]
  await loadOne(entryTable, entry)
  await loadOne(
    movementTable,
    { ...movement, id: ids.next(), debit: 9007199254740993n, shares },
    { ...movement, id: ids.next(), credit: 9223372036854775807n, shares: null },
    { ...movement, id: ids.next(), credit: -1n, shares: [] },
  )
  const { rows } = await client.query(
    `select debit, credit, shares::text, free_number, payment_id, attachments from movements
     where folder_id = $1 order by id`,
    [key.folderId],
  )
  const nulls = { free_number: null, payment_id: null, attachments: null }
  expect(rows).toEqual([
    { debit: '9007199254740993', credit: '0', shares: `{${shares}}`, ...nulls },
    { debit: '0', credit: '9223372036854775807', shares: null, ...nulls },
    { debit: '0', credit: '-1', shares: '{}', ...nulls },
  ])
})

test('dates, times, rates and metadata of an entry are read back unchanged', async () => {
  const { entry } = await ledgerParts()
  await loadOne(entryTable, entry)
  const { rows } = await client.query(
    `select date::text, accounted_at::text, extract(epoch from created_at)::bigint as created_at, validated_at, rate,
       partner_metadata from entries where id = $1`,
    [entry.id],
  )
  expect(rows[0]).toEqual({
    date: '2024-02-29',
    accounted_at: '2024-03-01',
    created_at: String(Date.UTC(2024, 1, 29, 23, 30) / 1000),
    validated_at: null,
    rate: '1.083400',
    partner_metadata: entry.partnerMetadata,
  })
})

test('a batch that the database refuses leaves the connection usable and loads nothing', async () => {
  const writer = new TableWriter(client, accountTable)
  await client.query('begin')
  const row = account({ name: 'x'.repeat(100) })
  // Only the last of twenty thousand rows is invalid.
  for (let index = 0; index < 20_000; index++)
    writer.add({
      ...row,
      id: String(1_000_000 + index),
      number: index === 19_999 ? 'not a number' : `6${index}`,
    })
  await expect(writer.flush()).rejects.toThrow(/accounts_number_check/)
  await client.query('rollback')
  expect(await accounts()).toBe(0)
})

test('rows added during a flush belong to the next flush', async () => {
  const writer = new TableWriter(client, accountTable)
  writer.add(account({ name: 'first' }))
  const flushed = writer.flush()
  writer.add(account({ name: 'second' }))
  await flushed
  expect(await accounts()).toBe(1)
  expect(writer.pendingBytes).toBeGreaterThan(0)
  expect(writer.pendingRows).toBe(1)
  await writer.flush()
  expect(await accounts()).toBe(2)
  expect([writer.pendingBytes, writer.pendingRows]).toEqual([0, 0])
})

test('ids ascend across blocks, are never issued twice, and must be reserved before use', async () => {
  const others = new IdSource(client)
  const source = new IdSource(client)
  await source.reserve(1_500)
  await others.reserve(1)
  const taken = Array.from({ length: 1_200 }, () => source.next())
  await source.reserve(1_500)
  for (let index = 0; index < 1_500; index++) taken.push(source.next())
  taken.push(others.next())
  expect(new Set(taken).size).toBe(taken.length)
  const own = taken.slice(0, -1).map(Number)
  expect(own).toEqual(own.toSorted((a, b) => a - b))
  const empty = new IdSource(client)
  expect(() => empty.next()).toThrow('reserved')
})
