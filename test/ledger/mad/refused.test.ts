/** Files that are no full export, or have a mistake, are refused with path and value. Nothing is loaded. */
import { describe, expect, test } from 'vitest'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { forTests } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'

const text = readFixture('ledger.mad.json').toString('utf8')
// biome-ignore lint/suspicious/noExplicitAny: a test reads into the file as it likes
type File = any

/** The fixture with one change. */
function changed(change: (data: File, file: File) => void): string {
  const file = JSON.parse(text)
  change(file.data, file)
  return JSON.stringify(file)
}

/** A number as it is written in the file. */
const exact = (digits: string) => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits)

const { data: known }: File = JSON.parse(text)

const stage = forTests(setImportStage)

const at = 'entries[12].movements[1]'
const attached = 'entries[5].additionalProducerProperties.partnerMetadata'
const absent = undefined
const noList = ' "{...}": a list is expected'
const missing = ': missing: a full export has it'

/** Members of the data, the problem that a value causes, and the value. */
const values: [path: string, problem: string, value: unknown][] = [
  ['banks', missing, absent],
  ['entries', missing, absent],
  ['entries', noList, {}],
  ['accounts', noList, { a: 1 }],
  ['accountingFolder', ' "[...]": an object is expected', []],
  ['accountingFolder.name', ': missing: a text is expected', absent],
  ['entries[3]', ' "x": an object is expected', 'x'],
  [`${at}.value.debit`, ' "12": an amount', '12'],
  [`${at}.value.debit`, ': missing: an amount', absent],
  [`${at}.value.debit`, ' "12.345"', exact('12.345')],
  [`${at}.value.debit`, ' "1e2"', exact('1e2')],
  [`${at}.value.debit`, ' "92233720368547758.08"', exact('92233720368547758.08')],
  // Shows that digits are read in linear time: in quadratic time they would take hours.
  [`${at}.value.debit`, ' "1.000', exact(`1.${'0'.repeat(1_000_000)}1`)],
  [`${at}.value`, '.debit "1.00": debit or credit must be zero', { debit: 1, credit: 2, amount: 1 }],
  [`${at}.value`, '.amount "1.00": credit minus debit is expected', { debit: 1, credit: 0, amount: 1 }],
  ['entries[2].date', ' "2023-02-29": a day is expected', '2023-02-29'],
  ['entries[2].date', ' "1999-12-31": no exercice of data.exercices contains this day', '1999-12-31'],
  [`${at}.producerId`, ' "12": an id is expected', 12],
  [`${at}.producerId`, ' "9007199254740992": an id below', '9007199254740992'],
  [`${at}.account.producerId`, ' "77": data.accounts has no such id', '77'],
  [`${at}.account.number`, ' "999": data.accounts[', '999'],
  [
    `${at}.payment`,
    '.producerId "77": data.payments has no such id',
    { producerId: '77', name: 'Chèque', code: 'CHQ' },
  ],
  ['entries[12].journal.producerId', ' "77": data.journals has no such id', '77'],
  [
    'entries[1].movements[1].analytics[0].sections',
    '[0].producerId "414": axis ACT of data.analytics has no such id',
    known.entries[1].movements[1].analytics[1].sections,
  ],
  [`${at}.lettering`, '.value "null": a code is expected', { state: 'complete', value: null }],
  [
    `${at}.lettering`,
    '.value "A": the code of a partial lettering has * in front',
    { state: 'partial', value: 'A' },
  ],
  ['entries[0].additionalProducerProperties.source.name', ' "X": one of E, M, O', 'X'],
  [`${at}.description`, ' "a\\x00b": a text without NUL', 'a\0b'],
  [`${at}.description`, '', 'half a character: \ud83d'],
  [attached, '.json.a[1].b', { partnerId: 'p', json: { a: [1, { b: '\0' }] } }],
  ['accounts[24]', '.producerId', known.accounts[0]],
  [
    'accounts[24]',
    `.number "${known.accounts[0].number}": data.accounts[0] has the same: it must be unique`,
    { ...known.accounts[0], producerId: '99' },
  ],
  ['accounts[0].number', ' "abc": an account number is expected', 'abc'],
  ['analytics[0].sections[1].code', ' "', known.analytics[0].sections[0].code],
  ['analytics[0].sections[0].code', ' "xxx', 'x'.repeat(256)],
  ['banks[0].journal.type', ' "CAISSE": BANQUE is expected', 'CAISSE'],
  ['exercices[1].period.start', '', known.exercices[0].period.end],
  ['exercices[0].period.end', ' "1999-01-01": a day after', '1999-01-01'],
  ['entries[18]', '.producerId "', known.entries[4]],
  ['entries[9].movements[0].producerId', ' "', known.entries[3].movements[0].producerId],
]

function withValue(path: string, value: unknown): string {
  const steps = path.match(/[^.[\]]+/g)!
  return changed((data) => {
    const owner = steps.slice(0, -1).reduce((within: File, step) => within[step], data)
    owner[steps.at(-1)!] = value
  })
}

const refusals: Record<string, [file: string | Uint8Array, message: string]> = {
  'an empty file': ['', 'the file ends before its JSON does, within the file'],
  'a file of blanks': [' \n', 'the file ends before its JSON does, within the file'],
  'not JSON': ['Bonjour', 'line 1, column 1 "Bonjour": not JSON'],
  'a FEC': [readFixture('ledger.fec.txt'), 'line 1, column 1 "JournalCode|JournalL": not JSON'],
  'a list': ['[1]', 'the file "[...]": a full export is expected'],
  'a text': ['"x"', 'the file "x": a full export is expected'],
  movements: [
    readFixture('movements.ndjson').toString().split('\n')[0]!,
    'data.accountingFolder: missing: a full export has it',
  ],
  'no data': ['{"metadata":{"version":"1.0.0"}}', 'data.analytics: missing: a full export has it'],
  'a list as data': ['{"metadata":{"version":"1.0.0"},"data":[]}', 'data "[...]": a full export is expected'],
  'a file cut within the accounts': [
    text.slice(0, text.indexOf('"exercices"') - 40),
    'the file ends before its JSON does, within data.accounts[23]',
  ],
  'a file cut within the entries': [
    text.slice(0, -400),
    'the file ends before its JSON does, within data.entries[17]',
  ],
  'a file without its last brace': [
    text.trimEnd().slice(0, -1),
    'the file ends before its JSON does, within data',
  ],
  'text after the end': [`${text} {}`, 'not JSON'],
  'a superfluous comma': [text.replace('"debit":', '"debit":,'), 'line 50, column 127 ",249.95,'],
  'bytes that are not UTF-8': [Buffer.from(text, 'latin1'), 'the file is not UTF-8: see bytes 0 to'],
  'a repeated member': [
    text.replace('"capital"', '"name":"x","capital"'),
    'data.accountingFolder has the member "name" twice',
  ],
  'a repeated list': [text.replace('"data":{', '"data":{"banks":[],'), 'data has the member "banks" twice'],
  'another version': [
    changed((_, file) => (file.metadata.version = '2.0.0')),
    'metadata.version "2.0.0": version 1',
  ],
  'a folder outside the data': [
    changed((data, file) => {
      file['data.accountingFolder'] = data.accountingFolder
      delete data.accountingFolder
    }),
    'data.accountingFolder: missing: a full export has it',
  ],
  'a VAT code with two rates': [
    changed((data) => {
      const [first, second] = data.accounts.filter((account: File) => account.company)
      first.company.vat = { producerId: '900', customerReferenceCode: 'TN', rate: 20 }
      second.company.vat = { producerId: '900', customerReferenceCode: 'TN', rate: 10 }
    }),
    '.company.vat has the same id and another rate',
  ],
  'two full names that differ': [
    changed(({ accountingFolder: { address } }) => {
      address.fullName = '1 rue A'
      address.fullname = '2 rue B'
    }),
    'data.accountingFolder.address.fullname "2 rue B": fullName is "1 rue A": both spellings mean the same',
  ],
  'an id that is no number, reported once': [
    withValue(`${at}.producerId`, 'a1'),
    `The file was not imported: 1 problem\n  data.${at}.producerId "a1": an id is expected`,
  ],
  'an empty day, reported once': [
    withValue('entries[2].date', ''),
    'The file was not imported: 1 problem\n  data.entries[2].date: a day is expected',
  ],
}

/** Members of items that name another item: with another id, and with another number or code than that item has. */
const named: [path: string, list: string, of: (data: File) => File][] = [
  ['accounts[9].correspondanceAccount', 'accounts', (data) => data.accounts[9].correspondanceAccount],
  ['accounts[18].counterpartAccount', 'accounts', (data) => data.accounts[18].counterpartAccount],
  ['accounts[21].company.payment', 'payments', (data) => data.accounts[21].company.payment],
  ['accounts[23].employee.payment', 'payments', (data) => data.accounts[23].employee.payment],
  [
    'accounts[23].employee.miscellaneous.doubtfulAccount',
    'accounts',
    (data) => data.accounts[23].employee.miscellaneous.doubtfulAccount,
  ],
  ['journals[0].counterpartAccount', 'accounts', (data) => data.journals[0].counterpartAccount],
  ['banks[0].account', 'accounts', (data) => data.banks[0].account],
  ['banks[0].journal', 'journals', (data) => data.banks[0].journal],
]

describe.each(named)('a file is refused: data.%s', (path, list, of) => {
  test.each<[string, (item: File) => void, RegExp]>([
    ['an id that the file does not have', (item) => (item.producerId = '77'), /has no such id/],
    [
      'a number or code that differs from that of the item',
      (item) => Object.assign(item, { [Object.keys(item).findLast((name) => name !== 'type')!]: 'X' }),
      /\] has the same id and another /,
    ],
  ])('%s', async (_, change, message) => {
    const file = changed((data) => {
      const item = of(data)
      expect(item).toHaveProperty('producerId')
      change(item)
    })
    const error: Error = await stage.importMad(file).catch((reason) => reason)
    expect(error.message).toContain(`data.${path}.`)
    expect(error.message).toMatch(message)
    expect(error.message).toContain(`data.${list}`)
  })
})

describe('a file is refused', () => {
  const expectRefused = (file: string | Uint8Array, message: string, options = {}) =>
    stage.expectRefused(() => stage.importMad(file, options), message)

  test.each(Object.entries(refusals))('%s', (_, [file, message]) => expectRefused(file, message))

  test.each(values)('data.%s%s', (path, problem, value) =>
    expectRefused(withValue(path, value), `data.${path}${problem}`),
  )

  test.each([
    ['an entry', 'entries[18]', '.producerId "', { ...known.entries[4], movements: [] }],
    ['a movement', ...values.at(-1)!],
  ])('if it has %s twice, even if all ids are renumbered', (_, path, problem, value) =>
    expectRefused(withValue(path, value), `data.${path}${problem}`, { renumber: true }),
  )

  test('if it repeats an id before an invalid entry in the same read', async () => {
    const file = JSON.parse(text)
    const [entry] = file.data.entries.filter((each: File) => each.movements.length === 2)
    const ids = Array.from({ length: 2000 }, (_, at) => String(5_000_000 + at)).values()
    const anew = (each: File) => ({ ...each, producerId: ids.next().value })
    const entries = Array.from({ length: 600 }, () =>
      anew({ ...entry, movements: entry.movements.map(anew) }),
    )
    entries[498].producerId = entries[497].producerId
    entries[503] = null
    file.data.entries = entries
    await expect(stage.importMad(JSON.stringify(file))).rejects.toThrow(
      /data\.entries\[498\]\.producerId "\d+": data\.entries\[497\]\.producerId is the same/,
    )
  })

  test('with up to twenty problems at once, in the order of the file', async () => {
    const file = changed((data) => {
      for (const entry of data.entries) for (const each of entry.movements) each.value.amount = 'x'
    })
    const error: Error = await stage.importMad(file).catch((reason) => reason)
    const lines = error.message.split('\n')
    expect(lines.length).toBe(22)
    expect(lines[1]).toMatch(/^ {2}data\.entries\[0\]\.movements\[0\]\.value\.amount "x": /)
    expect(lines.at(-1)).toBe('  ... the check stopped after 20')
  })
})

test('an item of the size of a file is refused before it fills the memory', async () => {
  const long = changed(
    (data) => (data.entries[0].additionalProducerProperties.comment = 'x'.repeat(65_000_000)),
  )
  await expect(stage.importMad(long)).rejects.toThrow('data.entries[0] is larger than 64 million characters')
})
