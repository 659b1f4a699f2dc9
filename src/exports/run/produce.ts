/** Produces the answer to a task from one snapshot, chunk by chunk. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { AppError } from '../../errors.ts'
import { balanceItem } from '../../formats/items/accounts/account.ts'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { entriesFormat, extendedEntriesFormat } from '../../formats/mad/entries.ts'
import { MovementRenderer } from '../../formats/mad/movement.ts'
import { readChangedEntries } from '../../ledger/changes/changed-entries.sql.ts'
import { readCursor, refusedCursor } from '../../ledger/changes/cursor.sql.ts'
import { type EntryRange, everyEntry, mergedRanges } from '../../ledger/changes/entry-ranges.ts'
import { readAuxiliaries, readDictionary, readDictionaryOfEntry } from '../../ledger/dictionary.sql.ts'
import { readNamedEntry } from '../../ledger/named-entry.sql.ts'
import { blocksText, changedRanges, headOf, isKept, noBlocks } from '../blocks/block.ts'
import { BlockCutter } from '../blocks/block-cutter.ts'
import { readFormerBlocks } from '../blocks/kept-blocks.sql.ts'
import { type ChunkBuffer, type Chunks, sameChunkBuffer } from '../chunks.ts'
import { readAccountIds, readBalance } from '../read/balance.sql.ts'
import {
  copySelected,
  entryConditions,
  entrySegments,
  findEntrySpans,
  type ResolvedSelection,
} from '../read/movements.sql.ts'
import { beginLookUps, readMuchChanged } from '../read/ranges.sql.ts'
import { readLedgerCursor, readResolved, type SnapshotSelection } from '../read/selected.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { collectionTexts } from '../render/collections.ts'
import { frameItems, framings, itemFramings, packPieces } from '../render/framing.ts'
import { type Rendering, type RowFormat, renderRanges, renderRows, Tally } from '../render/render-rows.ts'
import { picksEntries, wholeFolder } from '../selection.ts'
import {
  type CollectionTask,
  changesLine,
  type EntryTask,
  type ExportTask,
  type Produced,
  type SelectedTask,
  type SummaryTask,
} from './task.ts'

type Producer<Task> = (snapshot: Snapshot, task: Task, buffer: ChunkBuffer) => Promise<Produced>

/** Looks up what the task selects and renders it. Each chunk goes into a `buffer`. */
export const produce: Producer<ExportTask> = (snapshot, task, buffer) => {
  switch (task.what) {
    case 'movements':
    case 'entries':
      return produceSelected(snapshot, task, buffer)
    case 'blocks':
      return produceBlocks(snapshot, task, buffer)
    case 'balance':
      return produceBalance(snapshot, task, buffer)
    case 'entry':
      return produceEntry(snapshot, task, buffer)
    default:
      return produceCollection(snapshot, task, buffer)
  }
}

/**
 * Renders movements that contain their entry, or entries that contain their movements. In an answer of changes, a line
 * that says what changed comes first.
 */
const produceSelected: Producer<SelectedTask> = async (snapshot, task, buffer) => {
  const { what, form, selection, after, since, entries = everyEntry } = task
  const selected = await lookUp(snapshot, task)
  const { cursor, hasBlocks } = selected.resolved
  const tally = new Tally()
  const rows = () => (what === 'movements' ? tally.movements : tally.entries)
  const rendering: Rendering = { buffer, tally, framing: framings[form] }
  if (since !== undefined) {
    const ranges = await readRanges(snapshot, selected.resolved, since)
    const chunks = async function* (): Chunks {
      yield* packPieces([changesLine(since, cursor, ranges)], buffer)
      yield* renderSelected(snapshot, selected, ranges, rendering)
    }
    return { head: { cursor }, chunks: chunks(), rows }
  }
  // If digests of an earlier state of these lines are kept, the lines that have changed are hashed.
  const isWhole = what === 'movements' && form === 'ndjson' && after === undefined && entries === everyEntry
  const cutter =
    isWhole && isKept(selection) && !hasBlocks
      ? new BlockCutter(await readFormerBlocks(snapshot.first, selection))
      : undefined
  const chunks = renderSelected(snapshot, selected, entries, { ...rendering, cutter })
  return { head: { cursor }, chunks, rows, blocks: cutter && (() => cutter.end(tally.movements)) }
}

interface SelectedRows {
  resolved: SnapshotSelection
  format: RowFormat
}

/** Looks up what is needed to read and render the rows of a selection. */
async function lookUp(
  { first, second }: Snapshot,
  { what, selection, after, extended }: Pick<SelectedTask, 'what' | 'selection'> & Partial<SelectedTask>,
): Promise<SelectedRows> {
  // The three run in parallel, on two connections.
  const [resolved, rows, auxiliaries] = await Promise.all([
    readResolved(first, selection, what, after),
    readDictionary(second, selection),
    extended ? readAuxiliaries(second, selection) : undefined,
  ])
  const dictionary = renderDictionary(rows)
  const entries = () =>
    auxiliaries ? extendedEntriesFormat(dictionary, auxiliaries) : entriesFormat(dictionary)
  return {
    format: what === 'movements' ? new MovementRenderer(dictionary) : entries(),
    resolved: { ...resolved, accountIds: idsUnder(selection.accountRoots, rows.accounts) },
  }
}

/** The ids of the accounts under these roots; undefined, for every account, if no root is selected. */
function idsUnder(roots: string[], accounts: { id: string; number: string }[]): string[] | undefined {
  if (roots.length === 0) return undefined
  return accounts.filter(({ number }) => roots.some((root) => number.startsWith(root))).map(({ id }) => id)
}

/** Renders the selected items in these ranges of entries. */
async function* renderSelected(
  snapshot: Snapshot,
  { resolved, format }: SelectedRows,
  ranges: readonly EntryRange[],
  rendering: Rendering,
): Chunks {
  if (!isDeepStrictEqual(ranges, everyEntry))
    return yield* renderRanges(snapshot, resolved, ranges, format, rendering)
  const statements = copySelected(await inSegments(snapshot.first, resolved), format)
  yield* renderRows(snapshot, statements, format, rendering)
}

/** No entry has this id: the segment of an empty selection. */
const noEntry = { exerciceIds: [], least: '0', greatest: '0', dense: true }

/** The selection, with the segments in which its entries are read if a condition selects entries. */
async function inSegments(client: pg.ClientBase, resolved: ResolvedSelection): Promise<ResolvedSelection> {
  if (!picksEntries(resolved.selection)) return resolved
  const segments = entrySegments(await findEntrySpans(client, resolved))
  return { ...resolved, segments: segments.length > 0 ? segments : [noEntry] }
}

/**
 * Returns the ranges of the selection's entries that may have changed since a cursor, or a range with every entry if
 * these are many.
 * @param besides further entries that the caller wants
 * @throws {AppError} ERR-VALIDATION, ERR-CURSOR-EXPIRED
 */
export async function readRanges(
  { first }: Snapshot,
  resolved: ResolvedSelection & { exerciceIds: string[] },
  since: string,
  besides: readonly EntryRange[] = [],
): Promise<readonly EntryRange[]> {
  const { selection, exerciceIds } = resolved
  const { version, refusal } = await readCursor(first, since, selection)
  if (refusal !== null) throw refusedCursor(refusal)
  // An entry that fails a condition, and is not in the log itself, failed the condition before, too.
  const among = picksEntries(selection) ? entryConditions(selection) : []
  const changed = await readChangedEntries(first, { ...selection, exerciceIds, among }, version)
  if (changed === everyEntry) return changed
  const isMuch = changed.length > 0 && (await readMuchChanged(first, resolved, changed))
  // `besides` does not count: it names what a broken answer left out. If it counted, the caller would get everything
  // again each time.
  return isMuch ? everyEntry : mergedRanges([...changed, ...besides])
}

/**
 * Produces the digests of movements (docs/spec/changes.md#blocks). Their lines are rendered as NDJSON, but not sent.
 */
const produceBlocks: Producer<SummaryTask> = async (snapshot, { selection, form }, buffer) => {
  const selected = await lookUp(snapshot, { what: 'movements', selection })
  const { cursor, hasBlocks } = selected.resolved
  const isToBeKept = isKept(selection)
  const former = isToBeKept ? await readFormerBlocks(snapshot.first, selection) : noBlocks
  const cutter = new BlockCutter(former)
  const tally = new Tally()
  const rendering = { buffer: sameChunkBuffer(), tally, framing: framings.ndjson, cutter }
  const lines = isToBeKept
    ? renderChanged(snapshot, selected, changedRanges(former), rendering)
    : renderSelected(snapshot, selected, everyEntry, rendering)
  for await (const _ of lines);
  const blocks = cutter.end(tally.movements)
  return {
    head: { cursor, blocks: headOf(blocks, selection) },
    chunks: packPieces([blocksText(blocks, form)], buffer),
    rows: () => blocks.length,
    blocks: isToBeKept && !hasBlocks ? () => blocks : undefined,
  }
}

/** Renders only the blocks that have changed. Each range has a statement of its own, so that nothing is sorted. */
async function* renderChanged(
  snapshot: Snapshot,
  { resolved, format }: SelectedRows,
  ranges: readonly EntryRange[],
  rendering: Rendering,
): Chunks {
  if (ranges.length === 0) return
  await Promise.all([snapshot.first, snapshot.second].map(beginLookUps))
  const exerciceIds = [resolved.selection.exerciceId!]
  const statements = ranges.map(([least, greatest]) => {
    const segments = [{ exerciceIds, least, greatest, dense: true }]
    return copySelected({ ...resolved, segments }, format)
  })
  const entries = statements.map((statement) => statement.entries)
  const movements = statements.flatMap((statement) => statement.movements)
  yield* renderRows(snapshot, { entries, movements }, format, rendering)
}

/** One collection of a folder, or the folders that a token opens. */
const produceCollection: Producer<CollectionTask> = async ({ first }, task, buffer) => {
  const cursor = task.what === 'society' ? undefined : await readLedgerCursor(first, task.owner)
  if (task.what !== 'society' && cursor === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
  return {
    head: { cursor },
    ...packItems((counted) => collectionTexts(first, task, task.form, counted), buffer),
  }
}

/** The sums of the selected movements by account (docs/spec/exports.md#balance). */
const produceBalance: Producer<SummaryTask> = async ({ first, second }, { selection, form }, buffer) => {
  // The two run in parallel, on two connections.
  const [resolved, accountIds] = await Promise.all([
    readResolved(first, selection, 'movements'),
    readAccountIds(second, selection),
  ])
  const sums = readBalance(first, await inSegments(first, { ...resolved, accountIds }))
  async function* items() {
    for await (const batch of sums) yield batch.map(balanceItem)
  }
  const { cursor } = resolved
  return { head: { cursor }, ...packItems((counted) => frameItems(items(), framings[form], counted), buffer) }
}

/** Packs texts of items, and counts the items. */
function packItems(texts: (counted: (items: number) => void) => AsyncGenerator<string>, buffer: ChunkBuffer) {
  let rows = 0
  const counted = (items: number) => {
    rows += items
  }
  return { chunks: packPieces(texts(counted), buffer), rows: () => rows }
}

/**
 * One entry with its movements, as the export of entries has it (docs/spec/exports.md#one-entry). The amount that is
 * read does not depend on the size of the folder: of journals, accounts and the like, only those of this entry are read.
 */
const produceEntry: Producer<EntryTask> = async (snapshot, { named, timeZone, form }, buffer) => {
  const { cursor, id, exerciceId } = await readNamedEntry(snapshot.first, named, timeZone)
  const rows = await readDictionaryOfEntry(snapshot.second, named, { id, exerciceId })
  const format = entriesFormat(renderDictionary(rows))
  const exerciceIds = [exerciceId]
  const segments = [{ exerciceIds, least: id, greatest: id, dense: true }]
  const statements = copySelected({ selection: wholeFolder(named, timeZone), exerciceIds, segments }, format)
  const tally = new Tally()
  const chunks = renderRows(snapshot, statements, format, { buffer, tally, framing: itemFramings[form] })
  return { head: { cursor }, chunks, rows: () => tally.entries }
}
