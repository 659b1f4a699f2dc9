/**
 * Makes ledgers of a copy those of the service by digests, and reads only what differs: what `verify` mends, and the way back
 * of ledgers whose cursors are refused, as all are after a failover.
 */
import type { EntryRange } from '../client/changes.ts'
import { rangesFrom } from '../client/ledgers/entry-ranges.ts'
import type { Ledger, LedgerBlocks, WantedLedger } from '../client/ledgers/ledger-parts.ts'
import { type Comparison, compare, isEqual } from './compare.ts'
import type { Run, Summary } from './events.ts'
import { employeesOf, fail, noFailure, now, receive } from './receive.ts'

/** Of one request. */
const rangesMax = 1_000

export interface Repair {
  blocks: LedgerBlocks
  found: Comparison
}

/** Rows outside of all blocks are none of the ledger's, so nothing is read for them. @returns ledgers to be compared again */
export async function mend(
  run: Run,
  repairs: readonly Repair[],
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

/** @param societies ledgers that have come whole before @returns those whose cursor is refused again */
export async function comeBack(
  run: Run,
  societies: readonly string[],
  listed: ReadonlyMap<string, Ledger>,
  summary: Summary,
): Promise<string[]> {
  const { copy, ledger, signal } = run
  const repairs: Repair[] = []
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
