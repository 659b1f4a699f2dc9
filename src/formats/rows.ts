/** Identifies a folder. Most tables of the ledger begin with these two columns. */
export interface FolderKey {
  schemaId: string
  folderId: string
}

/** First and last day, both inclusive, `YYYY-MM-DD`. */
export interface Period {
  start: string
  end: string
}

/** The rows that entries and movements refer to, with the columns that partners see. */
export interface DictionaryRows {
  journals: { id: string; code: string; name: string; type: string }[]
  accounts: { id: string; number: string; name: string }[]
  payments: { id: string; code: string }[]
  axes: { id: string; code: string; name: string }[]
  sections: { id: string; axisId: string; code: string; name: string }[]
  thirdParties: { id: string; code: string; name: string }[]
}

/** The third-party account that a FEC filed for an account. A text is blank where the FEC was blank. */
export interface AuxiliaryRow {
  id: string
  number: string
  name: string
}

/** An account with the fields that a FEC filed for it: CompteNum, CompteLib, CompAuxNum and CompAuxLib. */
export interface FiledAccount {
  id: string
  number: string
  name: string
  filedNumber: string | null
  filedName: string | null
  /** Null if the FEC filed no third-party account for it. */
  auxiliaryNumber: string | null
  auxiliaryName: string | null
}

/**
 * The index of each column that a format reads, in the given order. `exports/read/movements.sql.ts` has an expression
 * for each column, and does not compile if one is missing.
 */
export function offsetsOf<Column extends string>(
  columns: readonly Column[],
): Readonly<Record<Column, number>> {
  return Object.fromEntries(columns.map((column, offset) => [column, offset])) as Record<Column, number>
}
