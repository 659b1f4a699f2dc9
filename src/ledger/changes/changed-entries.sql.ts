/** Finds the entries that have changed according to the log (docs/spec/changes.md#the-log). */

import type pg from 'pg'
import { idArrayLiteral, idLiteral, textLiteral } from '../../db/literal.ts'
import { queryRows, queryWithout } from '../../db/statement.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { type EntryRange, everyEntry, readMultirange } from './entry-ranges.ts'

/** The kinds of rows that entries show and that the log names by their own ids. */
type Shown = 'accounts' | 'journals' | 'payments' | 'axes' | 'sections' | 'third_parties'

/** The entries to examine. */
export interface WatchedEntries extends FolderKey {
  /** The exercices in which to look for entries that show a changed account, journal or the like. */
  exerciceIds: string[]
  /**
   * Further conditions on these entries `e`. They may name only columns of entries, so that only a logged change can
   * alter their outcome.
   */
  among: string[]
}

/** If at most this many entries show a changed row, their share of the selection is not checked. */
const fewRows = 2000

/**
 * Ranges that contain every entry that has changed since a version of the ledger. Entries that the log names are
 * included in any exercice, since they may have left the selected one. Entries that show a changed row, such as an
 * account, are looked up in the selected exercices. If these are more than about a tenth of the exercices, the result
 * is the single range of all entries, because looking for them costs more than it saves.
 *
 * The client must see one state of the database, so that the log and the entries belong together.
 * @param version no later than that state, and not forgotten
 */
export async function readChangedEntries(client: pg.ClientBase, watched: WatchedEntries, version: string) {
  const rows = await queryRows<{ kind: Shown | 'entries'; ids: string }>(client, {
    name: 'changes of a ledger',
    text: `select kind, range_agg(ids)::text as ids from ledger_changes
           where schema_id = $1 and folder_id = $2 and version > $3 and kind <> 'forgotten' group by kind`,
    values: [watched.schemaId, watched.folderId, version],
  })
  const entries = rows.find(({ kind }) => kind === 'entries')?.ids ?? '{}'
  const shown = rows.flatMap(({ kind, ids }) =>
    kind === 'entries' ? [] : `(${showing[kind](multirange(ids), watched)})`,
  )
  if (shown.length === 0) return readMultirange(entries)
  const few = await expanded(client, entries, shown, String(fewRows))
  if (few) return few
  // Movements of an entry are counted one by one, so a fifth of the entries are about a tenth of what they show.
  const many = `(select count(*) / 5 from ${ofExercices('e', 'true', watched)} ${where(watched.among)})`
  return (await expanded(client, entries, shown, many)) ?? everyEntry
}

/**
 * The ranges, joined with the entries that the selects find.
 * @param most an expression: the most rows that the selects may find; if they find more, the result is undefined
 */
async function expanded(
  client: pg.ClientBase,
  entries: string,
  shown: string[],
  most: string,
): Promise<EntryRange[] | undefined> {
  const [found] = await queryWithout<{ ids: string | null; isMore: boolean }>(
    client,
    ['seqscan'],
    `with most as materialized (select greatest(${fewRows}, ${most}) as rows), found as materialized (
       select id from (${shown.join(' union all ')}) shown (id) limit (select rows + 1 from most)
     ), counted as materialized (select count(*) > (select rows from most) as "isMore" from found)
     select "isMore", case when not "isMore" then (
       select range_agg(r)::text from (
         select unnest(${multirange(entries)}) union all select int8range(id, id + 1) from found
       ) changed (r)
     ) end as ids
     from counted`,
  )
  return found!.isMore ? undefined : readMultirange(found!.ids ?? '')
}

const multirange = (text: string): string => `${textLiteral(text)}::int8multirange`

/**
 * Selects the ids of the entries that show one of these accounts, journals or the like, by a multirange of their ids.
 * Accounts and third parties have an index. For the others, all entries or movements of the exercices are read.
 */
const showing: Record<Shown, (ids: string, watched: WatchedEntries) => string> = {
  accounts: (ids, watched) =>
    ofMovements(
      'm.account_id = a.id',
      watched,
      `(select a.id from accounts a where ${inFolder('a', watched)} and a.id::bigint <@ ${ids}) a cross join`,
    ),
  payments: (ids, watched) => ofMovements(`m.payment_id::bigint <@ ${ids}`, watched),
  // Shares are triples of section, amount and rate.
  sections: (ids, watched) =>
    ofMovements(
      `exists (select from unnest(m.shares) with ordinality s (value, place) where place % 3 = 1 and value <@ ${ids})`,
      watched,
    ),
  axes: (ids, watched) =>
    showing.sections(
      `(select coalesce(range_agg(int8range(id, id + 1)), '{}') from sections
         where ${inFolder('sections', watched)} and axis_id::bigint <@ ${ids})`,
      watched,
    ),
  journals: (ids, watched) => `select e.id from ${ofExercices('e', `e.journal_id::bigint <@ ${ids}`, watched)}
    ${where(watched.among)}`,
  third_parties: (ids, watched) =>
    `select e.id
     from unnest(${ids}) sender cross join lateral (
       select e.* from entries e
       where e.third_party_id >= lower(sender) and e.third_party_id < upper(sender) and ${inFolder('e', watched)} offset 0
     ) e ${where([`e.exercice_id = any (${idArrayLiteral(watched.exerciceIds)})`, ...watched.among])}`,
}

/** @param beside a source of rows that the condition needs in addition to the movements `m` */
function ofMovements(condition: string, watched: WatchedEntries, beside = ''): string {
  const { among } = watched
  const joined = `join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
    = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)`
  return `select m.entry_id as id from ${beside} ${ofExercices('m', condition, watched)}
    ${among.length === 0 ? '' : joined} ${where(among)}`
}

/**
 * Selects entries or movements of the exercices. `offset 0` makes PostgreSQL plan this subquery without regard to the
 * limit of the query around it. Otherwise a scan in the order of another column would look cheap, because the planner
 * takes the rows of an exercice to be spread over the folder.
 */
function ofExercices(alias: 'e' | 'm', condition: string, watched: WatchedEntries): string {
  return `unnest(${idArrayLiteral(watched.exerciceIds)}) exercice cross join lateral (
    select ${alias}.* from ${alias === 'e' ? 'entries' : 'movements'} ${alias}
    where ${inFolder(alias, watched)} and ${alias}.exercice_id = exercice and ${condition} offset 0
  ) ${alias}`
}

function inFolder(alias: string, { schemaId, folderId }: FolderKey): string {
  return `${alias}.schema_id = ${idLiteral(schemaId)} and ${alias}.folder_id = ${idLiteral(folderId)}`
}

function where(conditions: string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}
