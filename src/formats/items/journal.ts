/** Journals (docs/spec/resources.md#journal). */
import { z } from 'zod'
import * as column from './table.ts'
import {
  boolean,
  code,
  id,
  NamedAccount,
  named,
  oneOf,
  type SimplifiedAccount,
  text,
  textOrNull,
} from './values.ts'

/** The labels of journal types that partners see, by the code of the type in the database. */
export const journalTypeLabels = {
  ACH: 'Achat',
  VTE: 'Vente',
  BQ: 'Banque',
  CAISSE: 'Caisse',
  A_EXT: 'À extourner',
  EXT: 'Extourne',
  AN: 'À Nouveaux',
  NFD: 'Note de Frais',
  RBAL: 'Reprise Balance',
  OD: 'OD',
  OD_AUDIT: 'OD Audit',
  OD_PAIE: 'OD Paie',
  OD_LET: 'OD Lettrage',
  OD_DECL_FISCALE: 'OD TVA',
  OD_EXC: 'OD Extracomptable',
} as const
export type JournalType = keyof typeof journalTypeLabels

export const journalTable = column.table('journals', {
  id: column.id,
  code: column.text,
  name: column.text,
  type: column.column<JournalType>('plain'),
  counterpartAccountId: column.orNull(column.referenceTo('accounts')),
  locked: column.boolean,
})
export interface JournalView extends column.ShownRow<typeof journalTable> {
  counterpartAccount: SimplifiedAccount | null
}

const types = Object.keys(journalTypeLabels) as JournalType[]

export const Journal = named('Journal', {
  producerId: id,
  name: text,
  customerReferenceCode: code,
  type: text.meta({ example: 'Achat' }),
  counterpartAccount: NamedAccount.nullable(),
  additionalProducerProperties: named('JournalProperties', {
    type: oneOf(types).meta({ type: 'string', example: 'ACH' }),
    locked: boolean,
  }),
})
export type FileJournal = z.output<typeof Journal>

export function journalItem(journal: JournalView): z.input<typeof Journal> {
  const { id, name, code, type, counterpartAccount, locked } = journal
  return {
    producerId: id,
    name,
    customerReferenceCode: code,
    type: journalTypeLabels[type],
    counterpartAccount,
    additionalProducerProperties: { type, locked },
  }
}

export const journalRow = (journal: FileJournal): column.FileRow<typeof journalTable> => ({
  id: journal.producerId,
  code: journal.customerReferenceCode,
  name: journal.name,
  type: journal.additionalProducerProperties.type,
  counterpartAccountId: journal.counterpartAccount?.producerId,
  locked: journal.additionalProducerProperties.locked,
})

/** Bank accounts of a folder (docs/spec/resources.md#bank). */

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
