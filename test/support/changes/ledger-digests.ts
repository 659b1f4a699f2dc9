/** What a client does with the digests of a ledger (docs/spec/ledgers.md#blocks): computes them from its rows. */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import type { BlockItem } from '../ledgers/plain-blocks.ts'
import { plainDigest } from '../ledgers/plain-blocks.ts'
import type { LedgerItem } from './ledger-stream.ts'

export interface LedgerDigests {
  society: string
  cursor: string
  rows: number
  digest: string
  tables: Record<string, string>
  blocks: BlockItem[]
}

/** The digests of a whole ledger, for the bounds of these, which must hold every row. */
export function plainLedgerBlocks(
  { society, cursor, tables, end }: LedgerItem,
  { blocks: bounds }: Pick<LedgerDigests, 'blocks'>,
): LedgerDigests {
  const rows = tables.movements!.map((row) => ({ row, entryId: Number(row.split('\t', 1)[0]) }))
  let after = -1
  const blocks = bounds.map(({ from, to }) => {
    expect(Number(from)).toBeGreaterThan(after)
    expect(Number(to)).toBeGreaterThanOrEqual(Number(from))
    after = Number(to)
    const inside = rows.filter(({ entryId }) => Number(from) <= entryId && entryId <= Number(to))
    const text = inside.map(({ row }) => `${row}\n`).join('')
    return { from, to, rows: inside.length, sha256: createHash('sha256').update(text).digest('hex') }
  })
  expect(blocks.reduce((sum, block) => sum + block.rows, 0)).toBe(rows.length)
  return { society, cursor, rows: rows.length, digest: plainDigest(blocks), tables: end.tables, blocks }
}
