/**
 * Repairs a copy whose cursor is refused (docs/spec/changes.md#the-way-back): compares its lines with the blocks of the
 * selection, and reads again those that differ.
 */
import type { Movement } from '../api/items.ts'
import { readBlocks } from '../blocks.ts'
import { type Changes, type ChangesOptions, joinedRanges, rangesMax } from '../changes.ts'
import { clientError } from '../errors.ts'
import { commonOf, rangesFrom } from '../ledgers/entry-ranges.ts'
import { itemsOf, WholeLines } from '../lines.ts'
import type { Requests } from '../requests.ts'
import { type MovementSelection, queryOf } from '../selection.ts'
import { LedgerTransfer } from '../stream.ts'
import { BlockCutter } from './block-cutter.ts'

export type Repair = Omit<Changes<Movement>, 'since'>
/** NDJSON lines, in chunks of any size. */
export type CopiedLines = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

export async function readRepair(
  requests: Requests,
  selection: MovementSelection,
  copy: CopiedLines,
  { signal, encoding }: Omit<ChangesOptions, 'wait'>,
): Promise<Repair> {
  const { blocks: all, cursor, digest } = await readBlocks(requests, selection, signal)
  const ranges = rangesFrom(await differingBlocks(all, copy), 0, rangesMax)
  // The ranges begin and end at bounds of blocks.
  const blocks = all.filter(({ from, to }) => commonOf([[from, to]], ranges).length > 0)
  const query = { ...queryOf(selection, 'movements'), entries: joinedRanges(ranges) }
  const source = { streamed: 'movements' as const, query, blocks: async () => ({ blocks, cursor, digest }) }
  async function* differing() {
    if (ranges.length > 0) yield* new LedgerTransfer(requests, source, { signal, encoding }).chunks()
  }
  const lines = differing()
  return {
    cursor,
    ranges,
    lines: () => lines,
    items: () => itemsOf<Movement>(lines),
    discard: async () => void (await lines.return()),
  }
}

async function differingBlocks(blocks: Awaited<ReturnType<typeof readBlocks>>['blocks'], copy: CopiedLines) {
  let last = 0
  const cutter = new BlockCutter(blocks, (lines, start, end) => {
    const entry = entryOf(lines.toString('utf8', start, end))
    if (entry < last)
      throw clientError('INVALID-OPTION', 'The lines of the copy are not in the order of their entries')
    last = entry
    return entry
  })
  const lines = new WholeLines()
  for await (const chunk of copy) {
    const whole = lines.push(chunk)
    if (whole) cutter.pass(whole)
  }
  if (lines.restBytes > 0) throw clientError('INVALID-OPTION', 'The last line of the copy has no line feed')
  return cutter.end().differing
}

function entryOf(line: string): number {
  let movement: { entry?: { producerId?: unknown } } | null = null
  try {
    movement = JSON.parse(line)
  } catch {
    // A line that is not JSON has no entry.
  }
  const entry = Number(movement?.entry?.producerId ?? Number.NaN)
  if (Number.isSafeInteger(entry)) return entry
  throw clientError('INVALID-OPTION', 'A line of the copy is no movement: read the selection in full')
}
