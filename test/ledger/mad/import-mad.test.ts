/** Imports of valid MAD files: the ledger that they make, and what they report. */
import { describe, expect, test } from 'vitest'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { madBytes } from '../../support/fixtures/rendered-file.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { withoutIds } from '../../support/imports/without-ids.ts'

const text = readFixture('ledger.mad.json').toString('utf8')
// biome-ignore lint/suspicious/noExplicitAny: a test reads into the file as it likes
type File = any
const file: File = JSON.parse(text)

const stage = forEachTest(setImportStage)

/** Members in the order of their names, so that the entries precede what they refer to. */
function sorted(value: File): File {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  )
}

const shown = async (folder: { schemaId: string; folderId: string }) =>
  withoutIds((await madBytes(stage.service, folder)).toString())

test.each<[string, () => string]>([
  ['with its members in another order', () => JSON.stringify(sorted(file))],
  ['indented', () => JSON.stringify(file, null, 2)],
  ['with a byte order mark', () => `\uFEFF${text}`],
])('a file %s gives the same ledger', async (_, bytes) => {
  const plain = await stage.importMad(text, { renumber: true })
  const other = await stage.importMad(bytes(), { renumber: true })
  expect(other.movements).toBe(file.data.entries.flatMap(({ movements }: File) => movements).length)
  expect(await shown(other)).toBe(await shown(plain))
})

test('the golden file is exported as it was imported, except for data about the export and the current date', async () => {
  const again: File = JSON.parse((await madBytes(stage.service, await stage.importMad(text))).toString())
  const expected = structuredClone(file)
  const names = (data: File) => data.exercices.map(({ name }: File) => name)
  expect(names(again.data).length).toBe(2)
  for (const each of [again, expected]) for (const exercice of each.data.exercices) exercice.name = ''
  // The sender is not registered in this database.
  const senders = expected.data.entries.filter(
    ({ additionalProducerProperties: { source } }: File) => source.thirdParty !== null,
  )
  for (const { additionalProducerProperties } of senders)
    additionalProducerProperties.source.thirdParty = null
  expect(again.data).toEqual(expected.data)
})

describe('members that the schema does not require may be absent', () => {
  const { contact, address } = file.data.accountingFolder
  const optional: [member: string, within: (folder: File) => File][] = [
    ...['reference', 'SIRET'].map((name): [string, (folder: File) => File] => [name, (folder) => folder]),
    ...Object.keys(contact).map((name): [string, (folder: File) => File] => [
      name,
      (folder) => folder.contact,
    ]),
    ...Object.keys(address).map((name): [string, (folder: File) => File] => [
      name,
      (folder) => folder.address,
    ]),
  ]
  const outcomeOf = async (change: (data: File) => void) => {
    const changed = structuredClone(file)
    change(changed.data)
    const imported = await stage.importMad(JSON.stringify(changed), { renumber: true })
    const { data }: File = JSON.parse((await madBytes(stage.service, imported)).toString())
    return { folder: data.accountingFolder, fullNames: imported.fullNames }
  }

  test('each member alone, with the same result as null', async () => {
    for (const [member, within] of optional) {
      const absent = await outcomeOf(({ accountingFolder }) => delete within(accountingFolder)[member])
      const none = await outcomeOf(({ accountingFolder }) => (within(accountingFolder)[member] = null))
      expect(absent, member).toEqual(none)
      // The full name is made of the parts, which may be absent, too.
      if (!/^fullname$/i.test(member)) expect(within(absent.folder)[member], member).toBeNull()
    }
  })

  test('all of them together, and addresses of companies and employees may be empty', async () => {
    const { folder } = await outcomeOf((data) => {
      const { name, capital, RCS } = data.accountingFolder
      data.accountingFolder = { name, capital, RCS, address: {}, contact: {} }
      for (const { company, employee } of data.accounts)
        for (const party of [company, employee]) if (party?.address) party.address = {}
    })
    expect(folder).toMatchObject({ reference: null, SIRET: null, contact: { mail: null } })
    expect(new Set(Object.values(folder.address))).toEqual(new Set([null]))
  })

  const { fullName } = address
  test.each<[what: string, names: File, fullNames: number]>([
    ['fullName alone', { fullName }, 0],
    ['fullname alone', { fullname: fullName }, 0],
    ['one of the two null', { fullName: null, fullname: fullName }, 0],
    ['neither', {}, 0],
    ['both null', { fullName: null, fullname: null }, 0],
    ['a full name that differs from its parts', { fullname: 'Ailleurs' }, 1],
    ['both equal, but different from the parts', { fullName: 'Ailleurs', fullname: 'Ailleurs' }, 1],
  ])('the full name of an employee: %s', async (_, names, fullNames) => {
    expect(fullName).toMatch(/./)
    const outcome = await outcomeOf(({ accountingFolder }) => {
      const { fullName: _one, fullname: _other, ...parts } = accountingFolder.address
      accountingFolder.address = { ...parts, ...names }
    })
    expect(outcome).toMatchObject({ fullNames, folder: { address: { fullName, fullname: fullName } } })
  })
})

test('unknown members and unregistered senders are counted', async () => {
  const changed = structuredClone(file)
  changed.data.documents = [1, 2, 3]
  changed.data.entries[0].color = 'red'
  changed.data.entries[3].color = 'blue'
  changed.data.entries[3].movements[0].value.vat = 1
  changed.more = true
  changed['x'.repeat(1_000)] = 1
  for (const entry of changed.data.entries.slice(0, 4))
    entry.additionalProducerProperties.source = { name: 'API', thirdParty: { name: 'N', code: 'NOBODY' } }
  const imported = await stage.importMad(JSON.stringify(changed))
  expect(Object.fromEntries(imported.unknownMembers)).toEqual({
    ...{ 'data.documents[]': 3, more: 1, ['x'.repeat(300)]: 1 },
    ...{ 'data.entries[].color': 2, 'data.entries[].movements[].value.vat': 1 },
  })
  expect(imported.unknownSenders).toBe(4)
})

test('unknown members are counted even after entries larger than one read', async () => {
  const changed = structuredClone(file)
  changed.data.entries[0].additionalProducerProperties.comment = 'x'.repeat(600_000)
  changed.data.documents = [1, 2]
  changed.more = { a: 1 }
  const { unknownMembers } = await stage.importMad(JSON.stringify(changed))
  expect(Object.fromEntries(unknownMembers)).toEqual({ 'data.documents[]': 2, more: 1 })
})

test('codes of axes and sections may contain blanks, and unknown durations are counted', async () => {
  const changed = structuredClone(file)
  const section = (id: string, code: string) => ({
    ...changed.data.analytics[0].sections[0],
    producerId: id,
    code,
  })
  const axis = (id: string, code: string, sections: File[]) => ({
    ...{ ...changed.data.analytics[0], producerId: id, code, sections },
    additionalProducerProperties: { defaultSectionId: null },
  })
  changed.data.analytics.push(
    axis('801', 'A', [section('802', 'B C')]),
    axis('803', 'A B', [section('804', 'C')]),
  )
  changed.data.exercices[1].period.duration = 11
  const imported = await stage.importMad(JSON.stringify(changed))
  expect(imported.durations).toBe(1)
  const again: File = JSON.parse((await madBytes(stage.service, imported)).toString())
  expect(again.data.analytics).toEqual(changed.data.analytics)
  expect(again.data.exercices[1].period.duration).toBe(12)
})

test('amounts and numbers in the metadata of partners keep their digits', async () => {
  const changed = text
    .replace('"debit":12,"amount":-12', '"debit":90071992547409.93,"amount":-90071992547409.93')
    .replace(
      '"partnerMetadata":null',
      '"partnerMetadata":{"partnerId":"p","json":{"a":[1.10,12345678901234567890]}}',
    )
  const again = (await madBytes(stage.service, await stage.importMad(changed))).toString()
  expect(again).toContain('"debit":90071992547409.93,"amount":-90071992547409.93')
  expect(again).toContain('"json":{"a":[1.10,12345678901234567890]}')
})

test('a folder whose entries have another currency and no rate keeps its books in that currency', async () => {
  const dollars = text.replaceAll('"currency":{"code":"EUR"}', '"currency":{"code":"USD"}')
  const { folderId } = await stage.importMad(dollars)
  const { rows } = await stage.owner.query('select currency from grandlivre.folders where id = $1', [
    folderId,
  ])
  expect(rows).toEqual([{ currency: 'USD' }])
})
