/** Bank accounts of a folder (docs/spec/resources.md#bank). */
import { z } from 'zod'
import * as column from './table.ts'
import { boolean, id, NamedAccount, named, type SimplifiedAccount, text, textOrNull } from './values.ts'

export const bankTable = column.table('banks', {
  id: column.id,
  rib: column.orNull(column.text),
  iban: column.text,
  bic: column.text,
  accountId: column.orNull(column.referenceTo('accounts')),
  journalId: column.referenceTo('journals'),
  isDefault: column.boolean,
})
export interface BankView extends column.ShownRow<typeof bankTable> {
  account: SimplifiedAccount | null
  journalId: string
  journalName: string
  journalCode: string
}

export const Bank = named('Bank', {
  producerId: id,
  RIB: textOrNull,
  IBAN: text,
  BIC: text,
  account: NamedAccount.nullable(),
  journal: named('BankJournal', {
    producerId: id,
    name: text,
    type: z.literal('BANQUE', 'BANQUE is expected'),
    customerReferenceCode: text,
  }),
  additionalProducerProperties: named('BankProperties', { isDefault: boolean }),
})
export type FileBank = z.output<typeof Bank>

export function bankItem(bank: BankView): z.input<typeof Bank> {
  const { id, rib, iban, bic, account, journalId, journalName, journalCode, isDefault } = bank
  return {
    producerId: id,
    RIB: rib,
    IBAN: iban,
    BIC: bic,
    account,
    journal: {
      producerId: journalId,
      name: journalName,
      type: 'BANQUE',
      customerReferenceCode: journalCode,
    },
    additionalProducerProperties: { isDefault },
  }
}

export const bankRow = (bank: FileBank): column.FileRow<typeof bankTable> => ({
  id: bank.producerId,
  rib: bank.RIB,
  iban: bank.IBAN,
  bic: bank.BIC,
  accountId: bank.account?.producerId,
  journalId: bank.journal.producerId,
  isDefault: bank.additionalProducerProperties.isDefault,
})
