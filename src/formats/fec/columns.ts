/**
 * The columns of a FEC (`columns.json`), the first line, which names, separates and orders them, and the file's name.
 */
import described from './columns.json' with { type: 'json' }
import { FecError, FecProblems, quotedFields } from './fields.ts'

export type StandardColumn = keyof typeof described.standard

/**
 * The columns in the order of article A47 A-1 of the Livre des procédures fiscales, under its names. Further columns
 * follow them.
 */
export const standardColumns = Object.keys(described.standard) as StandardColumn[]

/** A file has its amounts either in Debit and Credit, or in Montant and Sens. */
const amountColumns = ['Debit', 'Credit', 'Montant', 'Sens'] as const
/** Columns of ledgers kept on a cash basis, beyond the 18 of the standard. Any file may have any of them. */
const optional = ['DateRglt', 'ModeRglt', 'NatOp', 'IdClient'] as const

export type FecColumn = StandardColumn | keyof typeof described.further

/**
 * For each column, the most characters that a field may have, without the blanks around it: 32 for account numbers, and
 * for most others about ten times the longest value in two real ledgers (40 characters, in the name of an account).
 * Labels may be longer, because programs write whole comments into them. The limits also bound the time to parse an
 * amount, which grows with the square of its length: 60,000 zeros take seconds.
 *
 * `otherNames` are names that programs write in place of the standard one. They are in lower case, as letter case is
 * ignored. If a file has both the column's own name and another name, the other one is a further column. If a file has
 * several of these other names, the first in this list names the column.
 */
const ruleOf: Readonly<Record<string, { characters: number; mayBeBlank?: boolean; otherNames?: string[] }>> =
  {
    ...described.standard,
    ...described.further,
  }
const columns = Object.keys(ruleOf) as FecColumn[]

/** Whether the article requires a value in this column. It requires none in a further column. */
export function isMandatory(column: string): boolean {
  return (standardColumns as string[]).includes(column) && !ruleOf[column]!.mayBeBlank
}

/** The columns of the standard, except its two amounts: a file may have Montant and Sens in their place. */
const alwaysThere = standardColumns.filter((column) => column !== 'Debit' && column !== 'Credit')

export const charactersMax = (column: FecColumn) => ruleOf[column]!.characters

/**
 * The most columns that a file may have, the most characters of a column's name, and the most characters of a value in
 * a further column, which may be an address.
 */
const columnsMax = 64
const nameCharactersMax = 64
export const furtherCharactersMax = 2000

const columnNamed = new Map<string, FecColumn>(columns.map((column) => [column.toLowerCase(), column]))

/**
 * The byte-order mark of UTF-8, and how the other encodings read it. Some programs put it before text of any encoding.
 */
const byteOrderMark = /^(?:\uFEFF|ï»¿|´╗┐)/

/**
 * @param line the first line, without its line end
 * @throws {FecError} naming every column that is missing or repeated, and names that are blank or too long
 */
export function parseHeader(line: string) {
  const separator = ['\t', '|', ';'].toSorted(
    (one, other) => line.split(other).length - line.split(one).length,
  )[0]!
  const text = line.replace(byteOrderMark, '')
  const quoted = quotedFields(text, separator)
  const names = (quoted ?? text.split(separator)).map((name) => name.trim())
  if (names.length > 1 && names.at(-1) === '') names.pop()
  // One problem, because otherwise each column would be reported as missing.
  if (!names.some((name) => columnNamed.has(name.toLowerCase()))) {
    const message =
      'the first line must name the columns (JournalCode, ...), all or none in quotes, separated by tab, | or ;'
    throw new FecError([{ line: 1, column: 'header', value: line.trim().slice(0, 60), message }])
  }

  const problems = new FecProblems()
  if (names.length > columnsMax)
    problems.add(1, 'header', '', `at most ${columnsMax} columns are expected, this file has ${names.length}`)
  problems.throwIfAny()
  const { position, further, renamed } = placeColumns(names, problems)
  const amounts = amountColumnsOf(position)
  for (const column of [...alwaysThere, ...amounts])
    if (position[column] < 0) problems.add(1, 'header', '', `the column ${column} is missing`)
  for (const column of amountColumns)
    if (!amounts.includes(column) && position[column] >= 0)
      problems.add(1, 'header', column, 'either Debit and Credit or Montant and Sens, not columns of both')
  problems.throwIfAny()
  return {
    separator,
    /** Whether all names are in quotes. The fields of all lines must then be in quotes, too. */
    isQuoted: quoted !== undefined,
    /** The number of fields in a line. A trailing separator adds a blank field. */
    fieldCount: names.length,
    position,
    further,
    renamed,
  }
}
export type FecHeader = ReturnType<typeof parseHeader>

function placeColumns(names: string[], problems: FecProblems) {
  /** Index of each column, from 0; -1 if the file does not have it. */
  const position = Object.fromEntries(columns.map((column) => [column, -1])) as Record<FecColumn, number>
  /** The columns that no rule names, in the order of the file. Each has a name of its own. */
  const further: { name: string; position: number }[] = []
  /** The columns that have another name in the file, in the order of the file. */
  const renamed: { name: string; column: FecColumn }[] = []
  const keys = names.map((name) => name.toLowerCase())
  const placed = new Set(keys.map((key) => columnNamed.get(key)))
  const otherNames = new Map<string, FecColumn>()
  for (const column of columns) {
    const key = ruleOf[column]!.otherNames?.find((name) => keys.includes(name))
    if (key !== undefined && !placed.has(column)) otherNames.set(key, column)
  }
  for (const [index, name] of names.entries()) {
    const key = keys[index]!
    const column = columnNamed.get(key) ?? otherNames.get(key)
    const refuse = (message: string) => problems.add(1, 'header', name, message)
    if (name === '') refuse(`the column ${index + 1} has no name`)
    else if (name.length > nameCharactersMax)
      refuse(`a name has at most ${nameCharactersMax} characters, not ${name.length}`)
    else if (keys.indexOf(key) < index) refuse(`the column ${column ?? name} appears twice`)
    // Copied, because a slice of a decoded chunk would keep the whole chunk in memory.
    else if (column === undefined) further.push({ name: Buffer.from(name).toString(), position: index })
    else {
      position[column] = index
      if (otherNames.has(key)) renamed.push({ name, column })
    }
  }
  // In a file with Debit and Credit, these two repeat the amount, and become further columns. Programs sort by Sens.
  if (position.Debit >= 0 && position.Credit >= 0)
    for (const column of ['Montant', 'Sens'] as const) {
      if (position[column] < 0) continue
      further.push({ name: column, position: position[column] })
      position[column] = -1
    }
  return { position, further: further.toSorted((one, other) => one.position - other.position), renamed }
}

/** The columns for ledgers on a cash basis, and further columns, in the order of the file. */
export function columnsBeyondStandard({ position, further }: FecHeader): string[] {
  const ofCash = optional.map((name) => ({ name, position: position[name] }))
  return [...ofCash.filter((column) => column.position >= 0), ...further]
    .toSorted((one, other) => one.position - other.position)
    .map(({ name }) => name)
}

/** The pair of amount columns that a file uses, even if it has only one of the two. */
function amountColumnsOf(position: Record<FecColumn, number>): FecColumn[] {
  const debitCredit = position.Debit >= 0 || position.Credit >= 0
  const amountSide = position.Montant >= 0 || position.Sens >= 0
  return amountSide && !debitCredit ? ['Montant', 'Sens'] : ['Debit', 'Credit']
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
