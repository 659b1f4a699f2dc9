/**
 * Compares the rows of ledgers in a copy with digests of the service, and reads only what differs. `verify` repairs
 * copies with it. It also brings ledgers up to date whose cursors the service refuses. After a failover it refuses all.
 */
import { createHash } from 'node:crypto'
import {
  type LedgerTableName,
  type WholeTableName,
  wholeTables,
} from '../../../contract/src/ledger-tables.ts'
import { BlockCutter } from '../client/compare/block-cutter.ts'
import { rangesFrom } from '../client/ledgers/entry-ranges.ts'
import type { LedgerBlocks, WantedLedger } from '../client/ledgers/ledger-parts.ts'
import { rangesMax } from '../client/ledgers/ledgers-requests.ts'
import type { Copy, TableDigests } from './copy.ts'
import { employeesOf, fail, type ListedRun, noFailure, now, receive } from './receive.ts'

export type Comparison = Awaited<ReturnType<typeof compare>>

/** Compares the rows of a ledger in the copy with the digests of the service. */
export async function compare(copy: Copy, ledger: LedgerBlocks) {
  const { society } = ledger
  const tables: WholeTableName[] = []
  const equalTables: TableDigests = {}
  for (const table of wholeTables) {
    const digest = await tableDigest(copy, society, table)
    if (digest === ledger.tables[table]) equalTables[table] = digest
    else tables.push(table)
  }
  const cutter = new BlockCutter(ledger.blocks, idAt)
  for await (const lines of copy.lines(society, 'movements')) cutter.pass(lines)
  const { rows, differing, outside } = cutter.end()
  const isEqual = differing.length + outside.length + tables.length === 0
  return { ledger, rows, differing, outside, tables, equalTables, isEqual }
}

async function tableDigest(copy: Copy, society: string, table: LedgerTableName): Promise<string> {
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

/**
 * Reads the blocks and tables that differ. Drops rows outside of all blocks, because the ledger has none there.
 * @returns ledgers whose cursor was refused; they have to be compared again
 */
export async function repairDiffering(
  listedRun: ListedRun,
  comparisons: readonly Comparison[],
): Promise<string[]> {
  const outside = new Map(comparisons.map((found) => [found.ledger.society, found.outside]))
  const requests = comparisons.map(({ ledger, differing, equalTables }): WantedLedger => {
    const entries = rangesFrom(differing, 0, rangesMax)
    const { society, cursor: since } = ledger
    return { society, since, tables: equalTables, ...(entries.length === 0 ? {} : { entries }) }
  })
  return requests.length === 0 ? [] : receive(listedRun, requests, outside)
}

/**
 * Brings ledgers up to date whose cursors were refused.
 * @param societies ledgers that came whole before
 * @returns ledgers whose cursor was refused again
 */
export async function repairRefused(listedRun: ListedRun, societies: readonly string[]): Promise<string[]> {
  const { run, listed } = listedRun
  const differing: Comparison[] = []
  for await (const blocks of run.ledger.ledgerBlocks(societies, { signal: run.signal })) {
    const { society } = blocks
    if (blocks.kind === 'refused') {
      await fail(listedRun, society, blocks.code, blocks.message)
      continue
    }
    const found = await compare(run.copy, blocks)
    if (!found.isEqual) {
      differing.push(found)
      continue
    }
    const { cursor, tables: table_digests } = blocks
    const employees = employeesOf(listed.get(society)!)
    await run.copy.note([society], { cursor, employees, table_digests, synced_at: now(), ...noFailure })
    run.onEvent?.({ kind: 'compared', society, rows: found.rows })
  }
  return repairDiffering(listedRun, differing)
}
