/** What the company and the employee of an account have in common. */

import type { z } from 'zod'
import { NamedPayment, namedPayment, type PaymentView } from '../payment.ts'
import * as column from '../table.ts'
import { boolean, list, named, type object, text, textOrNull } from '../values.ts'
import { type Address, AddressItem, addressItem, addressOf } from './address.ts'

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

export const partyColumns = {
  paymentId: column.orNull(column.referenceTo('payments')),
  address: column.orNull(column.column<Address>('address')),
  ibans: column.texts,
  contacts: column.column<Contact[]>('json'),
  miscellaneous: column.orNull(column.column<Miscellaneous>('json')),
}

/** Stored members may be missing and have no fixed order. */
export interface PartyView {
  payment: PaymentView | null
  address: Address | null
  ibans: string[]
  contacts: Partial<Contact>[]
  miscellaneous: Partial<Miscellaneous> | null
}

/** The members of both, except `miscellaneous`, which has more in an employee. */
export const partyMembers = {
  payment: NamedPayment.nullable(),
  address: AddressItem.nullable(),
  IBANs: list(text),
  contacts: list(Contact),
}

export const partyItem = ({ payment, address, ibans, contacts }: PartyView) => ({
  payment: payment && namedPayment(payment),
  address: address && addressItem(address),
  IBANs: ibans,
  contacts: contacts.map(contactItem),
})

function contactItem(contact: Partial<Contact>): Contact {
  const { firstname = null, lastname = null, phoneNumber = null, role = null, email = null } = contact
  return { firstname, lastname, phoneNumber, role, email }
}

export function miscellaneousItem(known: Partial<Miscellaneous>): Miscellaneous {
  const { referent = null, language = null, group = null, archived } = known
  return { referent, language, group, archived: archived ?? false }
}

type FileParty = z.output<ReturnType<typeof object<typeof partyMembers>>>

export const partyRow = ({ payment, address, IBANs, contacts }: FileParty) => ({
  paymentId: payment?.producerId,
  address: address && addressOf(address),
  ibans: IBANs,
  contacts,
})

/** Digits and capitals, without accents: `Café-1` is CAFE1. Empty if nothing is left. */
export function accountNumber(filed: string): string {
  if (/^[0-9A-Z]*$/.test(filed)) return filed
  return filed
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
}

/** Roots of account numbers that belong to third parties of the books: suppliers, customers and employees. */
const partyKinds = { '401': 'supplier', '411': 'customer', '421': 'employee' } as const

export type PartyKind = (typeof partyKinds)[keyof typeof partyKinds]

/** Undefined if the account is not a third party's. */
export function partyKind(number: string): PartyKind | undefined {
  const root = number.slice(0, 3)
  return Object.hasOwn(partyKinds, root) ? partyKinds[root as keyof typeof partyKinds] : undefined
}
