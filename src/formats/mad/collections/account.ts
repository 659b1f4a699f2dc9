/**
 * Accounts of a full export (docs/spec/resources.md#account). The root of the number decides which of three shapes an
 * account has; partners branch on it. If the company of a 401 or 411 is unknown (a collective account, or a file that
 * names none), it gets the name of its account, as for auxiliary accounts.
 */

import type { AccountView, CompanyView, EmployeeView, PaymentView } from '../../collection-rows.ts'
import { decimal } from '../../minor-units.ts'
import { partyKind } from '../../party-kind.ts'
import { paymentMode } from '../../payment.ts'
import type { Contact, Miscellaneous } from '../../rows.ts'
import { addressItem } from './address.ts'

export function accountItem(account: AccountView): object {
  const { id, number, name, closed, counterpartAccount, correspondanceAccount } = account
  const head = { producerId: id, number, name, closed }
  const party = partyKind(number)
  if (party === undefined) return { ...head, counterpartAccount, correspondanceAccount }
  if (party === 'employee') return { ...head, employee: employeeItem(account.employee ?? noEmployee) }
  return { ...head, counterpartAccount, company: companyItem(account.company ?? { ...noCompany, name }) }
}

const noCompany: Omit<CompanyView, 'name'> = {
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

const noEmployee: EmployeeView = {
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

function companyItem(company: CompanyView): object {
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

function employeeItem(employee: EmployeeView): object {
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
    // The doubtful account is stored separately, and appears even if nothing else is known.
    miscellaneous:
      miscellaneous || doubtfulAccount
        ? { ...miscellaneousItem(miscellaneous ?? {}), doubtfulAccount }
        : null,
  }
}

function paymentOf({ id, code }: PaymentView): object {
  return { producerId: id, code: paymentMode(code).code }
}

function contactItem(contact: Partial<Contact>): object {
  const { firstname = null, lastname = null, phoneNumber = null, role = null, email = null } = contact
  return { firstname, lastname, phoneNumber, role, email }
}

function miscellaneousItem(known: Partial<Miscellaneous>): object {
  const { referent = null, language = null, group = null, archived } = known
  return { referent, language, group, archived: archived ?? false }
}
