/**
 * Statements of a TRA file: what is selected, and the two COPY of entries and movements, both in ascending entry id. The
 * movements may be more than the file's: the merge drops those whose entry is not among the entries (see
 * movements.sql.ts, whose ways of reading few or many these share).
 */

import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import type { SimplifiedAccount } from '../../formats/collection-rows.ts'
import type { FolderKey } from '../../formats/rows.ts'
import {
  type TraEntryColumn,
  type TraMovementColumn,
  traEntryColumns,
  traMovementColumns,
} from '../../formats/tra/entry-lines.ts'
import { picksEntries, type TraSelection } from '../tra-selection.ts'
import { findSpans } from './entry-segments.sql.ts'
import type { EntrySegment, ExerciceSpan } from './entry-segments.ts'

const movementExpressions: Record<TraMovementColumn, string> = {
  entry_id: 'm.entry_id',
  account_id: 'm.account_id',
  debit: 'm.debit',
  credit: 'm.credit',
  description: 'm.description',
  due_date: 'm.due_date',
  free_number: 'm.free_number',
  invoice_number: 'm.invoice_number',
  payment_id: 'm.payment_id',
  shares: 'm.shares',
  lettering_state: 'm.lettering_state',
  lettering_code: 'm.lettering_code',
}

/** Amounts are in euro. An entry whose currency has no rate is shown in them alone, as nothing else is known of it. */
const isForeign = "e.currency <> 'EUR' and e.rate > 0"

const entryExpressions = (timeZone: string): Record<TraEntryColumn, string> => ({
  id: 'e.id',
  exercice_id: 'e.exercice_id',
  journal_id: 'e.journal_id',
  date: 'e.date',
  due_date: 'e.due_date',
  currency: `case when ${isForeign} then e.currency end`,
  rate: `case when ${isForeign} then trim_scale(e.rate) end`,
  created_on: `(e.created_at at time zone ${textLiteral(timeZone)})::date`,
  validated_at: 'e.validated_at',
})

const joinEntries = `join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
    = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)`

export function copyTraEntries(selection: TraSelection, segment: EntrySegment, timeZone: string): string {
  const expressions = entryExpressions(timeZone)
  const conditions = [...inSegment('e', selection, segment), ...entryConditions(selection)]
  return `copy (
    select ${traEntryColumns.map((column) => expressions[column]).join(', ')}
    from entries e
    where ${conditions.join(' and ')}
    order by e.id
  ) to stdout`
}

export function copyTraMovements(selection: TraSelection, segment: EntrySegment): string {
  const isJoined = picksEntries(selection) && !segment.dense
  const conditions = inSegment('m', selection, segment)
  if (isJoined) conditions.push(...inSegment('e', selection, segment), ...entryConditions(selection))
  return `copy (
    select ${traMovementColumns.map((column) => movementExpressions[column]).join(', ')}
    from movements m ${isJoined ? joinEntries : ''}
    where ${conditions.join(' and ')}
    order by m.entry_id, m.id
  ) to stdout`
}

function inSegment(alias: 'e' | 'm', selection: TraSelection, segment: EntrySegment): string[] {
  const { exerciceIds, least, greatest } = segment
  const entryId = alias === 'e' ? 'e.id' : 'm.entry_id'
  return [
    ...inFolder(alias, selection),
    // With a single exercice the index gives the order of the file, and nothing is sorted.
    exerciceIds.length === 1
      ? `${alias}.exercice_id = ${idLiteral(exerciceIds[0]!)}`
      : `${alias}.exercice_id = any (${idArray(exerciceIds)})`,
    `${entryId} between ${idLiteral(least)} and ${idLiteral(greatest)}`,
  ]
}

function inFolder(alias: 'e' | 'm', { schemaId, folderId }: FolderKey): string[] {
  return [`${alias}.schema_id = ${idLiteral(schemaId)}`, `${alias}.folder_id = ${idLiteral(folderId)}`]
}

function entryConditions({ exerciceId, period, journalIds }: TraSelection): string[] {
  return [
    ...(exerciceId === undefined ? [] : [`e.exercice_id = ${idLiteral(exerciceId)}`]),
    ...(period ? [`e.date between ${textLiteral(period.start)} and ${textLiteral(period.end)}`] : []),
    ...(journalIds.length > 0 ? [`e.journal_id = any (${idArray(journalIds)})`] : []),
  ]
}

function idArray(ids: string[]): string {
  return `'{${ids.map(idLiteral).join(',')}}'::bigint[]`
}

/** Of each exercice that has selected entries. */
export function findEntrySpans(client: pg.ClientBase, selection: TraSelection): Promise<ExerciceSpan[]> {
  return findSpans(client, inFolder('e', selection), entryConditions(selection))
}

/** Movements of the file, exactly. */
export async function countTraMovements(client: pg.ClientBase, selection: TraSelection): Promise<number> {
  const { exerciceId } = selection
  const conditions = inFolder('m', selection)
  if (exerciceId !== undefined) conditions.push(`m.exercice_id = ${idLiteral(exerciceId)}`)
  // Without entries to pick, from an index alone.
  const isJoined = picksEntries(selection)
  if (isJoined) conditions.push(...entryConditions(selection))
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from movements m ${isJoined ? joinEntries : ''} where ${conditions.join(' and ')}`,
  )
  return Number(rows[0]!.count)
}

export interface ForeignCurrency {
  code: string
  /** What one unit costs in euro, decimal text, as the last of the selected entries has it. */
  rate: string
}

/** Other currencies than the euro among the selected entries. */
export async function findForeignCurrencies(
  client: pg.ClientBase,
  selection: TraSelection,
): Promise<ForeignCurrency[]> {
  const conditions = [...inFolder('e', selection), ...entryConditions(selection), isForeign]
  const { rows } = await client.query<ForeignCurrency>(
    `select distinct on (e.currency) e.currency as code, trim_scale(e.rate)::text as rate
     from entries e where ${conditions.join(' and ')}
     order by e.currency, e.date desc, e.id desc`,
  )
  return rows
}

/**
 * All lettering codes of the accounts where some cannot be copied into a TRA file as COPY writes them: too long, no plain
 * text, in lower case, which may make two codes one, or with a backslash, which COPY doubles. Of all exercices, so that
 * every file of the folder has the same.
 */
export async function findOddLetterings(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<{ accountId: string; codes: string[] }[]> {
  const { rows } = await client.query<{ accountId: string; codes: string[] }>(
    `select m.account_id as "accountId", array_agg(distinct m.lettering_code) as codes
     from movements m
     where m.schema_id = $1 and m.folder_id = $2 and m.lettering_state <> 'none' and m.account_id in (
       select account_id from movements
       where schema_id = $1 and folder_id = $2 and lettering_state <> 'none'
         and (lettering_code !~ '^[!-\`{-~]{1,4}$' or strpos(lettering_code, '\\') > 0)
     )
     group by m.account_id`,
    [schemaId, folderId],
  )
  return rows
}

/** In what the books are kept, and by whom; undefined where the folder is not there. */
export async function readKeeping(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<{ currency: string; firmName: string } | undefined> {
  const { rows } = await client.query<{ currency: string; firmName: string }>(
    `select f.currency, firm.name as "firmName"
     from folders f join firms firm on (firm.schema_id, firm.id) = (f.schema_id, f.firm_id)
     where f.schema_id = $1 and f.id = $2`,
    [schemaId, folderId],
  )
  return rows[0]
}

export interface AccountNumber {
  id: string
  number: string
  name: string
}

export async function readAccountNumbers(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<AccountNumber[]> {
  const { rows } = await client.query<AccountNumber>(
    'select id, number, name from accounts where schema_id = $1 and folder_id = $2 order by id',
    [schemaId, folderId],
  )
  return rows
}

/** Accounts that others name as theirs. */
export async function readCorrespondenceAccounts(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<SimplifiedAccount[]> {
  const { rows } = await client.query<SimplifiedAccount>(
    `select id as "producerId", number, name from accounts
     where schema_id = $1 and folder_id = $2 and id in (
       select correspondance_account_id from accounts where schema_id = $1 and folder_id = $2
     )
     order by id`,
    [schemaId, folderId],
  )
  return rows
}

export interface VatCode {
  id: string
  code: string
  /** Hundredths of a percent. */
  rate: number
}

export async function readVatCodes(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<VatCode[]> {
  const { rows } = await client.query<VatCode>(
    'select id, code, rate from vat_codes where schema_id = $1 and folder_id = $2 order by id',
    [schemaId, folderId],
  )
  return rows
}
