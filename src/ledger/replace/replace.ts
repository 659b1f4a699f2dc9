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
import * as sql from './replace.sql.ts'

/** To be called once the loader has filled the tables of `createFiledTables`. @param lines of the file */
export async function replaceExercice(client: ClientBase, exercice: sql.Replaced, lines: number) {
  await sql.createMatches(client)
  await sql.digestBoth(client, exercice)
  await sql.matchEntries(client, ['journal_id', 'date', 'number', 'content'], 'all')
  await sql.matchEntries(client, ['journal_id', 'date', 'number'], 'numbered')
  await sql.matchEntries(client, ['journal_id', 'date', 'content'], 'bare')
  await sql.addNew(client, 'entry_matches')
  await sql.matchLines(client)
  await sql.addNew(client, 'line_matches')
  if (await sql.areLinesMoved(client)) await moveFewest(client, lines)
  await sql.placeLines(client)
  const otherSources = await sql.countOtherSources(client, exercice)
  const written = await writeDifference(client, exercice)
  return { ...written, otherSources, isScattered: await sql.isScattered(client) }
}

/**
 * The same for all entries of a folder and a MAD file, whose entries have ids. Those are kept; or, with `renumber`, an
 * entry keeps the id that it has in the ledger: it is the one of the same exercice, journal, date and content, else the
 * one of the same exercice, journal, date and moment of creation.
 */
export async function replaceFolder(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  renumber: boolean,
) {
  const folder = { schemaId, folderId, exerciceId: null }
  await sql.createMatches(client)
  await sql.digestBoth(client, folder)
  if (renumber) {
    await sql.matchEntries(client, ['exercice_id', 'journal_id', 'date', 'content'], 'all')
    await sql.matchEntries(client, ['exercice_id', 'journal_id', 'date', 'created_at'], 'all')
    await sql.addNew(client, 'entry_matches')
    await sql.matchLines(client)
    await sql.addNew(client, 'line_matches')
  } else await sql.matchById(client, folder)
  await sql.keepFiled(client, folder)
  return writeDifference(client, folder)
}

/** Fills a folder that held nothing: all ids are new. */
export async function fillFolder(client: ClientBase): Promise<void> {
  await sql.createMatches(client)
  await sql.addNew(client, 'entry_matches')
  await sql.addNew(client, 'line_matches')
  await sql.insertNew(client)
}

/** @returns counts of the rows that were written */
async function writeDifference(client: ClientBase, replaced: sql.Replaced) {
  const deleted = await sql.deleteUnmatched(client, replaced)
  const updated = await sql.updateMatched(client, replaced)
  return { deleted, updated, inserted: await sql.insertNew(client) }
}
export type Replacement = Awaited<ReturnType<typeof writeDifference>>

async function moveFewest(client: ClientBase, lines: number): Promise<void> {
  const filedIds = new Int32Array(lines)
  const ranks = new Int32Array(lines)
  let count = 0
  for await (const batch of sql.readFormerRanks(client))
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
    await sql.moveLines(client, moved)
    moved = []
  }
  if (moved.length > 0) await sql.moveLines(client, moved)
}

/**
 * The longest ascending subsequence: of lines that a file has in another order than before, the most that can stay where
 * they are. It needs 12 bytes per value and time with n log n.
 * @param values distinct, in the order of the file
 * @returns ascending indexes of the values that ascend
 */
export function longestAscent(values: Int32Array): Int32Array {
  /** For each length, the index of the lowest value that ends an ascent of that length. */
  const ends = new Int32Array(values.length)
  const before = new Int32Array(values.length)
  let length = 0
  for (let at = 0; at < values.length; at += 1) {
    let low = 0
    for (let high = length; low < high; ) {
      const middle = (low + high) >>> 1
      if (values[ends[middle]!]! < values[at]!) low = middle + 1
      else high = middle
    }
    before[at] = low > 0 ? ends[low - 1]! : -1
    ends[low] = at
    if (low === length) length += 1
  }
  const ascent = new Int32Array(length)
  for (let at = length > 0 ? ends[length - 1]! : -1, place = length - 1; place >= 0; place -= 1) {
    ascent[place] = at
    at = before[at]!
  }
  return ascent
}
