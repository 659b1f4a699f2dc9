/**
 * Compares the rows of ledgers in a copy with digests of the service, and reads only what differs. `verify` repairs
 * copies with it. It also brings ledgers up to date whose cursors are refused, as all are after a failover.
 */
import { createHash } from 'node:crypto'
import {
  type LedgerTableName,
  type WholeTableName,
  wholeTables,
} from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import { BlockCutter } from '../client/compare/block-cutter.ts'
import { rangesFrom } from '../client/ledgers/entry-ranges.ts'
import type { Ledger, LedgerBlocks, WantedLedger } from '../client/ledgers/ledger-parts.ts'
import type { Copy, TableDigests } from './copy.ts'
import type { Run, Summary } from './events.ts'
import { employeesOf, fail, noFailure, now, receive } from './receive.ts'

export interface Comparison {
  /** Number of movements in the copy. */
  rows: number
  /** Ranges of entries whose blocks differ. */
  blocks: EntryRange[]
  /** Ranges of entries that belong to no block of the ledger, although the copy has rows there. */
  outside: EntryRange[]
  tables: WholeTableName[]
  /** Digests of the tables that equal the ledger's. */
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

/** The number with which a line begins. */
function idAt(line: Buffer, start: number): number {
  let id = 0
  let at = line[start] === minus ? start + 1 : start
  for (; line[at]! >= zero && line[at]! <= nine; at += 1) id = id * 10 + line[at]! - zero
  return line[start] === minus ? -id : id
}

/** Most ranges of entries that one request may name. */
const rangesMax = 1_000

export interface DifferingLedger {
  blocks: LedgerBlocks
  found: Comparison
}

/**
 * Reads what differs. Rows outside of all blocks are dropped, because the ledger has none there.
 * @returns ledgers whose cursor was refused; they have to be compared again
 */
export async function mend(
  run: Run,
  repairs: readonly DifferingLedger[],
  listed: ReadonlyMap<string, Ledger>,
  summary: Summary,
): Promise<string[]> {
  const outside = new Map<string, EntryRange[]>()
  const requests = repairs.map(({ blocks: { society, cursor }, found }): WantedLedger => {
    outside.set(society, found.outside)
    const entries = rangesFrom(found.blocks, 0, rangesMax)
    return { society, since: cursor, tables: found.equal, ...(entries.length === 0 ? {} : { entries }) }
  })
  return requests.length === 0 ? [] : receive(run, requests, listed, summary, outside)
}

/**
 * Brings ledgers up to date whose cursors were refused. @param societies ledgers that came whole before @returns those
 * whose cursor was refused again
 */
export async function comeBack(
  run: Run,
  societies: readonly string[],
  listed: ReadonlyMap<string, Ledger>,
  summary: Summary,
): Promise<string[]> {
  const { copy, ledger, signal } = run
  const repairs: DifferingLedger[] = []
  for await (const blocks of ledger.ledgerBlocks(societies, { signal })) {
    const { society } = blocks
    if (blocks.kind === 'refused') {
      await fail(run, listed.get(society)!, summary, blocks.code, blocks.message)
      continue
    }
    const found = await compare(copy, blocks)
    if (!isEqual(found)) {
      repairs.push({ blocks, found })
      continue
    }
    const { cursor, tables: table_digests } = blocks
    const employees = employeesOf(listed.get(society)!)
    await copy.note([society], { cursor, employees, table_digests, synced_at: now(), ...noFailure })
    run.onEvent?.({ kind: 'compared', society, rows: found.rows })
  }
  return mend(run, repairs, listed, summary)
}
