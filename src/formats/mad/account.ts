/**
 * Accounts of a full export (contract, section 4). The root of the number decides which of three shapes an account
 * has: partners branch on it. Where nothing is known of the company behind a 401 or 411 (a collective account, a file
 * that names none), it bears the name of its account, as auxiliary accounts do.
 */
import type { AddressRow } from './address.ts'
import { addressItem } from './address.ts'
import { decimal } from './exact-json.ts'
import { paymentMode } from './payment.ts'

export interface SimplifiedAccount {
  producerId: string
  number: string
  name: string
}

/** As stored: members may be missing or stand in any order. */
interface ContactRow {
  firstname?: string | null
  lastname?: string | null
  phoneNumber?: string | null
  role?: string | null
  email?: string | null
}

interface MiscellaneousRow {
  referent?: string | null
  language?: string | null
  group?: string | null
  archived?: boolean | null
}

interface PaymentOf {
  id: string
  code: string
}

export interface CompanyOf {
  name: string
  siren: string | null
  ceo: string | null
  payment: PaymentOf | null
  address: AddressRow | null
  ape: { producerId: string | null; code: string | null; name: string | null } | null
  /** Rate in hundredths of a percent. */
  vat: { id: string; code: string; rate: number } | null
  ibans: string[]
  contacts: ContactRow[]
  miscellaneous: MiscellaneousRow | null
}

export interface EmployeeOf {
  firstName: string | null
  lastName: string | null
  email: string | null
  phoneNumber: string | null
  phoneNumberBis: string | null
  nir: string | null
  profession: string | null
  payment: PaymentOf | null
  address: AddressRow | null
  ibans: string[]
  contacts: ContactRow[]
  miscellaneous: MiscellaneousRow | null
  doubtfulAccount: SimplifiedAccount | null
}

export interface AccountOf {
  id: string
  number: string
  name: string
  closed: boolean
  counterpartAccount: SimplifiedAccount | null
  correspondanceAccount: SimplifiedAccount | null
  company: CompanyOf | null
  employee: EmployeeOf | null
}

export function accountItem(account: AccountOf): object {
  const { id, number, name, closed, counterpartAccount, correspondanceAccount } = account
  const head = { producerId: id, number, name, closed }
  if (/^4[01]1/.test(number)) {
    return { ...head, counterpartAccount, company: companyItem(account.company ?? { ...noCompany, name }) }
  }
  if (number.startsWith('421')) return { ...head, employee: employeeItem(account.employee ?? noEmployee) }
  return { ...head, counterpartAccount, correspondanceAccount }
}

const noCompany: Omit<CompanyOf, 'name'> = {
  siren: null,
  ceo: null,
  payment: null,
  address: null,
  ape: null,
  vat: null,
  ibans: [],
  contacts: [],
  miscellaneous: null,
}

const noEmployee: EmployeeOf = {
  firstName: null,
  lastName: null,
  email: null,
  phoneNumber: null,
  phoneNumberBis: null,
  nir: null,
  profession: null,
  payment: null,
  address: null,
  ibans: [],
  contacts: [],
  miscellaneous: null,
  doubtfulAccount: null,
}

function companyItem(company: CompanyOf): object {
  const { name, siren, ceo, payment, address, ape, vat, ibans, contacts, miscellaneous } = company
  return {
    name,
    SIREN: siren,
    CEO: ceo,
    payment: payment && paymentOf(payment),
    address: address && addressItem(address),
    ape: ape && { producerId: ape.producerId, code: ape.code, name: ape.name },
    vat: vat && { producerId: vat.id, customerReferenceCode: vat.code, rate: decimal(String(vat.rate), 2) },
    IBANs: ibans,
    contacts: contacts.map(contactItem),
    miscellaneous: miscellaneous && miscellaneousItem(miscellaneous),
  }
}

function employeeItem(employee: EmployeeOf): object {
  const { payment, address, ibans, contacts, miscellaneous, doubtfulAccount } = employee
  return {
    firstName: employee.firstName,
    lastName: employee.lastName,
    email: employee.email,
    phoneNumber: employee.phoneNumber,
    phoneNumberBis: employee.phoneNumberBis,
    NIR: employee.nir,
    profession: employee.profession,
    payment: payment && paymentOf(payment),
    address: address && addressItem(address),
    IBANs: ibans,
    contacts: contacts.map(contactItem),
    // The doubtful account is stored beside, and shows also where nothing else is known.
    miscellaneous:
      miscellaneous || doubtfulAccount
        ? { ...miscellaneousItem(miscellaneous ?? {}), doubtfulAccount }
        : null,
  }
}

function paymentOf({ id, code }: PaymentOf): object {
  return { producerId: id, code: paymentMode(code).code }
}

function contactItem(contact: ContactRow): object {
  const { firstname = null, lastname = null, phoneNumber = null, role = null, email = null } = contact
  return { firstname, lastname, phoneNumber, role, email }
}

function miscellaneousItem(known: MiscellaneousRow): object {
  const { referent = null, language = null, group = null, archived } = known
  return { referent, language, group, archived: archived ?? false }
}
