import described from '../columns.json' with { type: 'json' }

/**
 * The columns of every FEC that we write, by the names and in the order of article A47 A-1 of the Livre des procédures
 * fiscales. Further columns follow them.
 */
export const standardColumns = Object.keys(described.standard) as StandardColumn[]

export type StandardColumn = keyof typeof described.standard

/** Whether the article requires a value in this column; never in a further one. */
export function isMandatory(column: string): boolean {
  const rules: Readonly<Record<string, { characters: number; mayBeBlank?: boolean }>> = described.standard
  return Object.hasOwn(rules, column) && !rules[column]!.mayBeBlank
}
