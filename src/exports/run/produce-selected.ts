/** Produces a selection: movements that contain their entry, or entries that contain their movements. */

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { CopyRows } from '../../db/copy-rows.ts'
import { invalid } from '../../errors.ts'
import type { JsonForm } from '../../formats/file-formats.ts'
import { type Dictionary, renderDictionary } from '../../formats/mad/dictionary.ts'
import { entryColumns, wholeEntryColumns } from '../../formats/mad/entry.ts'
import { extendedEntryColumns, extendedMovementColumns, FiledRenderer } from '../../formats/mad/filed.ts'
import { MovementRenderer, movementColumns } from '../../formats/mad/movement.ts'
import type { AuxiliaryRow, DictionaryRows } from '../../formats/rows.ts'
import { everyEntry } from '../../ledger/changes/entry-ranges.ts'
import { readAuxiliaries, readDictionary } from '../../ledger/dictionary.sql.ts'
import { isKept } from '../blocks/block.ts'
import { BlockCutter } from '../blocks/block-cutter.ts'
import { readFormerBlocks } from '../blocks/kept-blocks.sql.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { entrySegments } from '../read/entry-segments.ts'
import { copyEntries, copyMovements, findEntrySpans, type ResolvedSelection } from '../read/movements.sql.ts'
import { beginLookUps, copyEntriesOf, copyMovementsOf } from '../read/ranges/copy-ranges.sql.ts'
import { type Resolved, readResolved } from '../read/selected.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { Tally } from '../render/count-chunks.ts'
import { framings } from '../render/framing.ts'
import { renderEntries } from '../render/render-entries.ts'
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
  const cutter = await cutterFor(snapshot, task, found)
  const produced = await produceRows(snapshot, task, found, buffer, cutter)
  return { head: { cursor }, ...produced, blocks: cutter && (() => cutter.end(produced.rows())) }
}

/** Where the lines are those of kept digests, and these are not of this state: hashes the lines that have changed. */
async function cutterFor(
  { first }: Snapshot,
  { what, form, selection, after, entries }: SelectedTask,
  { resolved }: Found,
): Promise<BlockCutter | undefined> {
  const rendersLines =
    what === 'movements' && form === 'ndjson' && after === undefined && entries === undefined
  if (!rendersLines || !isKept(selection) || resolved.hasBlocks) return undefined
  return new BlockCutter(await readFormerBlocks(first, selection))
}

export interface Found {
  resolved: ResolvedSelection & Pick<Resolved, 'exerciceIds' | 'hasBlocks'>
  dictionaryRows: DictionaryRows
  /** Of extended entries. */
  auxiliaries: AuxiliaryRow[] | undefined
}

/** What the rows of a selection are read with, and the cursor of the snapshot. */
export async function lookUp(
  snapshot: Snapshot,
  task: SelectedTask,
): Promise<Found & Pick<Resolved, 'cursor'>> {
  // In parallel, on two connections.
  const [{ cursor, ...found }, dictionaryRows, auxiliaries] = await Promise.all([
    resolve(snapshot, task),
    readDictionary(snapshot.second, task.selection),
    task.extended ? readAuxiliaries(snapshot.second, task.selection) : undefined,
  ])
  const accountIds = idsUnder(task.selection.accountRoots, dictionaryRows.accounts)
  return {
    cursor,
    dictionaryRows,
    auxiliaries,
    resolved: { ...found, selection: task.selection, accountIds, segments: undefined },
  }
}

/** Renders the selected items, or those of the ranges `entries`. */
export async function produceRows(
  snapshot: Snapshot,
  task: SelectedTask,
  found: Found,
  buffer: ChunkBuffer,
  cutter?: BlockCutter,
): Promise<Chunks> {
  return renderRows(snapshot, task, await statements(snapshot, task, found.resolved), found, buffer, cutter)
}

/** Statements for the rows of `columnsOf`, to be run one after the other. */
interface Statements {
  movements: string | string[]
  entries: string | string[]
}

async function statements(
  { first, second }: Snapshot,
  { entries: ranges = everyEntry, ...task }: SelectedTask,
  resolved: ResolvedSelection,
): Promise<Statements> {
  const columns = rowColumns(task)
  if (isDeepStrictEqual(ranges, everyEntry)) {
    const read = { ...resolved, segments: await segmentsOf(first, resolved) }
    return {
      movements: copyMovements(read, columns.movements),
      entries: copyEntries(read, columns.entries),
    }
  }
  await Promise.all([first, second].map(beginLookUps))
  return {
    movements: copyMovementsOf(ranges, resolved, columns.movements),
    entries: copyEntriesOf(ranges, resolved, columns.entries),
  }
}

const columnsOf = {
  movements: { movements: movementColumns, entries: entryColumns },
  entries: { movements: movementColumns, entries: wholeEntryColumns },
  extended: { movements: extendedMovementColumns, entries: extendedEntryColumns },
} as const

function rowColumns({ what, extended }: Pick<SelectedTask, 'what' | 'extended'>) {
  return columnsOf[extended ? 'extended' : what]
}

/** @param cutter hashes the lines of movements in NDJSON */
export function renderRows(
  { first, second }: Snapshot,
  { form, ...task }: Pick<SelectedTask, 'what' | 'form' | 'extended'>,
  { movements, entries }: Statements,
  { dictionaryRows, auxiliaries }: Pick<Found, 'dictionaryRows' | 'auxiliaries'>,
  buffer: ChunkBuffer,
  cutter?: BlockCutter,
): Chunks {
  const columns = rowColumns(task)
  const movementRows = first.query(new CopyRows(movements, columns.movements.length))
  const entryRows = second.query(new CopyRows(entries, columns.entries.length))
  const dictionary = renderDictionary(dictionaryRows)
  return task.what === 'movements'
    ? movementChunks(movementRows, entryRows, dictionary, form, buffer, cutter)
    : entryChunks(movementRows, entryRows, dictionary, form, buffer, auxiliaries)
}

type Chunks = Pick<Produced, 'chunks' | 'rows'>

function movementChunks(
  movements: CopyRows,
  entries: CopyRows,
  dictionary: Dictionary,
  form: JsonForm,
  buffer: ChunkBuffer,
  cutter?: BlockCutter,
): Chunks {
  let rows = 0
  const count = (total: number): void => {
    rows = total
  }
  const renderer = new MovementRenderer(dictionary)
  const chunks = renderMovements(movements, entries, renderer, form, buffer, count, cutter)
  return { chunks, rows: () => rows }
}

function entryChunks(
  movements: CopyRows,
  entries: CopyRows,
  dictionary: Dictionary,
  form: JsonForm,
  buffer: ChunkBuffer,
  auxiliaries: AuxiliaryRow[] | undefined,
): Chunks {
  const tally = new Tally()
  const filed = auxiliaries && new FiledRenderer(auxiliaries)
  const chunks = renderEntries(
    entries,
    movements,
    'selected',
    dictionary,
    framings[form],
    buffer,
    tally,
    filed,
  )
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
