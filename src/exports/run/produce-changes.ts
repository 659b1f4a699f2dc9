/** Produces what changed in a selection since a cursor (docs/spec/changes.md#changes-since). */
import { readChangedEntries } from '../../ledger/changes/changed-entries.sql.ts'
import { readCursor } from '../../ledger/changes/cursor.sql.ts'
import { type EntryRange, everyEntry, merged } from '../../ledger/changes/entry-ranges.ts'
import { refuse } from '../../ledger/changes/refuse.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { entryConditions, type ResolvedSelection } from '../read/movements.sql.ts'
import { readMuchChanged } from '../read/ranges/much-changed.sql.ts'
import type { Resolved } from '../read/selected.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { packPieces } from '../render/pack-pieces.ts'
import { picksEntries } from '../selection.ts'
import { changesLine } from './changes-line.ts'
import { lookUp, produceRows } from './produce-selected.ts'
import type { ChangesTask, Produced } from './task.ts'

export async function produceChanges(
  snapshot: Snapshot,
  task: ChangesTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const { since } = task
  const { cursor, ...found } = await lookUp(snapshot, task)
  const entries = await readRanges(snapshot, found.resolved, since)
  const { chunks, rows } = await produceRows(snapshot, { ...task, entries }, found, buffer)
  const line = changesLine({ since, cursor, entries })
  return { head: { cursor }, chunks: preceded(line, chunks, buffer), rows }
}

/**
 * The entries of the selection that may have changed since a cursor, or every one if these are many.
 * @param besides further entries that the caller wants
 * @throws {AppError} ERR-VALIDATION, ERR-CURSOR-EXPIRED
 */
export async function readRanges(
  { first }: Snapshot,
  resolved: ResolvedSelection & Pick<Resolved, 'exerciceIds'>,
  since: string,
  besides: readonly EntryRange[] = [],
): Promise<readonly EntryRange[]> {
  const { selection, exerciceIds } = resolved
  const { version, refusal } = await readCursor(first, since, selection)
  if (refusal !== null) throw refuse(refusal)
  // An entry that fails a condition, and is not logged itself, failed it before, too.
  const among = picksEntries(selection) ? entryConditions(selection) : []
  const changed = await readChangedEntries(first, { ...selection, exerciceIds, among }, version)
  if (changed === everyEntry) return changed
  const isMuch = changed.length > 0 && (await readMuchChanged(first, resolved, changed))
  // Of what the caller wants besides, nothing more is sent: it goes on there after a broken answer, and would never end.
  return isMuch ? everyEntry : merged([...changed, ...besides])
}

async function* preceded(line: string, chunks: Produced['chunks'], buffer: ChunkBuffer): Produced['chunks'] {
  yield* packPieces([line], buffer)
  yield* chunks
}
