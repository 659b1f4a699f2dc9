/**
 * Movements as plain objects, from one ordinary query of the owner, printed by JSON.stringify: what an export
 * must match byte for byte. Slow, and shares nothing with the code it checks. Numbers that must be exact stay
 * the text that PostgreSQL prints.
 */
import type pg from 'pg'

/** `JSON.rawJSON`: a number that is printed verbatim. */
interface ExactJson {
  rawJSON(text: string): unknown
}
export const exact = (text: string): unknown => (JSON as unknown as ExactJson).rawJSON(text)

const journalTypes: Record<string, string> = {
  ACH: 'Achat',
  VTE: 'Vente',
  BQ: 'Banque',
  CAISSE: 'Caisse',
  A_EXT: 'À extourner',
  EXT: 'Extourne',
  AN: 'À Nouveaux',
  NFD: 'Note de Frais',
  RBAL: 'Reprise Balance',
  OD: 'OD',
  OD_AUDIT: 'OD Audit',
  OD_PAIE: 'OD Paie',
  OD_LET: 'OD Lettrage',
  OD_DECL_FISCALE: 'OD TVA',
  OD_EXC: 'OD Extracomptable',
}

const paymentModes: Record<string, [name: string, code: string]> = {
  CB: ['Carte Bleue', 'CB'],
  VIRT: ['Virement', 'VIR'],
  ESP: ['Espèce', 'ESP'],
  CHQ: ['Chèque', 'CHQ'],
  PRLV: ['Prélèvement', 'PRE'],
  LCR: ['Lettre de change', 'LCR'],
}

export interface PlainMovement {
  producerId: string
  entry: { producerId: string; [field: string]: unknown }
  [field: string]: unknown
}

interface Share {
  axis: { id: string; code: string; name: string }
  section: { id: string; code: string; name: string }
  amount: string
  rate: string
}

/** A movement m with the rows that it refers to. */
export const movementTables = `from grandlivre.movements m
  join grandlivre.entries e on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
  join grandlivre.journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
  join grandlivre.accounts a on (a.schema_id, a.folder_id, a.id) = (m.schema_id, m.folder_id, m.account_id)
  left join grandlivre.payments p on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
  left join grandlivre.third_parties t on t.id = e.third_party_id`

/** Each share of a movement m, from element i on, with its section and axis. */
export const shareTables = `from generate_series(1, array_length(m.shares, 1), 3) as i
  join grandlivre.sections s on (s.schema_id, s.folder_id, s.id) = (m.schema_id, m.folder_id, m.shares[i])
  join grandlivre.axes x on (x.schema_id, x.folder_id, x.id) = (s.schema_id, s.folder_id, s.axis_id)`

/**
 * In the order of an export.
 * @param where SQL about m (movements), e (entries), a (accounts), with `$3` and so on for `values`
 */
export async function readPlainMovements(
  owner: pg.ClientBase | pg.Pool,
  folder: { schemaId: string; folderId: string },
  where = 'true',
  values: unknown[] = [],
): Promise<PlainMovement[]> {
  const { rows } = await owner.query(
    `select m.id, m.description, m.due_date::text, m.free_number, m.invoice_number,
       trim_scale(m.credit::numeric * 0.01)::text as credit, trim_scale(m.debit::numeric * 0.01)::text as debit,
       trim_scale((m.credit::numeric - m.debit::numeric) * 0.01)::text as amount,
       e.id as entry_id, e.date::text, e.due_date::text as entry_due_date, e.currency, trim_scale(e.rate)::text as rate,
       j.id as journal_id, j.code as journal_code, j.name as journal_name, j.type as journal_type, e.source,
       t.name as third_party_name, t.code as third_party_code, e.partner_metadata, e.comment,
       extract(epoch from e.created_at)::bigint::text as created_at, e.accounted_at::text,
       e.attachments as entry_attachments, m.attachments,
       a.id as account_id, a.number as account_number, a.name as account_name,
       p.id as payment_id, p.code as payment_code, m.lettering_state, m.lettering_code,
       (select json_agg(json_build_object('amount', trim_scale(m.shares[i + 1]::numeric * 0.01)::text,
                 'rate', trim_scale(m.shares[i + 2]::numeric * 0.0001)::text,
                 'section', json_build_object('id', s.id::text, 'code', s.code, 'name', s.name),
                 'axis', json_build_object('id', x.id::text, 'code', x.code, 'name', x.name)) order by i)
        ${shareTables}) as shares
     ${movementTables}
     where m.schema_id = $1 and m.folder_id = $2 and (${where})
     order by m.entry_id, m.id`,
    [folder.schemaId, folder.folderId, ...values],
  )
  return rows.map(plainMovement)
}

// biome-ignore lint/suspicious/noExplicitAny: a row of the query above
function plainMovement(row: any): PlainMovement {
  const { partner_metadata: metadata } = row
  const [paymentName, paymentCode] = paymentModes[row.payment_code] ?? paymentModes['CHQ']!
  const star = row.lettering_state === 'partial' ? '*' : ''
  return {
    producerId: row.id,
    description: row.description,
    dueDate: row.due_date,
    freeNumber: row.free_number,
    invoiceNumber: row.invoice_number,
    value: { credit: exact(row.credit), debit: exact(row.debit), amount: exact(row.amount) },
    entry: {
      producerId: row.entry_id,
      date: row.date,
      dueDate: row.entry_due_date,
      currency: { code: row.currency, ...(row.rate === null ? {} : { rate: exact(row.rate) }) },
      journal: {
        producerId: row.journal_id,
        customerReferenceCode: row.journal_code,
        name: row.journal_name,
        type: journalTypes[row.journal_type],
      },
      additionalProducerProperties: {
        source: {
          name: row.source,
          thirdParty:
            row.third_party_code === null ? null : { name: row.third_party_name, code: row.third_party_code },
        },
        partnerMetadata: metadata === null ? null : { partnerId: metadata.partnerId, json: metadata.json },
        comment: row.comment,
        createdAt: exact(row.created_at),
        accountedAt: row.accounted_at,
      },
      attachments: files(row.entry_attachments),
    },
    attachments: files(row.attachments),
    account: { producerId: row.account_id, number: row.account_number, name: row.account_name },
    payment:
      row.payment_id === null ? null : { producerId: row.payment_id, name: paymentName, code: paymentCode },
    analytics: axesOf(row.shares ?? []),
    lettering: {
      state: row.lettering_state,
      value: row.lettering_code === null ? null : star + row.lettering_code,
    },
  }
}

export function files(addresses: Record<string, string> | null): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(addresses ?? {}).map(([name, value]) => [name, { type: 'URL', value }]),
  )
}

function axesOf(shares: Share[]): unknown[] {
  const axes: { producerId: string; code: string; name: string; sections: unknown[] }[] = []
  for (const { axis, section, amount, rate } of shares) {
    if (axes.at(-1)?.producerId !== axis.id)
      axes.push({ producerId: axis.id, code: axis.code, name: axis.name, sections: [] })
    const { id, code, name } = section
    axes.at(-1)!.sections.push({ producerId: id, amount: exact(amount), rate: exact(rate), code, name })
  }
  return axes
}

/** The body of an export of these movements. */
export function plainBody(movements: PlainMovement[], form: 'json' | 'ndjson'): string {
  if (form === 'json') return JSON.stringify(movements)
  return movements.map((movement) => `${JSON.stringify(movement)}\n`).join('')
}
