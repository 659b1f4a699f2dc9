/** Produces the digests of a selection's movements (docs/spec/changes.md#blocks). Renders their lines, sends none. */
import { entryColumns } from '../../formats/mad/entry.ts'
import { movementColumns } from '../../formats/mad/movement.ts'
import { type Block, blocksText, headOf, isKept, type KeptSelection } from '../blocks/block.ts'
import { BlockCutter } from '../blocks/block-cutter.ts'
import { changedSegments, noBlocks } from '../blocks/former-blocks.ts'
import { readFormerBlocks } from '../blocks/kept-blocks.sql.ts'
import { type ChunkBuffer, sameChunkBuffer } from '../chunk-buffer.ts'
import { copyEntries, copyMovements } from '../read/movements.sql.ts'
import { beginLookUps } from '../read/ranges/copy-ranges.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { packPieces } from '../render/pack-pieces.ts'
import { type Found, lookUp, produceRows, renderRows } from './produce-selected.ts'
import type { BlocksTask, Produced, SelectedTask } from './task.ts'

export async function produceBlocks(
  snapshot: Snapshot,
  { selection, form, encoding }: BlocksTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const lines: SelectedTask = {
    what: 'movements',
    selection,
    after: undefined,
    entries: undefined,
    since: undefined,
    form: 'ndjson',
    encoding,
  }
  const { cursor, ...found } = await lookUp(snapshot, lines)
  const blocks = isKept(selection)
    ? await cutAgain(snapshot, { ...lines, selection }, found)
    : await cutAll(snapshot, lines, found)
  return {
    head: { cursor, blocks: headOf(blocks, selection) },
    chunks: packPieces([blocksText(blocks, form)], buffer),
    rows: () => blocks.length,
    blocks: isKept(selection) && !found.resolved.hasBlocks ? () => blocks : undefined,
  }
}

async function cutAll(snapshot: Snapshot, lines: SelectedTask, found: Found): Promise<Block[]> {
  const cutter = new BlockCutter(noBlocks)
  return cut(cutter, await produceRows(snapshot, lines, found, sameChunkBuffer(), cutter))
}

/** Reads and renders only the blocks that have changed. One statement for each range, so that nothing is sorted. */
async function cutAgain(
  snapshot: Snapshot,
  lines: SelectedTask & { selection: KeptSelection },
  found: Found,
): Promise<Block[]> {
  const { first, second } = snapshot
  const { selection } = lines
  const former = await readFormerBlocks(first, selection)
  const cutter = new BlockCutter(former)
  const segments = changedSegments(former, selection.exerciceId)
  if (segments.length === 0) return cutter.end(0)
  await Promise.all([first, second].map(beginLookUps))
  const { resolved } = found
  const statements = {
    movements: copyMovements({ ...resolved, segments }, movementColumns),
    entries: segments.map((segment) => copyEntries({ ...resolved, segments: [segment] }, entryColumns)),
  }
  return cut(cutter, renderRows(snapshot, lines, statements, found, sameChunkBuffer(), cutter))
}

async function cut(
  cutter: BlockCutter,
  { chunks, rows }: Pick<Produced, 'chunks' | 'rows'>,
): Promise<Block[]> {
  for await (const _ of chunks);
  return cutter.end(rows())
}
