/** The digests of one ledger of many, from one snapshot (docs/spec/ledgers.md#blocks). Renders its rows, sends none. */
import { createHash } from 'node:crypto'
import { type WholeTableName, wholeTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { type EntryRange, everyEntry } from '../../../ledger/changes/entry-ranges.ts'
import type { Block } from '../../blocks/block.ts'
import { BlockCutter } from '../../blocks/block-cutter.ts'
import { changedRanges, type FormerBlock } from '../../blocks/former-blocks.ts'
import type { TableDigests } from '../../blocks/kept-blocks.sql.ts'
import type { ChunkBuffer } from '../../chunk-buffer.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { Tally } from '../../render/count-chunks.ts'
import { type LedgerRows, readLedgerRows } from '../../render/ledger-rows.ts'
import { copyLines, type Ledger, nothing } from './ledger.ts'
import { readLedgerState } from './ledger-state.sql.ts'
import { blocksLine } from './lines.ts'
import type { AskedLedger, LedgersTask } from './task.ts'

/** @throws {AppError} ERR-FOLDER-NOT-FOUND @throws {UnsupportedByFormat} for a row that is too long */
export async function beginBlocks(
  snapshot: Snapshot,
  asked: AskedLedger,
  task: LedgersTask,
  _: ChunkBuffer,
  spare: ChunkBuffer,
): Promise<Ledger> {
  const { society } = asked
  const { cursor, former: readFormer, ...state } = await readLedgerState(snapshot.first, asked, task)
  // In parallel, on two connections.
  const [former, rows] = await Promise.all([
    readFormer(),
    readLedgerRows(
      snapshot.second,
      { schemaId: task.schemaId, folderId: society },
      task.timeZone,
      task.withEmployees,
    ),
  ])
  const tables = state.tables ?? (await digestTables(rows, spare))
  const cutter = new BlockCutter(former)
  const tally = new Tally()
  const ranges = rangesOf(former)
  if (ranges.length > 0)
    for await (const _ of copyLines(
      snapshot,
      state.resolved,
      ranges,
      await rows.movements(),
      spare,
      tally,
      cutter,
    ));
  const kept = { blocks: cutter.end(tally.movements), tables }
  return {
    chunks: nothing(),
    end: () => ({ ...blocksLine(society, cursor, kept, task.withEmployees), kept }),
  }
}

/** The ranges to be rendered again; where they hold much of the ledger, all of it, since ranges are looked up and sorted. */
function rangesOf(former: readonly FormerBlock[]): readonly EntryRange[] {
  const changed = former.filter((block) => block.changed)
  return 4 * rowsOf(changed) > rowsOf(former) ? everyEntry : changedRanges(former)
}

const rowsOf = (blocks: readonly Block[]) => blocks.reduce((sum, { rows }) => sum + rows, 0)

async function digestTables(rows: LedgerRows, buffer: ChunkBuffer): Promise<TableDigests> {
  const digests = {} as Record<WholeTableName, string>
  for (const name of wholeTables) {
    const hash = createHash('sha256')
    for await (const lines of rows.table(name, buffer)) hash.update(lines)
    digests[name] = hash.digest('hex')
  }
  return rows.digests(digests, undefined)
}
