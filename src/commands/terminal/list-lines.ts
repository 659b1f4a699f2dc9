/** Lists and facts of `src/lists/` as lines. */

import { table } from '../../../packages/terminal/src/table.ts'
import { type Facts, type Table, textOf } from '../../lists/list.ts'

export function listLines<Row>({ columns }: Pick<Table<Row>, 'columns'>, rows: readonly Row[]): string[] {
  const cellsOf = Object.values(columns)
  const heading = Object.keys(columns).map((head) => head.toUpperCase())
  return table(
    heading,
    rows.map((row) => cellsOf.map((cellOf) => textOf(cellOf(row)).trim())),
  )
}

/** A line for each fact that is not empty. */
export function factLines(facts: Facts): string[] {
  const lines = Object.entries(facts).map(([name, cell]) => [name.toLowerCase(), textOf(cell, true)])
  const [first, ...others] = lines.filter(([, text]) => text !== '')
  return table(first!, others)
}
