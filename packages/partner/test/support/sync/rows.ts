/** Rows of copies, for tests with and without servers. */
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import type { Copy } from '../../../src/sync/copy.ts'

export const copyKinds = ['SQLite', 'PostgreSQL'] as const
export type CopyKind = (typeof copyKinds)[number]

export const tableNames = Object.keys(ledgerTables) as LedgerTableName[]

/** The lines of a table. */
export async function linesIn(copy: Copy, society: string, table: LedgerTableName): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const lines of copy.lines(society, table)) chunks.push(lines)
  return Buffer.concat(chunks)
}

/**
 * A row as the line that a stream of ledgers brings.
 * @param fields as COPY writes them, by the names of their columns; all others are absent
 */
export function lineOf(table: LedgerTableName, fields: Record<string, string>): string {
  return `${ledgerTables[table].columns.map(({ name }) => fields[name] ?? '\\N').join('\t')}\n`
}
