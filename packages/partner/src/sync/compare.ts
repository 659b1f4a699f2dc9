/** Compares the rows of a ledger in a copy with the digests of the service, at one cursor. */
import { createHash } from 'node:crypto'
import {
  type LedgerTableName,
  type WholeTableName,
  wholeTables,
} from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import { BlockCutter } from '../client/compare/block-cutter.ts'
import type { LedgerBlocks } from '../client/ledgers/ledger-parts.ts'
import type { Copy, TableDigests } from './copy.ts'

export interface Comparison {
  /** Movements of the copy. */
  rows: number
  /** Ranges of blocks that differ. */
  blocks: EntryRange[]
  /** Ranges outside of all blocks, in which the copy has rows. */
  outside: EntryRange[]
  tables: WholeTableName[]
  /** Of the tables that are equal. */
  equal: TableDigests
}

export const isEqual = ({ blocks, outside, tables }: Comparison): boolean =>
  blocks.length + outside.length + tables.length === 0

export async function compare(copy: Copy, expected: LedgerBlocks): Promise<Comparison> {
  const { society } = expected
  const tables: WholeTableName[] = []
  const equal: TableDigests = {}
  for (const table of wholeTables) {
    const digest = await digestOf(copy, society, table)
    if (digest === expected.tables[table]) equal[table] = digest
    else tables.push(table)
  }
  const cutter = new BlockCutter(expected.blocks, idAt)
  for await (const { buffer, byteOffset, length } of copy.lines(society, 'movements'))
    cutter.pass(Buffer.from(buffer, byteOffset, length))
  return { ...cutter.end(), tables, equal }
}

async function digestOf(copy: Copy, society: string, table: LedgerTableName): Promise<string> {
  const hash = createHash('sha256')
  for await (const lines of copy.lines(society, table)) hash.update(lines)
  return hash.digest('hex')
}

const [minus, zero, nine] = [45, 48, 57]

/** The number at the beginning of a line. */
function idAt(line: Buffer, start: number): number {
  let id = 0
  let at = line[start] === minus ? start + 1 : start
  for (; line[at]! >= zero && line[at]! <= nine; at += 1) id = id * 10 + line[at]! - zero
  return line[start] === minus ? -id : id
}
