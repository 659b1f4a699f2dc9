/**
 * The statements of a replacement by difference (see replace.ts). They use temporary tables that live until the
 * transaction ends, in the session's own schema, pg_temp:
 *
 * - filed_entries, filed_movements: the file, as the loader writes it. Ids are those of the file, or count its entries
 *   and lines from 1.
 * - former_lines, filed_lines: the content of each movement of the ledger and of the file, as a digest.
 * - former_entries, filed_contents: the values that may identify each entry, and the digest of its lines.
 * - entry_matches, line_matches: for each entry and line of the file, its id in the ledger. `former` is the place that
 *   a line had and keeps, `place` a place that it gets.
 */

import type { ClientBase } from 'pg'
import { readByCursor } from '../../db/cursor.ts'
import { idLiteral } from '../../db/literal.ts'
import { queryCount, queryRow } from '../../db/statement.ts'
import { entryTable, movementTable } from '../../formats/items/entry.ts'
import { columnsOf } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { analyzeWhileLoading } from '../load.ts'

/** The entries to replace: those of an exercice, or those of the whole folder. */
export interface Replaced extends FolderKey {
  exerciceId: string | null
}

export type RowCounts = Record<'entries' | 'movements', number>

const entryColumns = [...columnsOf(entryTable), 'filed']
const movementColumns = [...columnsOf(movementTable), 'filed']

const keys = ['schema_id', 'folder_id', 'exercice_id', 'entry_id', 'id']
/** The columns that the file may change in entries and movements that stay. */
const entryContent = entryColumns.filter((column) => !keys.includes(column))
/** The columns that decide whether two lines are equal: all except those that only a FEC files. */
const lineContent = columnsOf(movementTable).filter((column) => !keys.includes(column))
const movementContent = [...lineContent, 'filed']

/** Creates the tables that the loader fills. */
export async function createFiledTables(client: ClientBase): Promise<void> {
  for (const table of ['entries', 'movements'])
    await client.query(
      `create temporary table filed_${table} (like grandlivre.${table}, primary key (id)) on commit drop`,
    )
}

const content = (line: string) =>
  `md5(row(${lineContent.map((column) => `${line}.${column}`).join(', ')})::text)::uuid`

/** An SQL expression for a digest of a line's account and amounts, without its texts. */
const booking = (line: string) => `md5(row(${line}.account_id, ${line}.debit, ${line}.credit)::text)::uuid`

/** An SQL condition: whether a row is among those to be replaced. */
const ofReplaced = (alias: string, { schemaId, folderId, exerciceId }: Replaced) =>
  `(${alias}.schema_id, ${alias}.folder_id) = (${idLiteral(schemaId)}, ${idLiteral(folderId)})
     ${exerciceId === null ? '' : `and ${alias}.exercice_id = ${idLiteral(exerciceId)}`}`

/** Creates the tables of matches. Call it once the loader has filled its tables. */
export async function createMatches(client: ClientBase): Promise<void> {
  await client.query(`create temporary table entry_matches (filed_id bigint primary key, id bigint, is_new boolean)
    on commit drop;
    create temporary table line_matches (filed_id bigint primary key, entry_id bigint, id bigint, is_new boolean,
      former numeric, place numeric) on commit drop;
    analyze pg_temp.filed_entries, pg_temp.filed_movements`)
}

/** Computes the digests of both sides, by line and by entry. */
export async function digestBoth(client: ClientBase, replaced: Replaced): Promise<void> {
  const create = (table: string, rows: string) =>
    client.query(`create temporary table ${table} on commit drop as ${rows}`)
  const digests = `${content('m')} as content, ${booking('m')} as booking`
  await create(
    'former_lines',
    `select m.entry_id, m.id, coalesce(m.place, m.id) as place, ${digests}
     from grandlivre.movements m where ${ofReplaced('m', replaced)}`,
  )
  await create(
    'filed_lines',
    `select m.entry_id, m.id, m.id::numeric as place, ${digests} from pg_temp.filed_movements m`,
  )
  const identity = `e.id, e.exercice_id, e.journal_id, e.date, e.created_at, ${filedNumber} as number, ${contentOfLines}`
  await create(
    'former_entries',
    `select ${identity}, e.number is null and e.filed is null as is_bare
     from grandlivre.entries e left join pg_temp.former_lines l on l.entry_id = e.id
     where ${ofReplaced('e', replaced)} group by e.schema_id, e.folder_id, e.id`,
  )
  await create(
    'filed_contents',
    `select ${identity} from pg_temp.filed_entries e left join pg_temp.filed_lines l on l.entry_id = e.id group by e.id`,
  )
  await client.query(
    'analyze pg_temp.former_lines, pg_temp.filed_lines, pg_temp.former_entries, pg_temp.filed_contents',
  )
}

/**
 * The number as filed. An entry that was filed without a number may have got one from the ledger, which does not count.
 */
const filedNumber = `coalesce(e.filed ->> 'EcritureNum', e.number, '')`
const contentOfLines = `md5(coalesce(string_agg(l.content::text, '' order by l.content), ''))::uuid as content,
  min(l.place) as place`

/**
 * Matches entries of the file with entries of the ledger if these columns are equal and neither has a match yet. If
 * several are equal, the first is matched with the first, and so on.
 */
export async function matchEntries(
  client: ClientBase,
  columns: readonly ('exercice_id' | 'journal_id' | 'date' | 'created_at' | 'number' | 'content')[],
  among: 'numbered' | 'bare' | 'all',
): Promise<void> {
  const keys = columns.join(', ')
  const copies = (table: string, id: string, condition: string) =>
    `(select id, ${keys}, row_number() over (partition by ${keys} order by place, id) as copy from pg_temp.${table} t
      where ${condition} and not exists (select from pg_temp.entry_matches m where m.${id} = t.id))`
  const numbered = among === 'numbered' ? `number !~ '^0*$'` : 'true'
  await client.query(
    `insert into pg_temp.entry_matches
     select n.id, f.id, false from ${copies('filed_contents', 'filed_id', numbered)} n
     join ${copies('former_entries', 'id', among === 'bare' ? 'is_bare' : numbered)} f using (${keys}, copy)`,
  )
}

/** The rows of the file that are matched: an entry; and a line, with the id that its entry has in the ledger. */
const filedRows = {
  entry_matches: { columns: 'filed_id', rows: 'select id as filed_id from pg_temp.filed_entries' },
  line_matches: {
    columns: 'filed_id, entry_id',
    rows: `select l.id as filed_id, e.id as entry_id
      from pg_temp.filed_movements l join pg_temp.entry_matches e on e.filed_id = l.entry_id`,
  },
}

/** Gives new ids, ascending (see IdSource), to entries or lines of the file that have no match. */
export async function addNew(client: ClientBase, matches: keyof typeof filedRows): Promise<void> {
  const { columns, rows } = filedRows[matches]
  await client.query(
    `with fresh as materialized (
       select *, row_number() over (order by filed_id) - 1 as rank from (${rows}) r
       where not exists (select from pg_temp.${matches} m where m.filed_id = r.filed_id)
     ), blocks as materialized (
       select rank - 1 as rank, first from grandlivre.draw_several('grandlivre.ids',
         (select (count(*) + 999) / 1000 from fresh)) with ordinality as s (first, rank))
     insert into pg_temp.${matches} (${columns}, id, is_new)
     select ${columns}, b.first + f.rank % 1000, true from fresh f join blocks b on b.rank = f.rank / 1000`,
  )
  await client.query(`analyze pg_temp.${matches}`)
}

/**
 * Matches lines of matched entries: first equal lines, in their order, then lines with the same account and amounts.
 */
export async function matchLines(client: ClientBase): Promise<void> {
  for (const key of ['content', 'booking']) {
    const copies = (table: string, id: string) =>
      `(select *, row_number() over (partition by entry_id, ${key} order by place) as copy from pg_temp.${table} t
        where not exists (select from pg_temp.line_matches m where m.${id} = t.id))`
    await client.query(
      `insert into pg_temp.line_matches
       select n.id, f.entry_id, f.id, false, f.place
       from ${copies('filed_lines', 'filed_id')} n
       join pg_temp.entry_matches e on e.filed_id = n.entry_id and not e.is_new
       join ${copies('former_lines', 'id')} f on (f.entry_id, f.${key}, f.copy) = (e.id, n.${key}, n.copy)`,
    )
    await client.query('analyze pg_temp.line_matches')
  }
}

/**
 * Matches entries and lines that keep the ids of the file. A row that moved to another exercice, journal or entry
 * counts as new.
 */
export async function matchById(client: ClientBase, replaced: Replaced): Promise<void> {
  await client.query(
    `insert into pg_temp.entry_matches
     select f.id, f.id, e.id is null from pg_temp.filed_entries f left join grandlivre.entries e
       on ${ofReplaced('e', replaced)} and (e.exercice_id, e.journal_id, e.id) = (f.exercice_id, f.journal_id, f.id)`,
  )
  await client.query('analyze pg_temp.entry_matches')
  await client.query(
    `insert into pg_temp.line_matches
     select f.id, f.entry_id, f.id, m.id is null, coalesce(m.place, m.id)
     from pg_temp.filed_movements f join pg_temp.entry_matches e on e.filed_id = f.entry_id
     left join grandlivre.movements m on not e.is_new and ${ofReplaced('m', replaced)}
       and (m.exercice_id, m.entry_id, m.id) = (f.exercice_id, f.entry_id, f.id)`,
  )
  await client.query('analyze pg_temp.line_matches')
}

/** Keeps the fields that a FEC filed for entries and lines that the file does not change. A changed row loses them. */
export async function keepFiled(client: ClientBase, replaced: Replaced): Promise<void> {
  const same = entryContent.filter((column) => !['number', 'filed'].includes(column))
  await client.query(
    `create temporary table same_entries (filed_id bigint primary key, filed json) on commit drop`,
  )
  await client.query(
    `insert into pg_temp.same_entries
     select f.id, e.filed from pg_temp.entry_matches m
     join pg_temp.former_entries b on b.id = m.id
     join pg_temp.filed_contents c on (c.id, c.content) = (m.filed_id, b.content)
     join pg_temp.filed_entries f on f.id = m.filed_id
     join grandlivre.entries e on ${ofReplaced('e', replaced)} and e.id = m.id
     where not m.is_new and (${comparable(same.map((column) => `e.${column}`))})
       is not distinct from (${comparable(same.map((column) => `f.${column}`))})`,
  )
  await client.query(
    `update pg_temp.filed_entries f set filed = s.filed from pg_temp.same_entries s
     where s.filed_id = f.id and s.filed is not null`,
  )
  await client.query(
    `update pg_temp.filed_movements f set filed = m.filed
     from pg_temp.same_entries s, pg_temp.line_matches l, pg_temp.former_lines b, pg_temp.filed_lines c,
       grandlivre.movements m
     where s.filed_id = f.entry_id and l.filed_id = f.id and b.id = l.id and c.id = f.id and c.content = b.content
       and ${ofReplaced('m', replaced)} and m.id = l.id and m.filed is not null`,
  )
}

/** Whether some lines that stay are in another order in the file than before. */
export async function areLinesMoved(client: ClientBase): Promise<boolean> {
  return hasRows(
    client,
    `select former, lag(former) over (order by filed_id) as before from pg_temp.line_matches where not is_new`,
    'former < before',
  )
}

async function hasRows(client: ClientBase, rows: string, condition: string): Promise<boolean> {
  return (await queryCount(client, `select from (${rows}) l where ${condition} limit 1`)) > 0
}

/** The lines that stay, in the order of the file, each with its rank in the former order. */
export function readFormerRanks(client: ClientBase): AsyncGenerator<{ filedId: string; rank: string }[]> {
  return readByCursor(
    client,
    `select filed_id as "filedId", rank() over (order by former) as rank from pg_temp.line_matches
     where not is_new order by filed_id`,
    [],
    10_000,
  )
}

/** Marks the lines that have to move. */
export async function moveLines(client: ClientBase, filedIds: readonly number[]): Promise<void> {
  await client.query('update pg_temp.line_matches set former = null where filed_id = any ($1::bigint[])', [
    filedIds,
  ])
}

/**
 * Gives places to lines that were inserted or moved: between lines that stay, at equal distances. New lines after all
 * others need no place, as their ids are higher.
 */
export async function placeLines(client: ClientBase): Promise<void> {
  // Only window functions are used: PostgreSQL could not estimate a join with their results.
  await client.query(
    `with lines as (
       select filed_id, is_new, former, count(former) over upwards as anchor,
              max(former) over upwards as before, min(former) over downwards as after
       from pg_temp.line_matches
       window upwards as (order by filed_id), downwards as (order by filed_id desc)
     ), gaps as (
       select filed_id, former, before, after,
              row_number() over (partition by anchor, former is null order by filed_id) as rank,
              count(*) filter (where former is null) over gap as size,
              bool_and(is_new or former is not null) over gap as is_new
       from lines window gap as (partition by anchor)
     )
     update pg_temp.line_matches l
     set place = trim_scale(coalesce(g.before, g.after - 1)
           + (coalesce(g.after, g.before + 1) - coalesce(g.before, g.after - 1)) * g.rank / (g.size + 1))
     from gaps g
     where g.filed_id = l.filed_id and g.former is null and not (g.is_new and g.after is null)`,
  )
}

/**
 * Counts the former entries that did not come from a FEC, before they are changed or deleted: `overwritten` are those
 * that match an entry of the file, `removed` the others.
 */
export async function countOtherSources(client: ClientBase, replaced: Replaced) {
  const text = `select count(m.id)::integer as overwritten, count(*) filter (where m.id is null)::integer as removed
     from grandlivre.entries e left join pg_temp.entry_matches m on m.id = e.id
     where ${ofReplaced('e', replaced)} and e.source <> 'FEC'`
  return (await queryRow<{ overwritten: number; removed: number }>(client, text))!
}

/** @returns how many entries and movements were deleted */
export async function deleteUnmatched(client: ClientBase, replaced: Replaced) {
  const deleted = (table: string, matches: string) => {
    const text = `delete from grandlivre.${table} t where ${ofReplaced('t', replaced)}
      and not exists (select from pg_temp.${matches} m where m.id = t.id and not m.is_new)`
    return queryCount(client, text)
  }
  // Movements first: the cascade would delete them entry by entry.
  const movements = await deleted('movements', 'line_matches')
  return { movements, entries: await deleted('entries', 'entry_matches') }
}

/** Casts columns to text if their type has no equality, or an equality that takes 1.0 for 1. */
const comparable = (values: string[]) =>
  values
    .map((value) => (/\.(filed|attachments|partner_metadata)$/.test(value) ? `${value}::text` : value))
    .join(', ')

/**
 * Updates the entries and movements that stay but differ in the file.
 * @returns how many were updated
 */
export async function updateMatched(client: ClientBase, replaced: Replaced) {
  // A number that the ledger gave to an entry stays.
  const filed = (column: string) => (column === 'number' ? 'coalesce(f.number, e.number)' : `f.${column}`)
  // A FEC does not tell when entries were created.
  const changeable = entryContent.filter((column) => replaced.exerciceId === null || column !== 'created_at')
  const changedEntries = await client.query(
    `update grandlivre.entries e set ${changeable.map((column) => `${column} = ${filed(column)}`).join(', ')}
     from pg_temp.entry_matches m join pg_temp.filed_entries f on f.id = m.filed_id
     where ${ofReplaced('e', replaced)} and m.id = e.id and not m.is_new
       and (${comparable(changeable.map((column) => `e.${column}`))})
         is distinct from (${comparable(changeable.map(filed))})`,
  )
  const place = 'case when l.former is null then l.place else m.place end'
  const sides = (line: string, places: string) =>
    comparable([...movementContent.map((column) => `${line}.${column}`), places])
  const changedMovements = await client.query(
    `update grandlivre.movements m
     set ${movementContent.map((column) => `${column} = f.${column}`).join(', ')}, place = ${place}
     from pg_temp.line_matches l join pg_temp.filed_movements f on f.id = l.filed_id
     where ${ofReplaced('m', replaced)} and l.id = m.id and not l.is_new
       and (${sides('m', 'm.place')}) is distinct from (${sides('f', place)})`,
  )
  return { entries: changedEntries.rowCount!, movements: changedMovements.rowCount! }
}

/** The number of rows per statement. Foreign keys and the ledger version are checked at the end of each statement. */
const batchRows = 10_000

/** @returns how many entries and movements were inserted */
export async function insertNew(client: ClientBase): Promise<RowCounts> {
  const inserted = async (
    table: 'entries' | 'movements',
    matches: string,
    columns: string[],
    own: string[],
  ) => {
    const values = columns.map((column) => `${own.includes(column) ? 'b' : 'f'}.${column}`)
    for (let last = '0', count = 0; ; ) {
      const text = `with batch as materialized (
           select * from pg_temp.${matches} where is_new and filed_id > $1 order by filed_id limit ${batchRows}
         ), inserted as (
           insert into grandlivre.${table} (${columns.join(', ')})
           select ${values.join(', ')} from batch b join pg_temp.filed_${table} f on f.id = b.filed_id order by b.filed_id
         )
         select max(filed_id) as last, count(*)::integer as count from batch`
      const batch = (await queryRow<{ last: string; count: number }>(client, text, [last]))!
      count += batch.count
      if (batch.count < batchRows) return count
      last = batch.last
    }
  }
  const newEntries = await inserted('entries', 'entry_matches', entryColumns, ['id'])
  if (newEntries > 0) await analyzeWhileLoading(client)
  const own = ['id', 'entry_id', 'place']
  return {
    entries: newEntries,
    movements: await inserted('movements', 'line_matches', [...movementColumns, 'place'], own),
  }
}

/** Whether the order by entry id and movement id differs from the order of the file. */
export async function isScattered(client: ClientBase): Promise<boolean> {
  return hasRows(
    client,
    `select entry_id, id, lag(entry_id) over file as entry_before, lag(id) over file as before
     from pg_temp.line_matches window file as (order by filed_id)`,
    '(entry_id, id) < (entry_before, before)',
  )
}
