/** The SQL expression of each column that a format uses: from movements `m` and entries `e`. */
import { textLiteral } from '../../db/literal.ts'
import type { fecEntryColumns, fecMovementColumns } from '../../formats/fec/lines/fec-lines.ts'
import type { flatEntryColumns, flatMovementColumns } from '../../formats/flat/movement-rows.ts'
import { entryTable } from '../../formats/items/entry.ts'
import { movementTable } from '../../formats/items/movement.ts'
import { type ColumnOf, columnsOf, type Table } from '../../formats/items/table.ts'
import type { extendedEntryColumns, extendedMovementColumns } from '../../formats/mad/filed.ts'
import type { traEntryColumns, traMovementColumns } from '../../formats/tra/entry-lines.ts'

export type MovementColumn = (
  | typeof extendedMovementColumns
  | typeof traMovementColumns
  | typeof fecMovementColumns
  | typeof flatMovementColumns
)[number]
export type EntryColumn = (
  | typeof extendedEntryColumns
  | typeof traEntryColumns
  | typeof fecEntryColumns
  | typeof flatEntryColumns
)[number]

/** Fields of a FEC, kept where they differ from what the entry and its account say. */
const filedFields = (alias: 'e' | 'm') => ({
  filed_piece_date: `${alias}.filed ->> 'PieceDate'`,
  filed_piece_day: `regexp_replace(${alias}.filed ->> 'PieceDate', '^(....)(..)(..)$', '\\1-\\2-\\3')`,
  filed_auxiliary_number: `${alias}.filed ->> 'CompAuxNum'`,
  filed_auxiliary_name: `${alias}.filed ->> 'CompAuxLib'`,
})

/** The columns of a table as they are. */
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

const entryExpressions = (timeZone: string): Record<EntryColumn, string> => ({
  ...asStored('e', entryTable),
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

/** @param timeZone the time zone of the day `created_on` */
export function entryList(columns: readonly EntryColumn[], timeZone: string): string {
  const expressions = entryExpressions(timeZone)
  return columns.map((column) => expressions[column]).join(', ')
}
