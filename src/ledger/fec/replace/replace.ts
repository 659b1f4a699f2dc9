/**
 * Replaces the entries of an exercice by those of a FEC, writing only what differs (docs/spec/imports.md#replacing): the
 * copies that partners hold then change little. The file is loaded into temporary tables and compared with the ledger
 * there, so memory does not grow with it. Only if lines stay in another order than before, each costs 20 bytes.
 *
 * 1. Entries match by journal, number, date and content; then those whose number identifies them by journal, number and
 *    date; then those that an earlier version imported without their numbers by journal, date and content.
 * 2. The lines of matched entries match by content, in their order, and then by account and amounts.
 * 3. Lines that stay keep their places; of lines in another order, as many as possible.
 */
import type { ClientBase } from 'pg'
import { longestAscent } from './longest-ascent.ts'
import {
  addNewEntries,
  areLinesMoved,
  countOtherSources,
  deleteUnmatched,
  digestBoth,
  insertNew,
  isScattered,
  matchEntries,
  matchLines,
  moveLines,
  type OtherSources,
  placeLines,
  type ReplacedExercice,
  type RowCounts,
  readFormerRanks,
  updateMatched,
} from './replace.sql.ts'

/** Rows of the exercice that were written. */
export interface Replacement {
  deleted: RowCounts
  updated: RowCounts
  inserted: RowCounts
  /** Entries of other sources than a FEC. */
  otherSources: OtherSources
  isScattered: boolean
}

/** To be called once the loader has filled the tables of `createFiledTables`. @param lines of the file */
export async function replaceByDifference(
  client: ClientBase,
  exercice: ReplacedExercice,
  lines: number,
): Promise<Replacement> {
  await digestBoth(client, exercice)
  await matchEntries(client, ['journal_id', 'date', 'number', 'content'], 'all')
  await matchEntries(client, ['journal_id', 'date', 'number'], 'numbered')
  await matchEntries(client, ['journal_id', 'date', 'content'], 'bare')
  await addNewEntries(client)
  await matchLines(client)
  if (await areLinesMoved(client)) await moveFewest(client, lines)
  await placeLines(client)
  const otherSources = await countOtherSources(client, exercice)
  const deleted = await deleteUnmatched(client, exercice)
  const updated = await updateMatched(client, exercice)
  const inserted = await insertNew(client)
  return { deleted, updated, inserted, otherSources, isScattered: await isScattered(client) }
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
