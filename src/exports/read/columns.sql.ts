/** What each column that a format asks for is read from: of movements `m`, of entries `e`. */
import { textLiteral } from '../../db/literal.ts'
import type { wholeEntryColumns } from '../../formats/mad/entry.ts'
import type { movementColumns } from '../../formats/mad/movement.ts'
import type { traEntryColumns, traMovementColumns } from '../../formats/tra/entry-lines.ts'

export type MovementColumn = (typeof movementColumns | typeof traMovementColumns)[number]
export type EntryColumn = (typeof wholeEntryColumns | typeof traEntryColumns)[number]

const movementExpressions: Record<MovementColumn, string> = {
  entry_id: 'm.entry_id',
  id: 'm.id',
  description: 'm.description',
  due_date: 'm.due_date',
  free_number: 'm.free_number',
  invoice_number: 'm.invoice_number',
  debit: 'm.debit',
  credit: 'm.credit',
  attachments: 'm.attachments',
  account_id: 'm.account_id',
  payment_id: 'm.payment_id',
  shares: 'm.shares',
  lettering_state: 'm.lettering_state',
  lettering_code: 'm.lettering_code',
  // A partial lettering shows its code behind a star (contract, section 4).
  shown_lettering_code:
    "case m.lettering_state when 'partial' then '*' || m.lettering_code else m.lettering_code end",
}

/** Amounts are in euro. An entry whose currency has no rate is shown in them alone, as nothing else is known of it. */
export const isForeign = "e.currency <> 'EUR' and e.rate > 0"

const entryExpressions = (timeZone: string): Record<EntryColumn, string> => ({
  id: 'e.id',
  exercice_id: 'e.exercice_id',
  date: 'e.date',
  due_date: 'e.due_date',
  currency: 'e.currency',
  rate: 'trim_scale(e.rate)',
  foreign_currency: `case when ${isForeign} then e.currency end`,
  foreign_rate: `case when ${isForeign} then trim_scale(e.rate) end`,
  journal_id: 'e.journal_id',
  source: 'e.source',
  third_party_id: 'e.third_party_id',
  // Its members in the order of the contract; jsonb has its own.
  partner_metadata: `case when e.partner_metadata is not null then json_build_object(
    'partnerId', e.partner_metadata -> 'partnerId', 'json', e.partner_metadata -> 'json') end`,
  comment: 'e.comment',
  created_epoch: "date_part('epoch', e.created_at)::bigint",
  created_on: `(e.created_at at time zone ${textLiteral(timeZone)})::date`,
  accounted_at: 'e.accounted_at',
  attachments: 'e.attachments',
  validated_at: 'e.validated_at',
})

/** For `select`, in the order of the columns. */
export function movementList(columns: readonly MovementColumn[]): string {
  return columns.map((column) => movementExpressions[column]).join(', ')
}

/** @param timeZone whose days `created_on` is one of */
export function entryList(columns: readonly EntryColumn[], timeZone: string): string {
  const expressions = entryExpressions(timeZone)
  return columns.map((column) => expressions[column]).join(', ')
}
