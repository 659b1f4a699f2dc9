/** Exports of a selection: its movements with their entry inside, or its entries with their movements inside. */

import { CopyRows } from '../../db/copy-rows.ts'
import { AppError, invalid } from '../../errors.ts'
import type { StreamedForm } from '../../formats/file-formats.ts'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { entryColumns, wholeEntryColumns } from '../../formats/mad/entry.ts'
import { MovementRenderer, movementColumns } from '../../formats/mad/movement.ts'
import { readDictionary } from '../../ledger/dictionary.sql.ts'
import { entrySegments } from '../read/entry-segments.ts'
import type { Position, ResolvedSelection } from '../read/movements.sql.ts'
import {
  copyEntries,
  copyMovements,
  findEntrySpans,
  findExercices,
  findPosition,
  hasEntry,
  readSelected,
} from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { EntriesTally, renderEntries } from '../render/render-entries.ts'
import { renderMovements } from '../render/render-movements.ts'
import { picksEntries, type Selection } from '../selection.ts'
import type { Produced, Room, SentTask } from './send.ts'

export interface SelectedOptions {
  selection: Selection
  /** Id of the last movement the caller has, or of the last entry where entries are exported. */
  after: string | undefined
  form: StreamedForm
  chunkBytes: number
  room: Room
}

/** What a thread is given; it adds its own buffers. */
export type SelectedTask = SentTask & Omit<SelectedOptions, 'chunkBytes' | 'room'>

/** No entry has this id: the segment of an empty selection. */
const noEntry = { exerciceIds: [], least: '0', greatest: '0', dense: true }

export async function produceMovements(
  snapshot: Snapshot,
  { selection, after, form, chunkBytes, room }: SelectedOptions,
): Promise<Produced> {
  const { first, second } = snapshot
  const { head, dictionary, resolved } = await prepare(selection, snapshot, async () => {
    if (after === undefined) return undefined
    const position = await findPosition(first, selection, after)
    if (!position) throw invalid('after', 'no movement of this folder has this id')
    return position
  })
  const movements = first.query(
    new CopyRows(copyMovements(resolved, movementColumns), movementColumns.length),
  )
  const entries = second.query(new CopyRows(copyEntries(resolved, entryColumns), entryColumns.length))
  let rows = 0
  const count = (total: number): void => {
    rows = total
  }
  const renderer = new MovementRenderer(dictionary)
  const chunks = renderMovements(movements, entries, renderer, form, chunkBytes, room, count)
  return { head, chunks, rows: () => rows }
}

export async function produceEntries(
  snapshot: Snapshot,
  { selection, after, form, chunkBytes, room }: SelectedOptions,
): Promise<Produced> {
  const { first, second } = snapshot
  const { head, dictionary, resolved } = await prepare(selection, snapshot, async () => {
    if (after === undefined) return undefined
    if (!(await hasEntry(first, selection, after)))
      throw invalid('after', 'no entry of this folder has this id')
    // Before the first movement of whatever entry comes next.
    return { entryId: String(BigInt(after) + 1n), movementId: '0' }
  })
  const movements = first.query(
    new CopyRows(copyMovements(resolved, movementColumns), movementColumns.length),
  )
  const entries = second.query(
    new CopyRows(copyEntries(resolved, wholeEntryColumns), wholeEntryColumns.length),
  )
  const tally = new EntriesTally()
  const chunks = renderEntries(entries, movements, 'selected', dictionary, form, chunkBytes, room, tally)
  return { head, chunks, rows: () => tally.entries }
}

async function prepare(
  selection: Selection,
  snapshot: Snapshot,
  findAfter: () => Promise<Position | undefined>,
) {
  const { first } = snapshot
  const selected = await readSelected(first, selection)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const dictionaryRows = await readDictionary(first, selection.schemaId, selection.folderId)
  const resolved = await resolve(selection, snapshot, dictionaryRows.accounts, findAfter)
  const { ledgerVersion } = selected
  return { head: { ledgerVersion }, dictionary: renderDictionary(dictionaryRows), resolved }
}

async function resolve(
  selection: Selection,
  { first }: Snapshot,
  accounts: { id: string; number: string }[],
  findAfter: () => Promise<Position | undefined>,
): Promise<ResolvedSelection> {
  const exercices = await findExercices(first, selection)
  if (selection.exerciceId !== undefined && exercices.length === 0)
    throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const { accountRoots } = selection
  const inRoots = ({ number }: { number: string }) => accountRoots.some((root) => number.startsWith(root))
  const resolved: ResolvedSelection = {
    selection,
    exerciceIds: exercices.map(({ id }) => id),
    accountIds: accountRoots.length > 0 ? accounts.filter(inRoots).map(({ id }) => id) : undefined,
    after: await findAfter(),
    segments: undefined,
  }
  if (!picksEntries(selection)) return resolved
  const segments = entrySegments(await findEntrySpans(first, resolved))
  return { ...resolved, segments: segments.length > 0 ? segments : [noEntry] }
}
