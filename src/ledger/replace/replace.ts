/**
 * Replaces entries by those of a file, writing only what differs (docs/spec/imports.md#replacing): the copies that partners
 * hold then change little. The file is loaded into temporary tables and compared with the ledger
 * there, so memory does not grow with it. Only if lines stay in another order than before, each costs 20 bytes.
 *
 * 1. Entries match by journal, number, date and content; then those whose number identifies them by journal, number and
 *    date; then those that an earlier version imported without their numbers by journal, date and content.
 * 2. The lines of matched entries match by content, in their order, and then by account and amounts.
 * 3. Lines that stay keep their places; of lines in another order, as many as possible.
 */
import type { ClientBase } from 'pg'
import type { FolderKey } from '../../formats/rows.ts'
import { longestAscent } from './longest-ascent.ts'
import {
  addNewEntries,
  addNewLines,
  areLinesMoved,
  countOtherSources,
  createMatches,
  deleteUnmatched,
  digestBoth,
  insertNew,
  isScattered,
  keepFiled,
  matchById,
  matchEntries,
  matchLines,
  moveLines,
  placeLines,
  type Replaced,
  type RowCounts,
  readFormerRanks,
  updateMatched,
} from './replace.sql.ts'

/** Rows that were written. */
export interface Replacement {
  deleted: RowCounts
  updated: RowCounts
  inserted: RowCounts
}

/** To be called once the loader has filled the tables of `createFiledTables`. @param lines of the file */
export async function replaceExercice(client: ClientBase, exercice: Replaced, lines: number) {
  await createMatches(client)
  await digestBoth(client, exercice)
  await matchEntries(client, ['journal_id', 'date', 'number', 'content'], 'all')
  await matchEntries(client, ['journal_id', 'date', 'number'], 'numbered')
  await matchEntries(client, ['journal_id', 'date', 'content'], 'bare')
  await addNewEntries(client)
  await matchLines(client)
  await addNewLines(client)
  if (await areLinesMoved(client)) await moveFewest(client, lines)
  await placeLines(client)
  const otherSources = await countOtherSources(client, exercice)
  const written = await writeDifference(client, exercice)
  return { ...written, otherSources, isScattered: await isScattered(client) }
}

/**
 * The same for all entries of a folder and a MAD file, whose entries have ids. Those are kept; or, with `renumber`, an entry
 * keeps the id that it has in the ledger: it is the one of the same exercice, journal, date and content, else the one of
 * the same exercice, journal, date and moment of creation.
 */
export async function replaceFolder(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  renumber: boolean,
): Promise<Replacement> {
  const folder = { schemaId, folderId, exerciceId: null }
  await createMatches(client)
  await digestBoth(client, folder)
  if (renumber) {
    await matchEntries(client, ['exercice_id', 'journal_id', 'date', 'content'], 'all')
    await matchEntries(client, ['exercice_id', 'journal_id', 'date', 'created_at'], 'all')
    await addNewEntries(client)
    await matchLines(client)
    await addNewLines(client)
  } else await matchById(client, folder)
  await keepFiled(client, folder)
  return writeDifference(client, folder)
}

/** Fills a folder that held nothing: all ids are new. */
export async function fillFolder(client: ClientBase): Promise<void> {
  await createMatches(client)
  await addNewEntries(client)
  await addNewLines(client)
  await insertNew(client)
}

async function writeDifference(client: ClientBase, replaced: Replaced): Promise<Replacement> {
  const deleted = await deleteUnmatched(client, replaced)
  const updated = await updateMatched(client, replaced)
  return { deleted, updated, inserted: await insertNew(client) }
}

async function moveFewest(client: ClientBase, lines: number): Promise<void> {
  const filedIds = new Int32Array(lines)
  const ranks = new Int32Array(lines)
  let count = 0
  for await (const batch of readFormerRanks(client))
    for (const { filedId, rank } of batch) {
      filedIds[count] = Number(filedId)
      ranks[count] = Number(rank)
      count += 1
    }
  const staying = longestAscent(ranks.subarray(0, count))
  let moved: number[] = []
  for (let at = 0, next = 0; at < count; at += 1) {
    if (staying[next] === at) next += 1
    else moved.push(filedIds[at]!)
    if (moved.length < 10_000) continue
    await moveLines(client, moved)
    moved = []
  }
  if (moved.length > 0) await moveLines(client, moved)
}
