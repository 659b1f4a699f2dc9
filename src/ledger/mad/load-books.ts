/** Loads what entries refer to, in the caller's transaction. */

import type { ClientBase } from 'pg'
import type { TableOf } from '../../formats/items/table.ts'
import { addressOf, type FileCompany, type FileEmployee } from '../../formats/mad/read/item-schemas.ts'
import type { CompanyRow, EmployeeRow, FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import * as load from '../load.ts'
import { TableWriter } from '../load.ts'
import type { Books } from './books.ts'
import type { KnownBook } from './replace-books.sql.ts'

/** The id in the database of an id in the file. */
export type IdOf = (kind: BookKind, id: string) => string

const kinds = [
  'payments',
  'vatCodes',
  'accounts',
  'journals',
  'banks',
  'axes',
  'sections',
  'exercices',
] as const
type BookKind = (typeof kinds)[number]

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
  for (const kind of kinds) {
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
  const write = async <Row>(table: TableOf<Row>, rows: Iterable<Row>) => {
    const writer = new TableWriter(client, isCompared ? load.compared(table) : table)
    for (const row of rows) writer.add(row)
    await writer.flush()
  }
  const account = (of: { producerId: string } | null) => of && idOf('accounts', of.producerId)
  await write(
    load.payments,
    [...books.payments.values()].map(({ producerId, additionalProducerProperties: { code } }) => ({
      ...key,
      id: idOf('payments', producerId),
      code,
    })),
  )
  await write(
    load.vatCodes,
    [...books.vatCodes.values()].map(({ producerId, customerReferenceCode: code, rate }) => ({
      ...key,
      id: idOf('vatCodes', producerId),
      code,
      rate: Number(rate),
    })),
  )
  await loadAccounts(write, key, books, idOf)
  await write(
    load.journals,
    [...books.journals.values()].map((journal) => ({
      ...key,
      id: idOf('journals', journal.producerId),
      code: journal.customerReferenceCode,
      name: journal.name,
      type: journal.additionalProducerProperties.type,
      counterpartAccountId: account(journal.counterpartAccount),
      locked: journal.additionalProducerProperties.locked,
    })),
  )
  await write(
    load.banks,
    [...books.banks.values()].map((bank) => ({
      ...key,
      id: idOf('banks', bank.producerId),
      rib: bank.RIB,
      iban: bank.IBAN,
      bic: bank.BIC,
      accountId: account(bank.account),
      journalId: idOf('journals', bank.journal.producerId),
      isDefault: bank.additionalProducerProperties.isDefault,
    })),
  )
  await loadAxes(write, key, books, idOf)
  await write(
    load.exercices,
    [...books.exercices.values()].map(({ producerId, period, additionalProducerProperties }) => ({
      ...key,
      id: idOf('exercices', producerId),
      startDate: period.start,
      endDate: period.end,
      lettering: additionalProducerProperties.lettering,
      // The file has the day alone. Noon exists on every day in every time zone.
      closedAt: period.closed && `${period.closed.at} 12:00:00 ${timeZone}`,
      closedById: period.closed?.by.producerId ?? null,
      closedByFirstName: period.closed?.by.firstName ?? null,
      closedByLastName: period.closed?.by.lastName ?? null,
    })),
  )
}

type Write = <Row>(table: TableOf<Row>, rows: Iterable<Row>) => Promise<void>

async function loadAccounts(write: Write, key: FolderKey, books: Books, idOf: IdOf): Promise<void> {
  const account = (of: { producerId: string } | null) => of && idOf('accounts', of.producerId)
  const all = [...books.accounts.values()]
  await write(
    load.accounts,
    all.map((each) => ({
      ...key,
      id: idOf('accounts', each.producerId),
      number: each.number,
      name: each.name,
      closed: each.closed,
      counterpartAccountId: 'counterpartAccount' in each ? account(each.counterpartAccount) : null,
      correspondanceAccountId: 'correspondanceAccount' in each ? account(each.correspondanceAccount) : null,
    })),
  )
  await write(
    load.companies,
    all.flatMap((each) =>
      'company' in each ? [companyRow(key, idOf('accounts', each.producerId), each.company, idOf)] : [],
    ),
  )
  await write(
    load.employees,
    all.flatMap((each) =>
      'employee' in each ? [employeeRow(key, idOf('accounts', each.producerId), each.employee, idOf)] : [],
    ),
  )
}

async function loadAxes(write: Write, key: FolderKey, books: Books, idOf: IdOf): Promise<void> {
  const axes = [...books.axes.values()]
  await write(
    load.axes,
    axes.map(({ producerId, code, name, additionalProducerProperties: { defaultSectionId } }) => ({
      ...key,
      id: idOf('axes', producerId),
      code,
      name,
      defaultSectionId: defaultSectionId && idOf('sections', defaultSectionId),
    })),
  )
  await write(
    load.sections,
    axes.flatMap((axis) =>
      axis.sections.map((section) => ({
        ...key,
        id: idOf('sections', section.producerId),
        axisId: idOf('axes', axis.producerId),
        code: section.code,
        name: section.name,
        accountRoots: section.account === null ? [] : section.account.split(';'),
        closed: section.additionalProducerProperties.closed,
      })),
    ),
  )
}

function companyRow(key: FolderKey, accountId: string, company: FileCompany, idOf: IdOf): CompanyRow {
  const { ape, vat, payment, address } = company
  return {
    ...key,
    accountId,
    name: company.name,
    siren: company.SIREN,
    ceo: company.CEO,
    paymentId: payment && idOf('payments', payment.producerId),
    vatId: vat && idOf('vatCodes', vat.producerId),
    address: address && addressOf(address),
    apeProducerId: ape?.producerId ?? null,
    apeCode: ape?.code ?? null,
    apeName: ape?.name ?? null,
    ibans: company.IBANs,
    contacts: company.contacts,
    miscellaneous: company.miscellaneous,
  }
}

function employeeRow(key: FolderKey, accountId: string, employee: FileEmployee, idOf: IdOf): EmployeeRow {
  const { payment, address, miscellaneous } = employee
  const { doubtfulAccount = null, ...further } = miscellaneous ?? {}
  return {
    ...key,
    accountId,
    firstName: employee.firstName,
    lastName: employee.lastName,
    email: employee.email,
    phoneNumber: employee.phoneNumber,
    phoneNumberBis: employee.phoneNumberBis,
    nir: employee.NIR,
    profession: employee.profession,
    paymentId: payment && idOf('payments', payment.producerId),
    address: address && addressOf(address),
    ibans: employee.IBANs,
    contacts: employee.contacts,
    miscellaneous: miscellaneous && (further as typeof miscellaneous),
    doubtfulAccountId: doubtfulAccount && idOf('accounts', doubtfulAccount.producerId),
  }
}
