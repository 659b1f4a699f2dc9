/** Loads what entries refer to, in the caller's transaction. */
import type { ClientBase } from 'pg'
import { accountRow, accountTable } from '../../formats/items/accounts/account.ts'
import { companyRow, companyTable } from '../../formats/items/accounts/company.ts'
import { employeeRow, employeeTable } from '../../formats/items/accounts/employee.ts'
import { vatRow, vatTable } from '../../formats/items/accounts/vat.ts'
import { axisRow, axisTable, sectionRows, sectionTable } from '../../formats/items/axis.ts'
import { bankRow, bankTable } from '../../formats/items/bank.ts'
import { exerciceRow, exerciceTable } from '../../formats/items/exercice.ts'
import { journalRow, journalTable } from '../../formats/items/journal.ts'
import { paymentRow, paymentTable } from '../../formats/items/payment.ts'
import { type BookKind, bookKinds, type IdOf, type TableOf } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import * as load from '../load.ts'
import { TableWriter } from '../load.ts'
import type { Books } from './books.ts'
import { type KnownBook, keepEmployees } from './replace-books.sql.ts'

/** The ids of the file. */
export const keptIds: IdOf = (_kind, id) => id

/** What identifies an item where ids do not, as knownBooks has it. */
const identityOf = (books: Books, kind: BookKind, id: string): string => {
  const identities: Record<BookKind, () => (string | null)[]> = {
    payments: () => [books.payments.get(id)!.additionalProducerProperties.code, null],
    vatCodes: () => [books.vatCodes.get(id)!.customerReferenceCode, null],
    accounts: () => [books.accounts.get(id)!.number, null],
    journals: () => [books.journals.get(id)!.customerReferenceCode, null],
    banks: () => [books.banks.get(id)!.journal.customerReferenceCode, books.banks.get(id)!.IBAN],
    axes: () => [books.axes.get(id)!.code, null],
    sections: () => [books.sections.get(id)!.axis.code, books.sections.get(id)!.code],
    exercices: () => [books.exercices.get(id)!.period.start, null],
  }
  return JSON.stringify(identities[kind]())
}

/**
 * The ids that the folder has for them, else new ones, in the order of those of the file: exports have this order.
 * @param known rows of the folder; each is taken once
 */
export async function newIds(ids: IdSource, books: Books, known: readonly KnownBook[]): Promise<IdOf> {
  const free = Map.groupBy(known, ({ kind, identity, further }) => kind + JSON.stringify([identity, further]))
  const given = new Map<BookKind, Map<string, string>>()
  for (const kind of bookKinds) {
    const sorted = [...books[kind].keys()].toSorted((one, other) => Number(one) - Number(other))
    await ids.reserve(sorted.length)
    const idOf = (id: string) => free.get(kind + identityOf(books, kind, id))?.shift()?.id ?? ids.next()
    given.set(kind, new Map(sorted.map((id) => [id, idOf(id)])))
  }
  return (kind, id) => given.get(kind)!.get(id)!
}

/**
 * @param timeZone in which exercices were closed on their day
 * @param isCompared loads them into the tables of `createFiledBooks`
 */
export async function loadBooks(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  books: Books,
  idOf: IdOf,
  timeZone: string,
  isCompared: boolean,
): Promise<void> {
  const key = { schemaId, folderId }
  const write = async <Row, Item>(
    table: TableOf<Row>,
    items: Iterable<Item>,
    rowOf: (key: FolderKey, item: NoInfer<Item>, idOf: IdOf) => NoInfer<Row>,
  ) => {
    const writer = new TableWriter(client, isCompared ? load.compared(table) : table)
    for (const item of items) writer.add(rowOf(key, item, idOf))
    await writer.flush()
  }
  const accounts = [...books.accounts.values()]
  const companies = accounts.filter((each) => 'company' in each)
  const employees = accounts.flatMap((each) =>
    'employee' in each && each.employee ? [{ ...each, employee: each.employee }] : [],
  )
  const hidden = accounts.filter((each) => 'employee' in each && each.employee === null)
  const sections = books.axes.values().flatMap((axis) => sectionRows(key, axis, idOf))
  await write(paymentTable, books.payments.values(), paymentRow)
  await write(vatTable, books.vatCodes.values(), vatRow)
  await write(accountTable, accounts, accountRow)
  await write(companyTable, companies, companyRow)
  await write(employeeTable, employees, employeeRow)
  if (isCompared)
    await keepEmployees(
      client,
      key,
      hidden.map(({ producerId }) => idOf('accounts', producerId)),
    )
  await write(journalTable, books.journals.values(), journalRow)
  await write(bankTable, books.banks.values(), bankRow)
  await write(axisTable, books.axes.values(), axisRow)
  await write(sectionTable, sections, (_, row) => row)
  await write(exerciceTable, books.exercices.values(), (...of) => exerciceRow(...of, timeZone))
}
