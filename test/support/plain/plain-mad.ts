/**
 * The items of a full export as PostgreSQL produces them, by ordinary queries of the owner that share nothing
 * with the code they check. Numbers that must be exact stay the text that PostgreSQL prints.
 */
import type pg from 'pg'
import { exact, files, readPlainMovements } from './plain-movement.ts'

const simplified = (
  id: string,
) => `(select json_build_object('producerId', o.id::text, 'number', o.number, 'name', o.name)
  from grandlivre.accounts o where o.schema_id = $1 and o.folder_id = $2 and o.id = ${id})`

const paymentCode = `case p.code when 'CB' then 'CB' when 'VIRT' then 'VIR' when 'ESP' then 'ESP' when 'PRLV' then 'PRE'
  when 'LCR' then 'LCR' else 'CHQ' end`

const payment = (id: string) => `(select json_build_object('producerId', p.id::text, 'code', ${paymentCode})
  from grandlivre.payments p where p.schema_id = $1 and p.folder_id = $2 and p.id = ${id})`

const address = (row: string) => {
  const fullName = `case when ${row}.number <> '' and ${row}.street_type <> '' and ${row}.street_name <> '' then
    concat_ws(' ', ${row}.number, nullif(${row}.locating_index, ''), ${row}.street_type, ${row}.street_name) end`
  return `json_build_object('addressNumber', ${row}.number, 'addressComplement', ${row}.complement,
    'postalCode', ${row}.postal_code, 'streetName', ${row}.street_name, 'streetType', ${row}.street_type,
    'locatingIndex', ${row}.locating_index, 'fullName', ${fullName}, 'fullname', ${fullName},
    'city', ${row}.city, 'country', ${row}.country)`
}

const contacts = (row: string) => `(select coalesce(json_agg(json_build_object('firstname', t->'firstname',
    'lastname', t->'lastname', 'phoneNumber', t->'phoneNumber', 'role', t->'role', 'email', t->'email') order by n), '[]')
  from jsonb_array_elements(${row}.contacts) with ordinality as u(t, n))`

const miscellaneous = (row: string) => `'referent', ${row}.miscellaneous->'referent',
  'language', ${row}.miscellaneous->'language', 'group', ${row}.miscellaneous->'group',
  'archived', coalesce(${row}.miscellaneous->'archived', 'false')`

const company = `json_build_object('name', coalesce(c.name, a.name), 'SIREN', c.siren, 'CEO', c.ceo,
  'payment', ${payment('c.payment_id')},
  'address', case when c.address is null then null else ${address('(c.address)')} end,
  'ape', case when num_nonnulls(c.ape_producer_id, c.ape_code, c.ape_name) > 0 then
    json_build_object('producerId', c.ape_producer_id, 'code', c.ape_code, 'name', c.ape_name) end,
  'vat', (select json_build_object('producerId', v.id::text, 'customerReferenceCode', v.code,
      'rate', trim_scale(v.rate / 100.0))
    from grandlivre.vat_codes v where v.schema_id = $1 and v.folder_id = $2 and v.id = c.vat_id),
  'IBANs', coalesce(c.ibans, '{}'), 'contacts', ${contacts('c')},
  'miscellaneous', case when c.miscellaneous is null then null else json_build_object(${miscellaneous('c')}) end)`

const employee = `json_build_object('firstName', e.first_name, 'lastName', e.last_name, 'email', e.email,
  'phoneNumber', e.phone_number, 'phoneNumberBis', e.phone_number_bis, 'NIR', e.nir, 'profession', e.profession,
  'payment', ${payment('e.payment_id')},
  'address', case when e.address is null then null else ${address('(e.address)')} end,
  'IBANs', coalesce(e.ibans, '{}'), 'contacts', ${contacts('e')},
  'miscellaneous', case when num_nonnulls(e.miscellaneous, e.doubtful_account_id) > 0 then
    json_build_object(${miscellaneous('e')}, 'doubtfulAccount', ${simplified('e.doubtful_account_id')}) end)`

const accountHead = `'producerId', a.id::text, 'number', a.number, 'name', a.name, 'closed', a.closed`

/** Queries by collection; each row has one column, `item`. */
const queries: Record<string, string> = {
  accountingFolder: `select json_build_object('name', f.name, 'reference', f.reference,
      'address', ${address('(f.address)')}, 'contact', json_build_object('firstName', f.contact_first_name,
        'lastName', f.contact_last_name, 'phoneNumber', f.contact_phone_number,
        'mobilePhoneNumber', f.contact_mobile_phone_number, 'mail', f.contact_mail),
      'RCS', json_build_object('producerId', f.rcs_producer_id, 'name', f.rcs_name), 'SIRET', f.siret,
      'capital', trim_scale(f.capital / 100.0)) as item
    from grandlivre.folders f where f.schema_id = $1 and f.id = $2`,
  payments: `select json_build_object('producerId', p.id::text, 'name', case p.code when 'CB' then 'Carte Bleue'
        when 'VIRT' then 'Virement' when 'ESP' then 'Espèce' when 'PRLV' then 'Prélèvement'
        when 'LCR' then 'Lettre de change' else 'Chèque' end, 'code', ${paymentCode}, 'additionalProducerProperties',
      json_build_object('code', case when p.code in ('CB', 'VIRT', 'ESP', 'PRLV', 'LCR') then p.code else 'CHQ' end)) as item
    from grandlivre.payments p where p.schema_id = $1 and p.folder_id = $2 order by p.id`,
  banks: `select json_build_object('producerId', b.id::text, 'RIB', b.rib, 'IBAN', b.iban, 'BIC', b.bic,
      'account', ${simplified('b.account_id')}, 'journal', (select json_build_object('producerId', j.id::text,
          'name', j.name, 'type', 'BANQUE', 'customerReferenceCode', j.code)
        from grandlivre.journals j where j.schema_id = $1 and j.folder_id = $2 and j.id = b.journal_id),
      'additionalProducerProperties', json_build_object('isDefault', b.is_default)) as item
    from grandlivre.banks b where b.schema_id = $1 and b.folder_id = $2 order by b.id`,
  journals: `select json_build_object('producerId', j.id::text, 'name', j.name, 'customerReferenceCode', j.code,
      'type', (array['Achat', 'Vente', 'Banque', 'Caisse', 'À extourner', 'Extourne', 'À Nouveaux', 'Note de Frais',
        'Reprise Balance', 'OD', 'OD Audit', 'OD Paie', 'OD Lettrage', 'OD TVA', 'OD Extracomptable'])[array_position(
        array['ACH', 'VTE', 'BQ', 'CAISSE', 'A_EXT', 'EXT', 'AN', 'NFD', 'RBAL', 'OD', 'OD_AUDIT', 'OD_PAIE', 'OD_LET',
        'OD_DECL_FISCALE', 'OD_EXC'], j.type)], 'counterpartAccount', ${simplified('j.counterpart_account_id')},
      'additionalProducerProperties', json_build_object('type', j.type, 'locked', j.locked)) as item
    from grandlivre.journals j where j.schema_id = $1 and j.folder_id = $2 order by j.id`,
  accounts: `select case left(a.number, 3)
      when '421' then json_build_object(${accountHead}, 'employee', ${employee})
      when '401' then json_build_object(${accountHead},
        'counterpartAccount', ${simplified('a.counterpart_account_id')}, 'company', ${company})
      when '411' then json_build_object(${accountHead},
        'counterpartAccount', ${simplified('a.counterpart_account_id')}, 'company', ${company})
      else json_build_object(${accountHead}, 'counterpartAccount', ${simplified('a.counterpart_account_id')},
        'correspondanceAccount', ${simplified('a.correspondance_account_id')}) end as item
    from grandlivre.accounts a
    left join grandlivre.companies c on c.schema_id = $1 and c.folder_id = $2 and c.account_id = a.id
    left join grandlivre.employees e on e.schema_id = $1 and e.folder_id = $2 and e.account_id = a.id
    where a.schema_id = $1 and a.folder_id = $2 order by a.id`,
  // Names of years have their own tests; here each counts from the latest year that has begun.
  exercices: `select json_build_object('producerId', x.id::text,
      'name', 'N' || case when d = 0 then '' else to_char(d, 'SG9') end,
      'period', json_build_object('start', x.start_date, 'end', x.end_date,
        'duration', extract(year from age(x.end_date + 1, x.start_date)) * 12
                  + extract(month from age(x.end_date + 1, x.start_date)),
        'closed', case when x.closed_at is not null then json_build_object('at', (x.closed_at at time zone 'Europe/Paris')::date,
          'by', json_build_object('producerId', x.closed_by_id::text, 'firstName', x.closed_by_first_name,
            'lastName', x.closed_by_last_name)) end),
      'state', case when x.closed_at is null then 'open' else 'closed' end,
      'additionalProducerProperties', json_build_object('lettering', x.lettering)) as item
    from (select *, row_number() over (order by start_date)
        - count(*) filter (where start_date <= $3) over () as d
      from grandlivre.exercices where schema_id = $1 and folder_id = $2) x
    order by x.start_date`,
  analytics: `select json_build_object('producerId', x.id::text, 'code', x.code, 'name', x.name, 'sections',
      (select coalesce(json_agg(json_build_object('producerId', s.id::text, 'code', s.code, 'name', s.name,
          'account', nullif(array_to_string(s.account_roots, ';'), ''),
          'additionalProducerProperties', json_build_object('closed', s.closed)) order by s.id), '[]')
        from grandlivre.sections s where s.schema_id = $1 and s.folder_id = $2 and s.axis_id = x.id),
      'additionalProducerProperties', json_build_object('defaultSectionId', x.default_section_id::text)) as item
    from grandlivre.axes x where x.schema_id = $1 and x.folder_id = $2 order by x.id`,
}

/** Those of a MAD file, in its order. */
export const madCollectionNames = Object.keys(queries)

/** They have a route alone. */
const vats = `select json_build_object('producerId', v.id::text, 'customerReferenceCode', v.code,
      'rate', trim_scale(v.rate / 100.0), 'account', json_build_object('deductible', null, 'collected', null),
      'type', null, 'exigibility', null,
      'additionalProducerProperties', json_build_object('typeCode', null, 'exigibilityCode', null)) as item
    from grandlivre.vat_codes v where v.schema_id = $1 and v.folder_id = $2 order by v.id`
export const collectionNames = [...madCollectionNames, 'accountingFirm', 'vats']
export const isSingle = (name: string) => name === 'accountingFolder' || name === 'accountingFirm'

/** @param today `YYYY-MM-DD`, in a folder whose years neither overlap nor leave gaps */
export async function readPlainCollection(
  owner: pg.ClientBase | pg.Pool,
  folder: { schemaId: string; folderId: string },
  name: string,
  today: string,
): Promise<unknown[]> {
  const query = name === 'vats' ? vats : queries[name]!
  const values = [folder.schemaId, folder.folderId, ...(query.includes('$3') ? [today] : [])]
  const { rows } = await owner.query<{ item: unknown }>(query, values)
  return rows.map(({ item }) => item)
}

/**
 * Entries with their movements.
 * @param where SQL about e (entries), with `$3` and so on for `values`
 */
export async function readPlainEntries(
  owner: pg.ClientBase | pg.Pool,
  folder: { schemaId: string; folderId: string },
  where = 'true',
): Promise<{ producerId: string; movements: unknown[] }[]> {
  const movements = Object.groupBy(
    await readPlainMovements(owner, folder, where),
    (movement) => movement.entry.producerId,
  )
  const { rows } = await owner.query(
    `select e.id, e.attachments, e.date::text, e.due_date::text, e.currency, trim_scale(e.rate)::text as rate,
       (select json_build_object('producerId', j.id::text, 'customerReferenceCode', j.code, 'name', j.name, 'type', j.type)
        from grandlivre.journals j where j.schema_id = $1 and j.folder_id = $2 and j.id = e.journal_id) as journal,
       e.source, (select json_build_object('name', t.name, 'code', t.code)
        from grandlivre.third_parties t where t.id = e.third_party_id) as third_party,
       e.partner_metadata, e.comment, extract(epoch from e.created_at)::bigint::text as created_at,
       e.accounted_at::text, e.validated_at::text
     from grandlivre.entries e where e.schema_id = $1 and e.folder_id = $2 and (${where}) order by e.exercice_id, e.id`,
    [folder.schemaId, folder.folderId],
  )
  const labels = await journalLabels(owner, folder)
  return rows.map((row) => ({
    producerId: row.id,
    attachments: files(row.attachments),
    date: row.date,
    dueDate: row.due_date,
    journal: { ...row.journal, type: labels.get(row.journal.producerId) },
    currency: { code: row.currency, ...(row.rate === null ? {} : { rate: exact(row.rate) }) },
    movements: (movements[row.id] ?? []).map(({ entry: _, ...movement }) => movement),
    additionalProducerProperties: {
      source: { name: row.source, thirdParty: row.third_party },
      partnerMetadata: row.partner_metadata && {
        partnerId: row.partner_metadata.partnerId,
        json: row.partner_metadata.json,
      },
      comment: row.comment,
      createdAt: exact(row.created_at),
      accountedAt: row.accounted_at,
      validationDate: row.validated_at,
    },
  }))
}

async function journalLabels(
  owner: pg.ClientBase | pg.Pool,
  folder: { schemaId: string; folderId: string },
): Promise<Map<string, string>> {
  const journals = (await readPlainCollection(owner, folder, 'journals', '')) as {
    producerId: string
    type: string
  }[]
  return new Map(journals.map(({ producerId, type }) => [producerId, type]))
}
