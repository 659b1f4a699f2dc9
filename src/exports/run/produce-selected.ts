/** Produces a selection: movements that contain their entry, or entries that contain their movements. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { CopyRows } from '../../db/copy-rows.ts'
import { invalid } from '../../errors.ts'
import { type Dictionary, type DictionaryRows, renderDictionary } from '../../formats/mad/dictionary.ts'
import { entryColumns, wholeEntryColumns } from '../../formats/mad/entry.ts'
import { MovementRenderer, movementColumns } from '../../formats/mad/movement.ts'
import { everyEntry } from '../../ledger/changes/entry-ranges.ts'
import { readDictionary } from '../../ledger/dictionary.sql.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { entrySegments } from '../read/entry-segments.ts'
import { copyEntries, copyMovements, findEntrySpans, type ResolvedSelection } from '../read/movements.sql.ts'
import { copyEntriesOf, copyMovementsOf } from '../read/ranges/copy-ranges.sql.ts'
import { type Resolved, readResolved } from '../read/selected.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { framings } from '../render/framing.ts'
import { EntriesTally, renderEntries } from '../render/render-entries.ts'
import { renderMovements } from '../render/render-movements.ts'
import { picksEntries, type Selection } from '../selection.ts'
import type { Produced, SelectedTask } from './task.ts'

/** No entry has this id: the segment of an empty selection. */
const noEntry = { exerciceIds: [], least: '0', greatest: '0', dense: true }

export async function produceSelected(
  snapshot: Snapshot,
  task: SelectedTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const { cursor, ...found } = await lookUp(snapshot, task)
  return { head: { cursor }, ...(await produceRows(snapshot, task, found, buffer)) }
}

interface Found {
  resolved: ResolvedSelection & Pick<Resolved, 'exerciceIds'>
  dictionaryRows: DictionaryRows
}

/** What the rows of a selection are read with, and the cursor of the snapshot. */
export async function lookUp(
  snapshot: Snapshot,
  task: SelectedTask,
): Promise<Found & Pick<Resolved, 'cursor'>> {
  // In parallel, on two connections.
  const [{ cursor, ...found }, dictionaryRows] = await Promise.all([
    resolve(snapshot, task),
    readDictionary(snapshot.second, task.selection),
  ])
  const accountIds = idsUnder(task.selection.accountRoots, dictionaryRows.accounts)
  return {
    cursor,
    dictionaryRows,
    resolved: { ...found, selection: task.selection, accountIds, segments: undefined },
  }
}

/** Renders the selected items, or those of the ranges `entries`. */
export async function produceRows(
  { first, second }: Snapshot,
  task: SelectedTask,
  { resolved, dictionaryRows }: Found,
  buffer: ChunkBuffer,
): Promise<Chunks> {
  const columns = task.what === 'movements' ? entryColumns : wholeEntryColumns
  const { entries: ranges = everyEntry } = task
  const whole = isDeepStrictEqual(ranges, everyEntry)
  const read = whole ? { ...resolved, segments: await segmentsOf(first, resolved) } : resolved
  const movements = first.query(
    new CopyRows(
      whole ? copyMovements(read, movementColumns) : copyMovementsOf(ranges, read, movementColumns),
      movementColumns.length,
    ),
  )
  const entries = second.query(
    new CopyRows(whole ? copyEntries(read, columns) : copyEntriesOf(ranges, read, columns), columns.length),
  )
  const dictionary = renderDictionary(dictionaryRows)
  const render = task.what === 'movements' ? movementChunks : entryChunks
  return render(movements, entries, dictionary, task, buffer)
}

type Chunks = Omit<Produced, 'head'>

function movementChunks(
  movements: CopyRows,
  entries: CopyRows,
  dictionary: Dictionary,
  { form }: SelectedTask,
  buffer: ChunkBuffer,
): Chunks {
  let rows = 0
  const count = (total: number): void => {
    rows = total
  }
  const renderer = new MovementRenderer(dictionary)
  const chunks = renderMovements(movements, entries, renderer, form, buffer, count)
  return { chunks, rows: () => rows }
}

function entryChunks(
  movements: CopyRows,
  entries: CopyRows,
  dictionary: Dictionary,
  { form }: SelectedTask,
  buffer: ChunkBuffer,
): Chunks {
  const tally = new EntriesTally()
  const chunks = renderEntries(entries, movements, 'selected', dictionary, framings[form], buffer, tally)
  return { chunks, rows: () => tally.entries }
}

/** @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-VALIDATION naming `after` */
export async function resolve(
  { first }: Snapshot,
  { what, selection, after }: Pick<SelectedTask, 'what' | 'selection' | 'after'>,
) {
  const found = await readResolved(first, selection, what, after)
  if (after !== undefined && !found.after)
    throw invalid('after', `no ${what === 'movements' ? 'movement' : 'entry'} of this folder has this id`)
  return { ...found, after: found.after ?? undefined }
}

/** The segments in which the entries of a selection are read; undefined if no condition selects entries. */
export async function segmentsOf(
  client: pg.ClientBase,
  resolved: ResolvedSelection,
): Promise<ResolvedSelection['segments']> {
  if (!picksEntries(resolved.selection)) return undefined
  const segments = entrySegments(await findEntrySpans(client, { ...resolved, accountIds: undefined }))
  return segments.length > 0 ? segments : [noEntry]
}

/** Undefined if no root is selected: every account. */
function idsUnder(
  roots: Selection['accountRoots'],
  accounts: { id: string; number: string }[],
): string[] | undefined {
  if (roots.length === 0) return undefined
  return accounts.filter(({ number }) => roots.some((root) => number.startsWith(root))).map(({ id }) => id)
}
