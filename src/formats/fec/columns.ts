/** The columns of a FEC: how its first line names, separates and orders them. */
import { FecError, FecProblems } from './problem.ts'

/** As article A47 A-1 of the Livre des procédures fiscales names them, in its order. */
const alwaysThere = [
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
  'EcritureLet',
  'DateLet',
  'ValidDate',
  'Montantdevise',
  'Idevise',
] as const
const amountColumns = ['Debit', 'Credit', 'Montant', 'Sens'] as const
/** Only in ledgers kept on a cash basis; files may have any of them. */
const optional = ['DateRglt', 'ModeRglt', 'NatOp', 'IdClient'] as const

export type FecColumn =
  | (typeof alwaysThere)[number]
  | (typeof amountColumns)[number]
  | (typeof optional)[number]

const columns: readonly FecColumn[] = [...alwaysThere, ...amountColumns, ...optional]

/**
 * Characters that a field may have, without the blanks around it. Numbers of accounts by the contract, section 10; the
 * others some ten times what two real ledgers have (the longest: 40, a name of an account). Amounts: the pattern that reads
 * them takes time with the square of their length, for 60,000 zeros seconds.
 */
export const charactersMax: Readonly<Record<FecColumn, number>> = {
  JournalCode: 32,
  JournalLib: 255,
  EcritureNum: 64,
  EcritureDate: 32,
  CompteNum: 32,
  CompteLib: 255,
  CompAuxNum: 32,
  CompAuxLib: 255,
  PieceRef: 255,
  PieceDate: 32,
  EcritureLib: 500,
  EcritureLet: 32,
  DateLet: 32,
  ValidDate: 32,
  Montantdevise: 64,
  Idevise: 32,
  Debit: 64,
  Credit: 64,
  Montant: 64,
  Sens: 32,
  DateRglt: 32,
  ModeRglt: 255,
  NatOp: 255,
  IdClient: 255,
}

/** Names that programs are known to write, in lower case: letter case is ignored anyway. */
const misspellings: Record<string, FecColumn> = {
  ecrturelet: 'EcritureLet',
  ecriturelettrage: 'EcritureLet',
  datelettrage: 'DateLet',
  compteauxnum: 'CompAuxNum',
  compteauxlib: 'CompAuxLib',
  libelle: 'EcritureLib',
  montantdevises: 'Montantdevise',
  devise: 'Idevise',
  datereglement: 'DateRglt',
  modereglement: 'ModeRglt',
}

const columnOf = new Map<string, FecColumn>([
  ...columns.map((column): [string, FecColumn] => [column.toLowerCase(), column]),
  ...Object.entries(misspellings),
])

/** That of UTF-8, in UTF-8 and as the other encodings read it: some programs put it before any text. */
const byteOrderMark = /^(?:\uFEFF|ï»¿|´╗┐)/

export interface FecHeader {
  separator: string
  /** Fields of a line; one more, blank, is what a trailing separator leaves. */
  fieldCount: number
  /** Where each column stands, from 0; -1 for a column that this file does not have. */
  position: Record<FecColumn, number>
}

/**
 * @param line the first line, without its line end
 * @throws {FecError} naming every column that is missing, unknown or there twice
 */
export function parseHeader(line: string): FecHeader {
  const separator = ['\t', '|', ';'].toSorted(
    (one, other) => line.split(other).length - line.split(one).length,
  )[0]!
  const names = line
    .replace(byteOrderMark, '')
    .split(separator)
    .map((name) => name.trim())
  if (names.length > 1 && names.at(-1) === '') names.pop()
  if (names.length < 2) {
    const message = 'the first line must name the columns (JournalCode, ...) separated by tab, | or ;'
    throw new FecError([{ line: 1, column: 'header', value: line.trim().slice(0, 60), message }])
  }

  const problems = new FecProblems()
  const position = Object.fromEntries(columns.map((column) => [column, -1])) as FecHeader['position']
  for (const [index, name] of names.entries()) {
    const column = columnOf.get(name.toLowerCase())
    if (column === undefined) problems.add(1, 'header', name, 'a FEC has no such column')
    else if (position[column] >= 0) problems.add(1, 'header', name, `the column ${column} is there twice`)
    else position[column] = index
  }
  for (const column of [...alwaysThere, ...amountColumnsOf(position)])
    if (position[column] < 0) problems.add(1, 'header', '', `the column ${column} is missing`)
  const strays = amountColumns.filter(
    (column) => !amountColumnsOf(position).includes(column) && position[column] >= 0,
  )
  for (const column of strays)
    problems.add(1, 'header', column, 'either Debit and Credit or Montant and Sens, not columns of both')
  problems.throwIfAny()
  return { separator, fieldCount: names.length, position }
}

/** The pair of amount columns that this header means, judged by which it has any of. */
function amountColumnsOf(position: FecHeader['position']): FecColumn[] {
  const debitCredit = position.Debit >= 0 || position.Credit >= 0
  const amountSide = position.Montant >= 0 || position.Sens >= 0
  return amountSide && !debitCredit ? ['Montant', 'Sens'] : ['Debit', 'Credit']
}
