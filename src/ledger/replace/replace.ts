/**
 * Replaces entries with those of a file, writing only the rows that differ (docs/spec/imports.md#replacing), so that
 * the copies of partners change little. The file is loaded into temporary tables and compared with the ledger there, so
 * memory does not grow with it. One exception: if lines that stay have changed their order, each line takes 20 bytes.
 *
 * 1. Entries match by journal, number, date and content. The remaining entries match by journal, number and date, if
 *    their number identifies them. Then entries that an earlier version imported without numbers match by journal, date
 *    and content.
 * 2. The lines of matched entries match by content, in their order, and then by account and amounts.
 * 3. Lines that stay keep their places. If their order has changed, as many as possible keep theirs.
 */
import type { ClientBase } from 'pg'
import type { FolderKey } from '../../formats/rows.ts'
import * as sql from './replace.sql.ts'

/**
 * Call it once the loader has filled the tables of `createFiledTables`. @param lines the number of lines in the file
 */
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
 * Replaces all entries of a folder with those of a MAD file, whose entries have ids. These ids are kept. With
 * `renumber`, an entry keeps the id that it has in the ledger instead: it is found there by exercice, journal, date and
 * content, or else by exercice, journal, date and moment of creation.
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

/** Fills a folder that had no entries: all ids are new. */
export async function fillFolder(client: ClientBase): Promise<void> {
  await sql.createMatches(client)
  await sql.addNew(client, 'entry_matches')
  await sql.addNew(client, 'line_matches')
  await sql.insertNew(client)
}

/** Writes the rows that differ. @returns counts of the rows that were written */
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
 * The longest ascending subsequence. If a file has lines in another order than before, these are the most lines that
 * can stay in their places. It needs 12 bytes per value, and time in proportion to n log n.
 * @param values distinct, in the order of the file
 * @returns the indexes of the values in that subsequence, ascending
 */
export function longestAscent(values: Int32Array): Int32Array {
  /** For each length: the index of the lowest value that ends an ascending subsequence of that length. */
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
