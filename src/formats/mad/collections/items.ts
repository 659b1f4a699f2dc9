/**
 * Renders the items of a full export from their rows (docs/spec/resources.md). The functions stand in the order of the
 * file.
 */

import type {
  AxisView,
  BalanceView,
  BankView,
  FolderView,
  JournalView,
  PaymentView,
} from '../../collection-rows.ts'
import { decimal } from '../../minor-units.ts'
import { paymentMode, shownPaymentCode } from '../../payment.ts'
import { addressItem } from './address.ts'
import { journalTypeLabels } from './journal.ts'

export function accountingFolderItem(folder: FolderView): object {
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

export function paymentItem({ id, code }: PaymentView): object {
  return {
    producerId: id,
    ...paymentMode(code),
    additionalProducerProperties: { code: shownPaymentCode(code) },
  }
}

export function bankItem(bank: BankView): object {
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

export function journalItem({ id, name, code, type, counterpartAccount, locked }: JournalView): object {
  return {
    producerId: id,
    name,
    customerReferenceCode: code,
    type: journalTypeLabels[type] ?? type,
    counterpartAccount,
    additionalProducerProperties: { type, locked },
  }
}

export function axisItem({ id, code, name, defaultSectionId, sections }: AxisView): object {
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

/** No part of the full export: the answer of its own route. */
export function balanceItem({ id, number, name, debit, credit, balance }: BalanceView): object {
  return {
    account: { producerId: id, number, name },
    debit: decimal(debit, 2),
    credit: decimal(credit, 2),
    balance: decimal(balance, 2),
  }
}
