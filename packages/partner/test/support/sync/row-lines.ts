/** Rows of a ledger as the lines that a stream of ledgers brings. */
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'

/** @param fields as COPY writes them, by the names of their columns; all others are absent */
export function lineOf(table: LedgerTableName, fields: Record<string, string>): string {
  return `${ledgerTables[table].columns.map(({ name }) => fields[name] ?? '\\N').join('\t')}\n`
}
