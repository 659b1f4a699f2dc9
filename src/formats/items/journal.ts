/** Journals (docs/spec/resources.md#journal). */
import type { z } from 'zod'
import * as column from './table.ts'
import { boolean, code, id, NamedAccount, named, oneOf, type SimplifiedAccount, text } from './values.ts'

/** Labels of journal types that partners see, by the code in the database. */
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
