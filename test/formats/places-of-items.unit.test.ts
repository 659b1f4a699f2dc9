/**
 * Each column of the other items is in the schema of the database, in the table of their loader and in the item that
 * partners see; each member of a movement and of an entry, in the writer of its bytes. Members of rows and of items are
 * named by the compiler.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { accountingFolderItem, type FolderView } from '../../src/formats/items/accounting-folder.ts'
import { accountItem, accountTable } from '../../src/formats/items/accounts/account.ts'
import {
  type CompanyView,
  companyItem,
  companyTable,
  type EmployeeView,
  employeeItem,
  employeeTable,
} from '../../src/formats/items/accounts/parties.ts'
import { vatItem, vatTable } from '../../src/formats/items/accounts/vat.ts'
import { axisItem, axisTable, sectionTable } from '../../src/formats/items/axis.ts'
import { MadEntry, MadMovement } from '../../src/formats/items/entry.ts'
import { type ExerciceView, exerciceItems, exerciceTable } from '../../src/formats/items/exercice.ts'
import { bankItem, bankTable, journalItem, journalTable } from '../../src/formats/items/journal.ts'
import { paymentItem, paymentTable } from '../../src/formats/items/payment.ts'
import { columnsOf, type Table } from '../../src/formats/items/table.ts'
import { storedColumns } from '../support/plain/stored-columns.ts'

const sourceOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const ofFiledYear = ['filed_columns', 'scattered']
/** Each table with the columns that only the import of a FEC writes. */
const tables: [table: Table, ofFec: string[]][] = [
  [paymentTable, []],
  [vatTable, []],
  [accountTable, ['filed_number', 'filed_name', 'auxiliary_number', 'auxiliary_name']],
  [companyTable, []],
  [employeeTable, []],
  [journalTable, ['filed_name']],
  [bankTable, []],
  [axisTable, []],
  [sectionTable, []],
  [exerciceTable, ofFiledYear],
]

test.each(tables.map(([table, ofFec]) => ({ table, ofFec, name: table.name })))(
  'the loader of $name in src/formats/items has the columns of src/db/schema.sql',
  ({ table, ofFec, name }) => {
    expect([...columnsOf(table), ...ofFec].toSorted()).toEqual(storedColumns(name).toSorted())
  },
)

const account = { producerId: '1', number: '1', name: 'a' }
const address = {
  ...{ number: '1', locatingIndex: 'bis', streetType: 'rue', streetName: 'a' },
  ...{ complement: 'b', postalCode: 'c', city: 'd', country: 'e' },
}
const payment = { id: '1', code: 'CB' }
const party = { payment, address, ibans: ['a'], contacts: [{ email: 'a' }], miscellaneous: { group: 'a' } }
const company: CompanyView = {
  ...{ ...party, name: 'a', siren: 'b', ceo: 'c', apeProducerId: 'd', apeCode: 'e', apeName: 'f' },
  vat: { id: '1', code: 'a', rate: 1 },
}
const employee: EmployeeView = {
  ...{ ...party, firstName: 'a', lastName: 'b', email: 'c', phoneNumber: 'd', phoneNumberBis: 'e' },
  ...{ nir: 'f', profession: 'g', doubtfulAccount: account },
}
const folder: FolderView = {
  ...{ name: 'a', reference: 'b', address, contactFirstName: 'c', contactLastName: 'd', siret: 'e' },
  ...{ contactPhoneNumber: 'f', contactMobilePhoneNumber: 'g', contactMail: 'h', capital: '1' },
  ...{ rcsProducerId: 'i', rcsName: 'j' },
}
const exercice: ExerciceView = {
  ...{ id: '1', start: '2024-01-01', end: '2024-12-31', lettering: 'MONO', closedOn: '2025-01-01' },
  ...{ closedById: '1', closedByFirstName: 'a', closedByLastName: 'b' },
}
const section = { id: '1', code: 'a', name: 'b', accountRoots: ['1'], closed: false }

interface Shown {
  file: string
  write: () => unknown
  /** The item, written with each member changed in turn. */
  changed: [member: string, item: unknown][]
}

function otherThan(value: unknown): unknown {
  if (typeof value === 'string') return `${value}z`
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  return Array.isArray(value) ? [] : null
}

/** @param others values for members that accept only some values of their type */
function shown<View extends object>(
  file: string,
  write: (view: View) => unknown,
  view: View,
  others: Partial<View> = {},
): Shown {
  const members = Object.entries(view).filter(([, value]) => value !== null)
  const changed = members.map(([member, value]): [string, unknown] => [
    member,
    write({
      ...view,
      [member]: otherThan(value),
      ...(member in others && { [member]: others[member as keyof View] }),
    }),
  ])
  return { file: `src/formats/items/${file}`, write: () => write(view), changed }
}

const writers: Shown[] = [
  shown('accounting-folder.ts', accountingFolderItem, folder, {
    address: { ...address, city: 'z' },
    capital: '2',
  }),
  shown('payment.ts', paymentItem, payment),
  shown('accounts/vat.ts', vatItem, { id: '1', code: 'a', rate: 1 }),
  shown('accounts/parties.ts', companyItem, company),
  shown('accounts/parties.ts', employeeItem, employee),
  shown('accounts/account.ts', accountItem, {
    ...{ id: '1', number: '1', name: 'a', closed: false, company: null, employee: null },
    ...{ counterpartAccount: account, correspondanceAccount: account },
  }),
  shown(
    'journal.ts',
    journalItem,
    { id: '1', code: 'a', name: 'b', type: 'ACH', locked: false, counterpartAccount: account },
    { type: 'VTE' },
  ),
  shown('journal.ts', bankItem, {
    ...{ id: '1', rib: 'a', iban: 'b', bic: 'c', isDefault: false, account },
    ...{ journalId: '1', journalName: 'a', journalCode: 'b' },
  }),
  shown('axis.ts', axisItem, { id: '1', code: 'a', name: 'b', defaultSectionId: '1', sections: [section] }),
  shown(
    'axis.ts',
    (one: typeof section) =>
      axisItem({ id: '1', code: 'a', name: 'b', defaultSectionId: null, sections: [one] }),
    section,
  ),
  shown('exercice.ts', (one: ExerciceView) => exerciceItems([one], '2024-06-01'), exercice, {
    ...{ start: '2024-02-01', end: '2024-11-30', lettering: 'MULTI', closedOn: null },
  }),
]

test.each(writers)('the writer in $file writes every member of its row', ({ write, changed }) => {
  const item = JSON.stringify(write())
  const forgotten = changed.filter(([, other]) => JSON.stringify(other) === item)
  expect(forgotten.map(([member]) => member)).toEqual([])
})

test('statements of src/ledger/collections.sql.ts that list their columns read all columns of the table', () => {
  const statements = sourceOf('src/ledger/collections.sql.ts')
  const bodyOf = (name: string) =>
    statements.split(new RegExp(`(?:function|const) ${name}\\b`))[1]!.split('\nexport ')[0]!
  const unread = (table: string, body: string, others: string[]) =>
    storedColumns(table).filter(
      (column) => !others.includes(column) && !new RegExp(`\\b${column}\\b`).test(body),
    )
  expect(unread('exercices', bodyOf('readExercices'), ofFiledYear)).toEqual([])
  // The firm has its own route. The other columns belong to the ledger, not to the item.
  const ofLedger = ['id', 'firm_id', 'currency', 'ledger_version', 'created_at', 'erased_at']
  expect(unread('folders', bodyOf('folderView'), ['schema_id', 'folder_id', ...ofLedger])).toEqual([])
  expect(unread('firms', bodyOf('readFirm'), [])).toEqual([])
})

const writersOfBytes: [what: string, members: string[], files: string[]][] = [
  ['a movement', Object.keys(MadMovement.shape), ['movement.ts', 'dictionary.ts']],
  [
    'an entry',
    Object.keys({ ...MadEntry.shape, ...MadEntry.shape.additionalProducerProperties.shape }),
    ['entry.ts'],
  ],
]

test.each(writersOfBytes)('src/formats/mad writes every member of %s', (_, members, files) => {
  const code = files.map((file) => sourceOf(`src/formats/mad/${file}`)).join('\n')
  const written = code.replaceAll(/\/\*[\s\S]*?\*\//g, '')
  const isWritten = (member: string) =>
    written.includes(`"${member}":`) || (member === 'producerId' && written.includes('producerId'))
  expect(
    members.filter((member) => !isWritten(member)),
    files.join(', '),
  ).toEqual([])
})
