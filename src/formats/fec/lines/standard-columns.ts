/**
 * The columns of every FEC that we write, by the names and in the order of article A47 A-1 of the Livre des procédures
 * fiscales. Further columns follow them.
 */
export const standardColumns = [
  'JournalCode',
  'JournalLib',
  'EcritureNum',
  'EcritureDate',
  'CompteNum',
  'CompteLib',
  'CompAuxNum',
  'CompAuxLib',
  'PieceRef',
  'PieceDate',
  'EcritureLib',
  'Debit',
  'Credit',
  'EcritureLet',
  'DateLet',
  'ValidDate',
  'Montantdevise',
  'Idevise',
] as const

export type StandardColumn = (typeof standardColumns)[number]

/** The columns that the article lets a ledger leave blank. */
const mayBeBlank: readonly string[] = [
  'CompAuxNum',
  'CompAuxLib',
  'EcritureLet',
  'DateLet',
  'Montantdevise',
  'Idevise',
] satisfies StandardColumn[]

/** Whether the article requires a value in this column; never in a further one. */
export function isMandatory(column: string): boolean {
  return (standardColumns as readonly string[]).includes(column) && !mayBeBlank.includes(column)
}
