/** Items of a full export, from their rows (interface, section 2.1; contract, section 4). Their order is the order here. */
import type { SimplifiedAccount } from './account.ts'
import type { AddressRow } from './address.ts'
import { addressItem } from './address.ts'
import { decimal } from './exact-json.ts'
import { journalTypeLabels } from './journal.ts'
import { paymentMode, shownPaymentCode } from './payment.ts'

export interface FolderOf {
  name: string
  reference: string | null
  address: AddressRow
  contactFirstName: string | null
  contactLastName: string | null
  contactPhoneNumber: string | null
  contactMobilePhoneNumber: string | null
  contactMail: string | null
  rcsProducerId: string
  rcsName: string
  siret: string | null
  /** Digits of minor units. */
  capital: string
}

export function accountingFolderItem(folder: FolderOf): object {
  return {
    name: folder.name,
    reference: folder.reference,
    address: addressItem(folder.address),
    contact: {
      firstName: folder.contactFirstName,
      lastName: folder.contactLastName,
      phoneNumber: folder.contactPhoneNumber,
      mobilePhoneNumber: folder.contactMobilePhoneNumber,
      mail: folder.contactMail,
    },
    RCS: { producerId: folder.rcsProducerId, name: folder.rcsName },
    SIRET: folder.siret,
    capital: decimal(folder.capital, 2),
  }
}

export interface PaymentOf {
  id: string
  code: string
}

export function paymentItem({ id, code }: PaymentOf): object {
  return {
    producerId: id,
    ...paymentMode(code),
    additionalProducerProperties: { code: shownPaymentCode(code) },
  }
}

export interface BankOf {
  id: string
  rib: string | null
  iban: string
  bic: string
  account: SimplifiedAccount | null
  journalId: string
  journalName: string
  journalCode: string
  isDefault: boolean
}

export function bankItem(bank: BankOf): object {
  return {
    producerId: bank.id,
    RIB: bank.rib,
    IBAN: bank.iban,
    BIC: bank.bic,
    account: bank.account,
    journal: {
      producerId: bank.journalId,
      name: bank.journalName,
      type: 'BANQUE',
      customerReferenceCode: bank.journalCode,
    },
    additionalProducerProperties: { isDefault: bank.isDefault },
  }
}

export interface JournalOf {
  id: string
  name: string
  code: string
  type: string
  counterpartAccount: SimplifiedAccount | null
  locked: boolean
}

export function journalItem({ id, name, code, type, counterpartAccount, locked }: JournalOf): object {
  return {
    producerId: id,
    name,
    customerReferenceCode: code,
    type: journalTypeLabels[type] ?? type,
    counterpartAccount,
    additionalProducerProperties: { type, locked },
  }
}

export interface AxisOf {
  id: string
  code: string
  name: string
  defaultSectionId: string | null
  sections: { id: string; code: string; name: string; accountRoots: string[]; closed: boolean }[]
}

export function axisItem({ id, code, name, defaultSectionId, sections }: AxisOf): object {
  return {
    producerId: id,
    code,
    name,
    sections: sections.map((section) => ({
      producerId: section.id,
      code: section.code,
      name: section.name,
      account: section.accountRoots.length === 0 ? null : section.accountRoots.join(';'),
      additionalProducerProperties: { closed: section.closed },
    })),
    additionalProducerProperties: { defaultSectionId },
  }
}
