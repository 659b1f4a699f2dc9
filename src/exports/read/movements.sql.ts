/**
 * The two COPY statements of an export of movements or entries: one for the selected movements, one for the selected
 * entries, both in the order of the answer.
 *
 * Each may return more than the answer: movements of entries that are not selected, and entries without selected
 * movements. The thread merges the two by entry id and keeps what is in both. So a whole year is read without a join
 * (0.83 s of database time for 600,000 movements; one joined COPY takes 1.14 s). A condition that selects few entries
 * (a month, a source, drafts) is also joined to the movements. A condition that selects few movements (accounts,
 * partial lettering) is also joined to the entries. So the cost is proportional to the answer. A month's entries mostly
 * have adjacent ids, so its movements are one range of the primary key. If the entries are in several exercices,
 * movements are read segment by segment (see entrySegments): one statement would sort them on disk first, which delayed
 * the first byte of a year with 600,000 movements by a second.
 *
 * COPY takes no bind parameters: every value goes through db/literal.ts.
 */
import type pg from 'pg'
import { idArrayLiteral, idLiteral, textLiteral } from '../../db/literal.ts'
import type { fecEntryColumns, fecMovementColumns } from '../../formats/fec/lines/fec-lines.ts'
import type { flatEntryColumns, flatMovementColumns } from '../../formats/flat/movement-rows.ts'
import { entryTable, movementTable } from '../../formats/items/entry.ts'
import { type ColumnOf, columnsOf, type Table } from '../../formats/items/table.ts'
import type { extendedEntryColumns, extendedMovementColumns } from '../../formats/mad/entries.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { traEntryColumns, traMovementColumns } from '../../formats/tra/entry-lines.ts'
import type { DatePeriod, Selection } from '../selection.ts'

/** The SQL expression of each column that a format uses, over movements `m` and entries `e`. */
type MovementColumn = (
  | typeof extendedMovementColumns
  | typeof traMovementColumns
  | typeof fecMovementColumns
  | typeof flatMovementColumns
)[number]
type EntryColumn = (
  | typeof extendedEntryColumns
  | typeof traEntryColumns
  | typeof fecEntryColumns
  | typeof flatEntryColumns
)[number]

/** Fields that a FEC filed. They are stored only where they differ from the values of the entry and of its account. */
const filedFields = (alias: 'e' | 'm') => ({
  filed_piece_date: `${alias}.filed ->> 'PieceDate'`,
  filed_piece_day: `regexp_replace(${alias}.filed ->> 'PieceDate', '^(....)(..)(..)$', '\\1-\\2-\\3')`,
  filed_auxiliary_number: `${alias}.filed ->> 'CompAuxNum'`,
  filed_auxiliary_name: `${alias}.filed ->> 'CompAuxLib'`,
})

/** The columns of a table, as they are stored. */
const asStored = <Of extends Table>(alias: 'e' | 'm', table: Of) =>
  Object.fromEntries(columnsOf(table).map((column) => [column, `${alias}.${column}`])) as Record<
    ColumnOf<Of>,
    string
  >

const movementExpressions: Record<MovementColumn, string> = {
  ...asStored('m', movementTable),
  filed: 'm.filed',
  // A partial lettering shows its code after an asterisk (docs/spec/resources.md#lettering).
  shown_lettering_code:
    "case m.lettering_state when 'partial' then '*' || m.lettering_code else m.lettering_code end",
  ...filedFields('m'),
}

/**
 * Amounts are in euro. If the currency of an entry has no rate, the entry shows euro only: no other amount is known.
 */
export const isForeign = "e.currency <> 'EUR' and e.rate > 0"

const storedEntry = asStored('e', entryTable)

const entryExpressions = (timeZone: string): Record<EntryColumn, string> => ({
  ...storedEntry,
  rate: 'trim_scale(e.rate)',
  foreign_currency: `case when ${isForeign} then e.currency end`,
  foreign_rate: `case when ${isForeign} then trim_scale(e.rate) end`,
  // The members in the order of docs/spec/resources.md#movement; jsonb has its own order.
  partner_metadata: `case when e.partner_metadata is not null then json_build_object(
    'partnerId', e.partner_metadata -> 'partnerId', 'json', e.partner_metadata -> 'json') end`,
  created_epoch: "date_part('epoch', e.created_at)::bigint",
  created_utc: "e.created_at at time zone 'UTC'",
  stored_rate: 'e.rate',
  created_on: `(e.created_at at time zone ${textLiteral(timeZone)})::date`,
  filed: 'e.filed',
  ...filedFields('e'),
})

/** The list after `select`, in the order of the columns. */
export function movementList(columns: readonly MovementColumn[]): string {
  return columns.map((column) => movementExpressions[column]).join(', ')
}

/** @param timeZone decides the day `created_on` */
export function entryList(columns: readonly EntryColumn[], timeZone: string): string {
  const expressions = entryExpressions(timeZone)
  return columns.map((column) => expressions[column]).join(', ')
}

/** The position after which the export continues: that of the last movement that the caller has. It need not exist. */
export interface Position {
  entryId: string
  movementId: string
}

/** A selection, with the results of the thread's look-ups in its snapshot. */
export interface ResolvedSelection {
  selection: Selection
  /** The exercices that can hold selected entries; if absent, any exercice of the folder. */
  exerciceIds?: string[] | undefined
  /** The accounts whose numbers begin with the selected roots; if absent, every account. */
  accountIds?: string[] | undefined
  after?: Position | undefined
  /** The segments of the selected entries, ascending, at least one; absent if no condition selects entries. */
  segments?: EntrySegment[] | undefined
}

/** The resolved selection of a full export, which is not limited by accounts, lettering or a position. */
export function ofFile(selection: Selection): ResolvedSelection {
  const { exerciceId } = selection
  return { selection, exerciceIds: exerciceId === undefined ? undefined : [exerciceId] }
}

/** The columns that a format reads. */
export interface ReadColumns {
  entryColumns: readonly EntryColumn[]
  movementColumns: readonly MovementColumn[]
}

/**
 * The statements for a selection.
 * @param order the column by which both statements order before the ids
 */
export function copySelected(
  resolved: ResolvedSelection,
  { entryColumns, movementColumns }: ReadColumns,
  order?: 'exercice_id',
) {
  return {
    entries: copyEntries(resolved, entryColumns, order),
    movements: copyMovements(resolved, movementColumns, order),
  }
}

/** The statements for movements, to be run one after the other. */
export function copyMovements(
  resolved: ResolvedSelection,
  columns: readonly MovementColumn[],
  order?: 'exercice_id',
): string[] {
  const { selection, after, segments = [undefined] } = resolved
  return segments.map((segment) => {
    const conditions = [
      ...inSegment('m', resolved, segment),
      ...movementConditions(resolved),
      ...movementsAfter(after),
    ]
    const isJoined = segment !== undefined && !segment.dense
    if (isJoined) conditions.push(...inSegment('e', resolved, segment), ...entryConditions(selection))
    return copyOf(
      `select ${movementList(columns)} from movements m ${isJoined ? joinEntries : ''}
       where ${conditions.join(' and ')} order by ${order ? `m.${order}, ` : ''}m.entry_id, m.id`,
    )
  })
}

/** The statement that sends the rows of a select. */
export function copyOf(select: string): string {
  return `copy (${select}) to stdout`
}

export function movementsAfter(after: Position | undefined): string[] {
  if (!after) return []
  return [`(m.entry_id, m.id) > (${idLiteral(after.entryId)}, ${idLiteral(after.movementId)})`]
}

export function entriesAfter(after: Position | undefined): string[] {
  return after ? [`e.id >= ${idLiteral(after.entryId)}`] : []
}

export const joinEntries = `join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
  = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)`

export function copyEntries(
  resolved: ResolvedSelection,
  columns: readonly EntryColumn[],
  order?: 'exercice_id',
): string {
  const { selection, after } = resolved
  const conditions = [...inExercices('e', resolved), ...entryConditions(selection), ...entriesAfter(after)]
  if (picksMovements(resolved)) {
    const picked = [...inExercices('m', resolved), ...movementConditions(resolved)]
    conditions.push(`e.id in (select m.entry_id from movements m where ${picked.join(' and ')})`)
  }
  return copyOf(
    `select ${entryList(columns, selection.timeZone)} from entries e
     where ${conditions.join(' and ')} order by ${order ? `e.${order}, ` : ''}e.id`,
  )
}

/**
 * Counts the movements of the answer exactly. For a whole folder this needs only an index: a fifth of a second for
 * 300,000 movements on one core, less once the table is vacuumed.
 */
export async function countMovements(client: pg.ClientBase, resolved: ResolvedSelection): Promise<number> {
  const entry = entryConditions(resolved.selection)
  const conditions = [...inSegment('m', resolved), ...movementConditions(resolved), ...entry]
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from movements m ${entry.length > 0 ? joinEntries : ''} where ${conditions.join(' and ')}`,
  )
  return Number(rows[0]!.count)
}

/**
 * Whether the selection may have only few of an exercice's movements. Unlettered and completely lettered movements are
 * many.
 */
export function picksMovements({ selection, accountIds }: ResolvedSelection): boolean {
  return accountIds !== undefined || selection.lettering === 'partial'
}

export function inExercices(alias: 'e' | 'm', resolved: ResolvedSelection): string[] {
  const { exerciceIds, segments } = resolved
  const [first] = segments ?? []
  return inSegment(
    alias,
    resolved,
    first && { exerciceIds, least: first.least, greatest: segments!.at(-1)!.greatest },
  )
}

export function inSegment(
  alias: 'e' | 'm',
  { selection, ...resolved }: ResolvedSelection,
  segment?: Pick<EntrySegment, 'least' | 'greatest'> & Pick<ResolvedSelection, 'exerciceIds'>,
): string[] {
  const entryId = alias === 'e' ? 'e.id' : 'm.entry_id'
  const { exerciceIds } = segment ?? resolved
  return [
    ...(segment ? [`${entryId} between ${idLiteral(segment.least)} and ${idLiteral(segment.greatest)}`] : []),
    inFolder(alias, selection),
    ...(exerciceIds ? [inOneOf(`${alias}.exercice_id`, exerciceIds)] : []),
  ]
}

/** @param table its name or alias */
export function inFolder(table: string, { schemaId, folderId }: FolderKey): string {
  return `${table}.schema_id = ${idLiteral(schemaId)} and ${table}.folder_id = ${idLiteral(folderId)}`
}

/** With a single exercice, the index has the order of the answer and nothing is sorted. */
function inOneOf(column: string, ids: string[]): string {
  return ids.length === 1 ? `${column} = ${idLiteral(ids[0]!)}` : `${column} = any (${idArrayLiteral(ids)})`
}

export function movementConditions({ selection, accountIds }: ResolvedSelection): string[] {
  const conditions: string[] = []
  if (accountIds) conditions.push(`m.account_id = any (${idArrayLiteral(accountIds)})`)
  if (selection.lettering) conditions.push(`m.lettering_state = ${textLiteral(selection.lettering)}`)
  return conditions
}

export function entryConditions({ period, source, draft, journalIds, timeZone }: Selection): string[] {
  const conditions: string[] = []
  if (draft !== undefined) conditions.push(`e.validated_at is ${draft ? '' : 'not '}null`)
  if (period) conditions.push(...periodConditions(period, timeZone))
  if (source !== undefined) conditions.push(`e.source = ${textLiteral(source)}`)
  if (journalIds.length > 0) conditions.push(`e.journal_id = any (${idArrayLiteral(journalIds)})`)
  return conditions
}

function periodConditions({ start, end, dateFilter }: DatePeriod, timeZone: string): string[] {
  const from = `${textLiteral(start)}::date`
  const to = `${textLiteral(end)}::date`
  switch (dateFilter) {
    case 'document':
      return [`e.date between ${from} and ${to}`]
    case 'accounting':
      return [`e.accounted_at between ${from} and ${to}`]
    case 'platform': {
      // The bounds, not the column, are converted to the time zone, so that the index on created_at is used. This
      // handles daylight saving time.
      const zone = textLiteral(timeZone)
      return [
        `e.created_at >= ${from}::timestamp at time zone ${zone}`,
        `e.created_at < (${to} + 1)::timestamp at time zone ${zone}`,
      ]
    }
  }
}

/**
 * Finds the span of each exercice that has selected entries. Counting stops once a span has proved sparse, so that it
 * costs no more than the selection itself.
 */
export async function findEntrySpans(client: pg.ClientBase, resolved: ResolvedSelection) {
  const ofFolder = inSegment('e', resolved)
  const selected = [...ofFolder, ...entryConditions(resolved.selection)]
  const { rows } = await client.query<ExerciceSpan>(
    `with spans as (
       select e.exercice_id, min(e.id) as least, max(e.id) as greatest, count(*) as selected
       from entries e where ${selected.join(' and ')} group by e.exercice_id
     )
     select exercice_id as "exerciceId", least, greatest, 2 * selected >= (
       select count(*) from (
         select from entries e
         where ${ofFolder.join(' and ')} and e.exercice_id = spans.exercice_id and e.id between least and greatest
         limit 2 * selected + 1
       ) as spanned
     ) as dense
     from spans`,
  )
  return rows
}

/** Reads the spans of all entries of a folder from both ends of an index: 0.1 ms of the database instead of 0.6. */
export async function readFolderSpans(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<ExerciceSpan>({
    name: 'spans of a folder',
    text: `select x.id as "exerciceId", s.*, true as dense
           from exercices x cross join lateral (
             select min(e.id) as least, max(e.id) as greatest from entries e
             where e.schema_id = $1 and e.folder_id = $2 and e.exercice_id = x.id) s
           where x.schema_id = $1 and x.folder_id = $2 and s.least is not null`,
    values: [schemaId, folderId],
  })
  return rows
}

/** The segments in which entries of several exercices are read in the order of their ids. */

/** The range of ids of an exercice's selected entries. */
export interface ExerciceSpan {
  exerciceId: string
  /** The lowest and the highest selected id. */
  least: string
  greatest: string
  /**
   * Whether at least half of the exercice's entries in this range are selected: then one scan of all movements is
   * faster than look-ups.
   */
  dense: boolean
}

/** Ids from `least` to `greatest`, both inclusive, of entries of these exercices. */
interface EntrySegment extends Omit<ExerciceSpan, 'exerciceId'> {
  exerciceIds: string[]
}

/**
 * An answer has entries by id; the database has them by exercice, then by id. So the ids are cut where an exercice
 * begins or ends. Nearly all segments have one exercice: there the key gives the order and nothing is sorted (a sort
 * takes 1.5 s and the disk for 300,000 movements). Only segments in which the ids of two exercices interleave, as
 * around the end of a year, are sorted.
 */
export function entrySegments(spans: ExerciceSpan[]): EntrySegment[] {
  const cuts = spans.flatMap(({ least, greatest }) => [BigInt(least), BigInt(greatest) + 1n])
  const sorted = [...new Set(cuts)].sort((a, b) => (a < b ? -1 : 1))
  return sorted.slice(1).flatMap((end, i) => {
    const least = sorted[i]!
    const inside = spans.filter((span) => BigInt(span.least) <= least && BigInt(span.greatest) >= end - 1n)
    if (inside.length === 0) return []
    return {
      exerciceIds: inside.map(({ exerciceId }) => exerciceId),
      least: String(least),
      greatest: String(end - 1n),
      dense: inside.every(({ dense }) => dense),
    }
  })
}
