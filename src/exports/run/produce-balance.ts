import { balanceItem } from '../../formats/items/accounts/balance.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { readAccountIds, readBalance } from '../read/balance.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { frameItems, framings } from '../render/framing.ts'
import { packPieces } from '../render/pack-pieces.ts'
import { resolve, segmentsOf } from './produce-selected.ts'
import type { BalanceTask, Produced } from './task.ts'

/** Produces the sums of the selected movements by account (docs/spec/exports.md#balance). */
export async function produceBalance(
  snapshot: Snapshot,
  { selection, form }: BalanceTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const { first, second } = snapshot
  // In parallel, on two connections.
  const [{ cursor, ...found }, accountIds] = await Promise.all([
    resolve(snapshot, { what: 'movements', selection, after: undefined }),
    readAccountIds(second, selection),
  ])
  const resolved = { ...found, selection, accountIds, segments: undefined }
  let rows = 0
  const sums = readBalance(first, { ...resolved, segments: await segmentsOf(first, resolved) })
  const texts = frameItems(itemsOf(sums), framings[form], (items) => {
    rows += items
  })
  return { head: { cursor }, chunks: packPieces(texts, buffer), rows: () => rows }
}

async function* itemsOf(sums: ReturnType<typeof readBalance>): AsyncGenerator<object[]> {
  for await (const batch of sums) yield batch.map(balanceItem)
}
