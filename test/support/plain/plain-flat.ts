/**
 * The rows of a flat file as PostgreSQL prints them, by one ordinary query of the owner that shares nothing with the
 * code it checks. Each field is text or null.
 */
import type pg from 'pg'
import { movementTables, shareTables } from './plain-movement.ts'

/** In the order of the file, and written once more: the contract with those who read these files. */
export const flatNames =
  'entry_id entry_date entry_due_date accounted_at created_at validated_at draft exercice_id journal_id journal_code journal_name journal_type source currency currency_rate entry_comment ecriture_num piece_date movement_id account_id account_number account_name auxiliary_number auxiliary_name description due_date free_number invoice_number debit credit payment_code lettering_state lettering_code analytics attachments payment_id third_party_code third_party_name partner_metadata'.split(
    ' ',
  )

const exact = (text: string): unknown => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text)

interface Share {
  axis: string
  section: string
  amount: string
  rate: string
}

const filed = (name: string) => `coalesce(m.filed ->> '${name}', e.filed ->> '${name}')`

/** @param where SQL about m (movements) and e (entries) */
export async function readPlainFlat(
  owner: pg.ClientBase | pg.Pool,
  folder: { schemaId: string; folderId: string },
  where = 'true',
): Promise<(string | null)[][]> {
  const { rows } = await owner.query(
    `select e.id as entry_id, e.date::text as entry_date, e.due_date::text as entry_due_date, e.accounted_at::text,
       replace((e.created_at at time zone 'UTC')::text, ' ', 'T') || 'Z' as created_at, e.validated_at::text,
       (e.validated_at is null)::text as draft, e.exercice_id, j.id as journal_id, j.code as journal_code,
       j.name as journal_name, j.type as journal_type, e.source, e.currency, trim_scale(e.rate)::text as currency_rate,
       e.comment as entry_comment, e.number as ecriture_num,
       case when ${filed('PieceDate')} is null then e.date else to_date(nullif(${filed('PieceDate')}, ''), 'YYYYMMDD') end::text
         as piece_date,
       m.id as movement_id, a.id as account_id, a.number as account_number, a.name as account_name,
       nullif(coalesce(${filed('CompAuxNum')}, a.auxiliary_number), '') as auxiliary_number,
       nullif(coalesce(${filed('CompAuxLib')}, a.auxiliary_name), '') as auxiliary_name,
       m.description, m.due_date::text, m.free_number, m.invoice_number,
       trim_scale(m.debit::numeric * 0.01)::text as debit, trim_scale(m.credit::numeric * 0.01)::text as credit,
       case p.code when 'VIRT' then 'VIR' when 'PRLV' then 'PRE' when 'CB' then 'CB' when 'ESP' then 'ESP' when 'LCR' then
         'LCR' else case when p.code is not null then 'CHQ' end end as payment_code,
       m.lettering_state, m.lettering_code,
       (select json_agg(json_build_object('axis', x.code, 'section', s.code,
                 'amount', trim_scale(m.shares[i + 1]::numeric * 0.01)::text,
                 'rate', trim_scale(m.shares[i + 2]::numeric * 0.0001)::text) order by i)
        ${shareTables}) as shares,
       e.attachments as of_entry, m.attachments as of_movement, m.payment_id,
       t.code as third_party_code, t.name as third_party_name,
       e.partner_metadata ->> 'partnerId' as partner_id, e.partner_metadata -> 'json' as partner_json
     ${movementTables}
     where m.schema_id = $1 and m.folder_id = $2 and (${where})
     order by m.entry_id, m.id`,
    [folder.schemaId, folder.folderId],
  )
  return rows.map((row) => {
    const analytics = (row.shares as Share[] | null)?.map(({ axis, section, amount, rate }) => {
      return { axis_code: axis, section_code: section, amount: exact(amount), rate: exact(rate) }
    })
    const attachments = { entry: row.of_entry ?? undefined, movement: row.of_movement ?? undefined }
    const metadata = { partnerId: row.partner_id, json: row.partner_json }
    const written: Record<string, string | null> = {
      ...row,
      analytics: analytics ? JSON.stringify(analytics) : null,
      attachments: row.of_entry || row.of_movement ? JSON.stringify(attachments) : null,
      partner_metadata: row.partner_id === null ? null : JSON.stringify(metadata),
    }
    return flatNames.map((name) => written[name] ?? null)
  })
}
