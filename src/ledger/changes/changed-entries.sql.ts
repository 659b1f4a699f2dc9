/** Which entries the log says have changed (docs/spec/changes.md#the-log). */
import type pg from 'pg'
import { idArrayLiteral, idLiteral, textLiteral } from '../../db/literal.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { type EntryRange, readMultirange } from './entry-ranges.ts'

/** The entries whose change matters. */
export interface WatchedEntries extends FolderKey {
  /** The exercices in which entries are looked up that show a changed account, journal or the like. */
  exerciceIds: string[]
  /** Further conditions on these entries `e`, on columns of entries alone: only a logged change can alter their outcome. */
  among: string[]
}

/**
 * Ranges that contain every entry that has changed since a version of the ledger: those that the log names, in any
 * exercice, since they may have left the selected one; and those that show what it names otherwise.
 *
 * The client sees one state of the database, so that the log and the entries belong together.
 * @param version no later than that state, and not forgotten
 */
export async function readChangedEntries(
  client: pg.ClientBase,
  watched: WatchedEntries,
  version: string,
): Promise<EntryRange[]> {
  const { rows } = await client.query<{ kind: keyof typeof showing | 'entries'; ids: string }>({
    name: 'changes of a ledger',
    text: `select kind, range_agg(ids)::text as ids from ledger_changes
           where schema_id = $1 and folder_id = $2 and version > $3 and kind <> 'forgotten' group by kind`,
    values: [watched.schemaId, watched.folderId, version],
  })
  const changed = Object.fromEntries(rows.map(({ kind, ids }) => [kind, ids]))
  const { entries = '{}', ...shown } = changed
  if (Object.keys(shown).length === 0) return readMultirange(entries)
  const expanded = await client.query<{ ids: string }>(
    `select range_agg(r)::text as ids from (${[
      `select unnest(${multirange(entries)}) as r`,
      ...Object.entries(shown).map(
        ([kind, ids]) =>
          `select int8range(id, id + 1) from (${showing[kind as keyof typeof showing](multirange(ids), watched)}) ${kind}`,
      ),
    ].join(' union all ')}) changed`,
  )
  return readMultirange(expanded.rows[0]?.ids ?? '')
}

const multirange = (text: string): string => `${textLiteral(text)}::int8multirange`

/**
 * The ids of the entries that show what the multirange names. Accounts and third parties have an index. The others are
 * looked for in all entries or movements of the exercices.
 */
const showing = {
  accounts: (ids: string, watched: WatchedEntries) =>
    `select m.entry_id as id
     from accounts a cross join lateral (
       select m.* from movements m where ${inExercices('m', watched)} and m.account_id = a.id offset 0
     ) m ${joinEntries(watched)}
     where ${inFolder('a', watched)} and a.id::bigint <@ ${ids}`,
  payments: (ids: string, watched: WatchedEntries) => ofMovements(`m.payment_id::bigint <@ ${ids}`, watched),
  // Shares are section, amount and rate, by threes.
  sections: (ids: string, watched: WatchedEntries) =>
    ofMovements(
      `exists (select from unnest(m.shares) with ordinality s (value, place) where place % 3 = 1 and value <@ ${ids})`,
      watched,
    ),
  axes: (ids: string, watched: WatchedEntries) =>
    showing.sections(
      `(select coalesce(range_agg(int8range(id, id + 1)), '{}') from sections
         where ${inFolder('sections', watched)} and axis_id::bigint <@ ${ids})`,
      watched,
    ),
  journals: (ids: string, watched: WatchedEntries) =>
    `select e.id from entries e where ${conditions(watched)} and e.journal_id::bigint <@ ${ids}`,
  third_parties: (ids: string, watched: WatchedEntries) =>
    `select e.id
     from unnest(${ids}) sender cross join lateral (
       select e.* from entries e
       where e.third_party_id >= lower(sender) and e.third_party_id < upper(sender) and ${inFolder('e', watched)} offset 0
     ) e where ${conditions(watched)}`,
}

function ofMovements(condition: string, watched: WatchedEntries): string {
  return `select m.entry_id as id from movements m ${joinEntries(watched)}
    where ${inExercices('m', watched)} and ${condition}`
}

function joinEntries({ among }: WatchedEntries): string {
  if (among.length === 0) return ''
  return `join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
    = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id) and ${among.join(' and ')}`
}

function conditions(watched: WatchedEntries): string {
  return [inExercices('e', watched), ...watched.among].join(' and ')
}

function inExercices(alias: string, watched: WatchedEntries): string {
  return `${inFolder(alias, watched)} and ${alias}.exercice_id = any (${idArrayLiteral(watched.exerciceIds)})`
}

function inFolder(alias: string, { schemaId, folderId }: FolderKey): string {
  return `${alias}.schema_id = ${idLiteral(schemaId)} and ${alias}.folder_id = ${idLiteral(folderId)}`
}
