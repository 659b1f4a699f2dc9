/**
 * Writes what the package for Python shares with the service and with the library for JavaScript: remedies of errors, why
 * deliveries are refused, and the tables of a ledger. `npm run docs -- python`.
 */
import { writeFileSync } from 'node:fs'
import { errorCodes } from '../packages/contract/src/error-codes.ts'
import { ledgerTables } from '../packages/contract/src/ledger-tables.ts'
import { refusalReasons } from '../packages/partner/src/client/webhooks.ts'

export const pythonContractFile = new URL('../python/src/grandlivre/contract.json', import.meta.url)

/** Of the package's own codes. */
const remedies = {
  'INVALID-OPTION': 'Correct the option that the message names.',
  'CONNECTION-FAILED':
    'Check the address, and that the service can be reached from this machine. Then try again: what was given is right.',
  'LEDGER-CHANGED': 'Discard what was received and begin again.',
  'NOT-PROVEN':
    'Try again: what was given before is right. If it happens again, report it with the request id.',
  'UNEXPECTED-ANSWER':
    'Check the address: what answers there does not seem to be the service, or is of another version than this package.',
  'EXPORT-FAILED': 'The message says why. Change what it names first.',
  'FILE-DIFFERS': 'Download it again. If it happens again, report it with the id of the export.',
}

/** The whole file. Of each table it has the type of each column, in their order. */
export function pythonContract(): string {
  const ofService = Object.fromEntries(Object.entries(errorCodes).map(([code, { remedy }]) => [code, remedy]))
  const tables = Object.fromEntries(
    Object.entries(ledgerTables).map(([table, { columns }]) => [
      table,
      Object.fromEntries(columns.map(({ name, type }) => [name, type])),
    ]),
  )
  const contract = { remedies: { ...remedies, ...ofService }, refusals: refusalReasons, tables }
  return `${JSON.stringify(contract, undefined, 2)}\n`
}

if (import.meta.main) writeFileSync(pythonContractFile, pythonContract())
