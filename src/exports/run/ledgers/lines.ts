/** The lines of JSON in an answer of many ledgers (docs/spec/ledgers.md#lines), each with its line feed. */
import { type LedgerTableName, ledgerTables } from '../../../../packages/contract/src/ledger-tables.ts'
import type { EntryRange } from '../../../ledger/changes/entry-ranges.ts'
import { type Block, blockItems, digestOf } from '../../blocks/block.ts'
import { shownDigests, type TableDigests } from '../../blocks/kept-blocks.sql.ts'
import type { AskedLedger, Refusal, SentLedger } from './task.ts'

/** The most that have less than 1 MiB as JSON: 40 bytes each at most. */
const rangesMax = 25_000

function line(members: object): string {
  return `${JSON.stringify(members)}\n`
}

export function ledgerLine(
  { society, since = null }: Pick<AskedLedger, 'society'> & { since?: string | null | undefined },
  cursor: string,
  entries: readonly EntryRange[],
): string {
  return line({ ledger: society, since, cursor, entries })
}

export function tableLine(table: LedgerTableName): string {
  return line({ table, columns: ledgerTables[table].columns.map(({ name }) => name) })
}

/** @param debit with two decimals, like `credit` */
export function endLine(
  society: string,
  sums: { rows: number; debit: string; credit: string },
  tables: object,
): string {
  return line({ end: society, ...sums, tables })
}

export function refusedLine(society: string, { code, message }: Refusal): string {
  return line({ refused: society, code, message })
}

/**
 * The digests of a ledger (docs/spec/ledgers.md#blocks), and what is said of them.
 * @param withEmployees whether their personal data is opened to the reader
 */
export function blocksLine(
  society: string,
  cursor: string,
  { blocks, tables }: { blocks: Block[]; tables: TableDigests },
  withEmployees: boolean,
): { lines: string } & SentLedger {
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  // Former blocks may have lost all their movements.
  const shown = blockItems(blocks).filter((block) => block.rows > 0)
  const digest = digestOf(shown)
  const lines = line({
    society,
    cursor,
    rows,
    digest,
    tables: shownDigests(tables, withEmployees),
    blocks: shown,
  })
  return { lines, cursor, rows: shown.length, sha256: digest }
}

export function wholeLine(whole: number, refusals: number): string {
  return line({ whole, refusals })
}

/** Ranges that fit into a line: where there are too many, neighbours are joined, with the ids between them. */
export function joined(ranges: readonly EntryRange[]): readonly EntryRange[] {
  const together = Math.ceil(ranges.length / rangesMax)
  if (together <= 1) return ranges
  return Array.from({ length: Math.ceil(ranges.length / together) }, (_, group) => {
    const [first, last] = [ranges[group * together], ranges[(group + 1) * together - 1] ?? ranges.at(-1)]
    return [first![0], last![1]] as const
  })
}
