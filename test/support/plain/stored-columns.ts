/** The columns of a table as src/db/schema.sql has them. */
import { readFileSync } from 'node:fs'

const schema = readFileSync(new URL('../../../src/db/schema.sql', import.meta.url), 'utf8')

export function storedColumns(table: string): string[] {
  const [, columns] = new RegExp(`^CREATE TABLE ${table} \\(\n(.*?)^  CONSTRAINT`, 'ms').exec(schema)!
  return columns!.match(/^ {2}\w+/gm)!.map((name) => name.trim())
}
