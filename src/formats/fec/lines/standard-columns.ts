/** The columns of every FEC that we write (`../columns.json`), and the name of its file. */
import described from '../columns.json' with { type: 'json' }

export type StandardColumn = keyof typeof described.standard

/**
 * The columns in the order of article A47 A-1 of the Livre des procédures fiscales, under its names. Further columns
 * follow them.
 */
export const standardColumns = Object.keys(described.standard) as StandardColumn[]

/** Whether the article requires a value in this column. It requires none in a further column. */
export function isMandatory(column: string): boolean {
  const rules: Readonly<Record<string, { characters: number; mayBeBlank?: boolean }>> = described.standard
  return Object.hasOwn(rules, column) && !rules[column]!.mayBeBlank
}

/**
 * The name that article A47 A-1 requires for the file of a FEC, without its ending: the SIREN, `FEC`, and the last day
 * of the exercice. A folder without a SIREN uses its reference if that is nine digits, and otherwise zeros.
 */
export function fecFileStem({
  siret,
  reference,
  exerciceEnd,
}: {
  /** A SIRET or a SIREN. */
  siret: string | null
  reference: string | null
  /** `YYYY-MM-DD` */
  exerciceEnd: string
}): string {
  const siren = /^\d{9}/.exec(siret ?? '')?.[0] ?? /^\d{9}$/.exec(reference ?? '')?.[0] ?? '000000000'
  return `${siren}FEC${exerciceEnd.replaceAll('-', '')}`
}
