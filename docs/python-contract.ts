/**
 * Writes what the package for Python shares with the service: remedies of errors, and the tables of a ledger. `npm run
 * docs:python`.
 */
import { writeFileSync } from 'node:fs'
import { errorCodes } from '../packages/contract/src/error-codes.ts'
import { ledgerTables } from '../packages/contract/src/ledger-tables.ts'

export const pythonContractFile = new URL('../python/src/grandlivre/contract.json', import.meta.url)

/** The whole file: the remedy of each code, and the type of each column by table and name, in their order. */
export function pythonContract(): string {
  const remedies = Object.fromEntries(Object.entries(errorCodes).map(([code, { remedy }]) => [code, remedy]))
  const tables = Object.fromEntries(
    Object.entries(ledgerTables).map(([table, { columns }]) => [
      table,
      Object.fromEntries(columns.map(({ name, type }) => [name, type])),
    ]),
  )
  return `${JSON.stringify({ remedies, tables }, undefined, 2)}\n`
}

if (import.meta.main) writeFileSync(pythonContractFile, pythonContract())
