/**
 * The measured year, as queried in the other ways. All but the floor return the same movements in the same order: the
 * validated ones of one exercice.
 */

import { idLiteral, textLiteral } from '../../src/db/literal.ts'
import {
  copyEntries,
  copyMovements,
  entryList,
  movementList,
  ofFile,
} from '../../src/exports/read/movements.sql.ts'
import { wholeFolder } from '../../src/exports/selection.ts'
import { journalTypeLabels } from '../../src/formats/items/journal.ts'
import { paymentMode } from '../../src/formats/items/payment.ts'
import { entryColumns } from '../../src/formats/mad/entry.ts'
import { movementColumns } from '../../src/formats/mad/movement.ts'
import type { YearOfFolder } from '../dataset.ts'

/** A movement has the id of its entry. */
const besideItsId = entryColumns.filter((column) => column !== 'id')

/** The two statements with which the service reads this year: movements, also those of drafts, and entries. */
export function copyStreams({ schemaId, folderId, exerciceId }: YearOfFolder): string[] {
  const selection = { ...wholeFolder({ schemaId, folderId }, 'UTC'), exerciceId, draft: false }
  const resolved = ofFile(selection)
  return [...copyMovements(resolved, movementColumns), copyEntries(resolved, entryColumns)]
}

/**
 * The same in one statement, without drafts: movements with the columns of their entries, and ids in place of what both
 * refer to.
 */
export function copyJoined(year: YearOfFolder): string {
  return `copy (
    select ${movementList(movementColumns)}, ${entryList(besideItsId, 'UTC')}
    from movements m ${joinEntries}
    where ${inYear(year)}
    order by m.entry_id, m.id
  ) to stdout`
}

/**
 * A row with everything that a movement shows except the names of sections: shares are an array of section
 * ids.
 */
export function selectJoined(year: YearOfFolder): string {
  return `
    select m.id, m.description, m.due_date::text as "dueDate", m.free_number as "freeNumber",
      m.invoice_number as "invoiceNumber", m.debit, m.credit, m.attachments, m.shares,
      m.lettering_state as "letteringState",
      case m.lettering_state when 'partial' then '*' || m.lettering_code else m.lettering_code end as "letteringCode",
      e.id as "entryId", e.date::text, e.due_date::text as "entryDueDate", e.currency,
      trim_scale(e.rate) as rate, e.source, e.partner_metadata as "partnerMetadata", e.comment,
      date_part('epoch', e.created_at) as "createdAt", e.accounted_at::text as "accountedAt",
      e.attachments as "entryAttachments",
      j.id as "journalId", j.code as "journalCode", j.name as "journalName", j.type as "journalType",
      a.id as "accountId", a.number as "accountNumber", a.name as "accountName",
      p.id as "paymentId", p.code as "paymentCode", t.name as "thirdPartyName", t.code as "thirdPartyCode"
    from movements m ${joinEntries} ${joinDimensions}
    where ${inYear(year)}
    order by m.entry_id, m.id`
}

export function selectSections({ schemaId, folderId }: YearOfFolder): string {
  return `
    select n.id, n.code, n.name, x.id as "axisId", x.code as "axisCode", x.name as "axisName"
    from sections n join axes x on (x.schema_id, x.folder_id, x.id) = (n.schema_id, n.folder_id, n.axis_id)
    where n.schema_id = ${idLiteral(schemaId)} and n.folder_id = ${idLiteral(folderId)}`
}

/**
 * One movement per line, as JSON after a comma. CSV with a quote and a separator that JSON never contains is
 * JSON unchanged; the text format would double its backslashes. Amounts are divided as doubles, the fastest
 * way: exact for as many digits as JavaScript reads.
 */
export function copyJson(year: YearOfFolder): string {
  return `copy (
    select ',' || json_build_object(
      'producerId', m.id::text,
      'description', m.description,
      'dueDate', m.due_date,
      'freeNumber', m.free_number,
      'invoiceNumber', m.invoice_number,
      'value', json_build_object('credit', m.credit / 100::float8, 'debit', m.debit / 100::float8,
        'amount', (m.credit - m.debit) / 100::float8),
      'entry', ${entryJson},
      'attachments', ${attachmentsJson('m')},
      'account', json_build_object('producerId', a.id::text, 'number', a.number, 'name', a.name),
      'payment', case when p.id is not null then
        json_build_object('producerId', p.id::text, 'name', mode.name, 'code', mode.shown) end,
      'analytics', ${analyticsJson},
      'lettering', json_build_object('state', m.lettering_state, 'value',
        case m.lettering_state when 'partial' then '*' || m.lettering_code else m.lettering_code end)
    )
    from movements m ${joinEntries} ${joinDimensions}
    left join (values ${journalLabels()}) label (type, label) on label.type = j.type
    left join (values ${paymentModes()}) mode (code, name, shown) on mode.code = p.code
    where ${inYear(year)}
    order by m.entry_id, m.id
  ) to stdout (format csv, quote e'\\x01', delimiter e'\\x02')`
}

const joinEntries = `join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
      = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)`

const joinDimensions = `
    join journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
    join accounts a on (a.schema_id, a.folder_id, a.id) = (m.schema_id, m.folder_id, m.account_id)
    left join payments p on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
    left join third_parties t on t.id = e.third_party_id`

function inYear({ schemaId, folderId, exerciceId }: YearOfFolder): string {
  return `m.schema_id = ${idLiteral(schemaId)} and m.folder_id = ${idLiteral(folderId)}
      and m.exercice_id = ${idLiteral(exerciceId)} and e.validated_at is not null`
}

const entryJson = `json_build_object(
        'producerId', e.id::text,
        'date', e.date,
        'dueDate', e.due_date,
        'currency', case when e.rate is null then json_build_object('code', e.currency)
          else json_build_object('code', e.currency, 'rate', trim_scale(e.rate)) end,
        'journal', json_build_object('producerId', j.id::text, 'customerReferenceCode', j.code, 'name', j.name,
          'type', label.label),
        'additionalProducerProperties', json_build_object(
          'source', json_build_object('name', e.source, 'thirdParty',
            case when t.id is not null then json_build_object('name', t.name, 'code', t.code) end),
          'partnerMetadata', case when e.partner_metadata is not null then json_build_object(
            'partnerId', e.partner_metadata -> 'partnerId', 'json', e.partner_metadata -> 'json') end,
          'comment', e.comment,
          'createdAt', date_part('epoch', e.created_at)::bigint,
          'accountedAt', e.accounted_at),
        'attachments', ${attachmentsJson('e')})`

function attachmentsJson(alias: 'e' | 'm'): string {
  return `case when ${alias}.attachments is null then '{}' else (
        select json_object_agg(key, json_build_object('type', 'URL', 'value', value))
        from jsonb_each_text(${alias}.attachments)) end`
}

const analyticsJson = `case when m.shares is null then '[]' else (
        select json_agg(json_build_object('producerId', x.id::text, 'code', x.code, 'name', x.name,
          'sections', shared.sections) order by shared.place)
        from (
          select n.axis_id, min(i) as place, json_agg(json_build_object('producerId', n.id::text,
            'amount', m.shares[i + 1] / 100::float8, 'rate', m.shares[i + 2] / 10000::float8,
            'code', n.code, 'name', n.name) order by i) as sections
          from generate_series(1, array_length(m.shares, 1), 3) i
          join sections n on (n.schema_id, n.folder_id, n.id) = (m.schema_id, m.folder_id, m.shares[i])
          group by n.axis_id
        ) shared
        join axes x on (x.schema_id, x.folder_id, x.id) = (m.schema_id, m.folder_id, shared.axis_id)) end`

function journalLabels(): string {
  return Object.entries(journalTypeLabels)
    .map(([type, label]) => `(${textLiteral(type)}, ${textLiteral(label)})`)
    .join(', ')
}

function paymentModes(): string {
  return ['CB', 'VIRT', 'ESP', 'CHQ', 'PRLV', 'LCR']
    .map((internal) => {
      const { name, code } = paymentMode(internal)
      return `(${textLiteral(internal)}, ${textLiteral(name)}, ${textLiteral(code)})`
    })
    .join(', ')
}
