/**
 * The company of an account with root 401 or 411, and the employee of one with root 421
 * (docs/spec/resources.md#account).
 */
import type { z } from 'zod'
import { NamedPayment, namedPayment, type PaymentView } from '../payment.ts'
import * as column from '../table.ts'
import {
  boolean,
  list,
  NamedAccount,
  named,
  type SimplifiedAccount,
  siren,
  text,
  textOrNull,
} from '../values.ts'
import { type Address, AddressItem, addressItem, addressOf } from './address.ts'
import { NamedVat, namedVat, type VatCodeView } from './vat.ts'

/** Keeps only digits and letters, as capitals without accents: `Café-1` becomes CAFE1. Empty if the text has none. */
export function accountNumber(filed: string): string {
  if (/^[0-9A-Z]*$/.test(filed)) return filed
  return filed
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
}

/** Roots of the numbers of third-party accounts: suppliers, customers and employees. */
const partyKinds = { '401': 'supplier', '411': 'customer', '421': 'employee' } as const

export type PartyKind = (typeof partyKinds)[keyof typeof partyKinds]

/** The kind of third party that the account belongs to; undefined if it is a general account. */
export function partyKind(number: string): PartyKind | undefined {
  const root = number.slice(0, 3)
  return Object.hasOwn(partyKinds, root) ? partyKinds[root as keyof typeof partyKinds] : undefined
}

const Contact = named('Contact', {
  firstname: textOrNull,
  lastname: textOrNull,
  phoneNumber: textOrNull,
  role: textOrNull,
  email: textOrNull,
})
export type Contact = z.output<typeof Contact>

export const Miscellaneous = named('CompanyMiscellaneous', {
  referent: textOrNull,
  language: textOrNull,
  group: textOrNull,
  archived: boolean,
})
export type Miscellaneous = z.output<typeof Miscellaneous>

const partyColumns = {
  paymentId: column.orNull(column.referenceTo('payments')),
  address: column.orNull(column.column<Address>('address')),
  ibans: column.texts,
  contacts: column.column<Contact[]>('json'),
  miscellaneous: column.orNull(column.column<Miscellaneous>('json')),
}

/** The stored members. Any may be missing, and they have no fixed order. */
interface PartyView {
  payment: PaymentView | null
  address: Address | null
  ibans: string[]
  contacts: Partial<Contact>[]
  miscellaneous: Partial<Miscellaneous> | null
}

/** The members that companies and employees share, except `miscellaneous`, which has more members in an employee. */
const partyMembers = {
  payment: NamedPayment.nullable(),
  address: AddressItem.nullable(),
  IBANs: list(text),
  contacts: list(Contact),
}

const partyItem = ({ payment, address, ibans, contacts }: PartyView) => ({
  payment: payment && namedPayment(payment),
  address: address && addressItem(address),
  IBANs: ibans,
  contacts: contacts.map((contact): Contact => {
    const { firstname = null, lastname = null, phoneNumber = null, role = null, email = null } = contact
    return { firstname, lastname, phoneNumber, role, email }
  }),
})

function miscellaneousItem(known: Partial<Miscellaneous>): Miscellaneous {
  const { referent = null, language = null, group = null, archived } = known
  return { referent, language, group, archived: archived ?? false }
}

type FileParty = Pick<z.output<typeof Company>, keyof typeof partyMembers>

const partyRow = ({ payment, address, IBANs, contacts }: FileParty) => ({
  paymentId: payment?.producerId,
  address: address && addressOf(address),
  ibans: IBANs,
  contacts,
})

/** The members of a party about which nothing is known. */
const noParty = { ibans: [], contacts: [], payment: null }

export const companyTable = column.table('companies', {
  accountId: column.referenceTo('accounts'),
  name: column.text,
  siren: column.orNull(column.text),
  ceo: column.orNull(column.text),
  vatId: column.orNull(column.referenceTo('vat_codes')),
  apeProducerId: column.orNull(column.text),
  apeCode: column.orNull(column.text),
  apeName: column.orNull(column.text),
  ...partyColumns,
})
export type CompanyRow = column.RowOf<typeof companyTable>
export type CompanyView = PartyView &
  Omit<column.ShownRow<typeof companyTable>, keyof PartyView> & { vat: VatCodeView | null }

const Activity = named('Activity', { producerId: textOrNull, code: textOrNull, name: textOrNull })

const { payment, address, ...furtherMembers } = partyMembers
export const Company = named('Company', {
  name: text,
  SIREN: siren,
  CEO: textOrNull,
  payment,
  address,
  ape: Activity.nullable(),
  vat: NamedVat.nullable(),
  ...furtherMembers,
  miscellaneous: Miscellaneous.nullable(),
})

export function companyItem(company: CompanyView): z.input<typeof Company> {
  const { name, siren, ceo, apeProducerId, apeCode, apeName, vat, miscellaneous } = company
  const { payment, address, ...further } = partyItem(company)
  const ape = { producerId: apeProducerId, code: apeCode, name: apeName }
  return {
    name,
    SIREN: siren,
    CEO: ceo,
    payment,
    address,
    ape: Object.values(ape).some((value) => value !== null) ? ape : null,
    vat: vat && namedVat(vat),
    ...further,
    miscellaneous: miscellaneous && miscellaneousItem(miscellaneous),
  }
}

export const companyRow = (
  accountId: string,
  company: z.output<typeof Company>,
): column.FileRow<typeof companyTable> => ({
  accountId,
  name: company.name,
  siren: company.SIREN,
  ceo: company.CEO,
  vatId: company.vat?.producerId,
  apeProducerId: company.ape?.producerId ?? null,
  apeCode: company.ape?.code ?? null,
  apeName: company.ape?.name ?? null,
  ...partyRow(company),
  miscellaneous: company.miscellaneous,
})

const unknownCompany = { ...column.blank(companyTable), ...noParty, vat: null }

/**
 * A company of which only the name is known. Used for collective accounts and for files that name no company: the name
 * is then that of the account.
 */
export const companyNamed = (name: string): CompanyView => ({ name, ...unknownCompany })

export const employeeTable = column.table('employees', {
  accountId: column.referenceTo('accounts'),
  firstName: column.orNull(column.text),
  lastName: column.orNull(column.text),
  email: column.orNull(column.text),
  phoneNumber: column.orNull(column.text),
  phoneNumberBis: column.orNull(column.text),
  nir: column.orNull(column.text),
  profession: column.orNull(column.text),
  ...partyColumns,
  doubtfulAccountId: column.orNull(column.referenceTo('accounts')),
})
export type EmployeeView = PartyView &
  Omit<column.ShownRow<typeof employeeTable>, keyof PartyView> & { doubtfulAccount: SimplifiedAccount | null }

export const Employee = named('Employee', {
  firstName: textOrNull,
  lastName: textOrNull,
  email: textOrNull,
  phoneNumber: textOrNull,
  phoneNumberBis: textOrNull,
  NIR: textOrNull,
  profession: textOrNull,
  ...partyMembers,
  miscellaneous: named('EmployeeMiscellaneous', {
    ...Miscellaneous.shape,
    doubtfulAccount: NamedAccount.nullable(),
  }).nullable(),
})

export function employeeItem(employee: EmployeeView): z.input<typeof Employee> {
  const { firstName, lastName, email, phoneNumber, phoneNumberBis, nir, profession } = employee
  const { miscellaneous, doubtfulAccount } = employee
  return {
    ...{ firstName, lastName, email, phoneNumber, phoneNumberBis, NIR: nir, profession },
    ...partyItem(employee),
    // The doubtful account is stored separately, so it is shown even if nothing else is known.
    miscellaneous:
      miscellaneous || doubtfulAccount
        ? { ...miscellaneousItem(miscellaneous ?? {}), doubtfulAccount }
        : null,
  }
}

export function employeeRow(
  accountId: string,
  employee: z.output<typeof Employee>,
): column.FileRow<typeof employeeTable> {
  const { firstName, lastName, email, phoneNumber, phoneNumberBis, NIR, profession } = employee
  const { doubtfulAccount = null, ...miscellaneous } = employee.miscellaneous ?? {}
  return {
    ...{ accountId, firstName, lastName, email, phoneNumber, phoneNumberBis, nir: NIR, profession },
    ...partyRow(employee),
    miscellaneous: employee.miscellaneous && (miscellaneous as Miscellaneous),
    doubtfulAccountId: doubtfulAccount?.producerId,
  }
}

export const unknownEmployee: EmployeeView = {
  ...{ ...column.blank(employeeTable), ...noParty },
  doubtfulAccount: null,
}
