/**
 * The lines of a FEC in the standard's form: as the ledger keeps them, by the statement of docs/spec/imports.md, and as
 * a file has them. Neither shares code with the import that it checks.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'

const page = readFileSync(join(import.meta.dirname, '../../../docs/spec/imports.md'), 'utf8')
const [, statement] = /```sql\n([\s\S]*?)```/.exec(page)!

/** The 18 columns of article A47 A-1, in its order. */
const standard =
  'JournalCode JournalLib EcritureNum EcritureDate CompteNum CompteLib CompAuxNum CompAuxLib PieceRef PieceDate EcritureLib Debit Credit EcritureLet DateLet ValidDate Montantdevise Idevise'.split(
    ' ',
  )

/** Names of columns, then the fields of each line. */
export async function keptFec(owner: pg.ClientBase | pg.Pool, exerciceId: string): Promise<string[][]> {
  const { rows: exercices } = await owner.query(
    'select filed_columns from grandlivre.exercices where id = $1',
    [exerciceId],
  )
  const { rows } = await owner.query(statement!, [exerciceId])
  return [
    [...standard, ...exercices[0].filed_columns],
    ...rows.map((row) => [...standard.map((column) => row[column]), ...row.further]),
  ]
}

/**
 * Reads a file in UTF-8 whose columns are separated by tabs and named as in the standard, with amounts such as 12,30
 * and days such as 20231231.
 */
export function plainFec(bytes: Buffer): string[][] {
  const [head, ...lines] = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map((line) => line.split('\t').map((field) => field.trim()))
  const names = [...standard, ...head!.filter((name) => !standard.includes(name))]
  return [
    names,
    ...lines.map((fields) => names.map((name) => asStandard(name, fields[head!.indexOf(name)]!))),
  ]
}

function asStandard(column: string, field: string): string {
  if (column !== 'Debit' && column !== 'Credit') return field
  const [whole, cents = ''] = (field || '0').split(',')
  return `${Number(whole)},${cents.padEnd(2, '0')}`
}
