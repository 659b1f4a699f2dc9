/**
 * Corrections such as a bookkeeper makes. Each is one statement in an open exercice, run as the owner of the tables. It
 * returns the id of what it changed, or undefined if the folder has nothing of the kind. Movements with fields that
 * are kept as a FEC filed them stay as they are.
 */
import type { ClientBase, QueryResultRow } from 'pg'
import { queryRow, queryRows, queryValue } from '../../../src/db/statement.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'

/** Ids of up to `count` randomly chosen folders of the firm. */
export function pickFolders(client: ClientBase, firmId: string, count: number) {
  return queryRows<FolderKey>(
    client,
    `select schema_id as "schemaId", id as "folderId" from grandlivre.folders
     where firm_id = $1 order by random() limit $2`,
    [firmId, count],
  )
}

export function listFirms(client: ClientBase) {
  return queryRows<{ id: string; name: string }>(
    client,
    'select id, name from grandlivre.firms order by id limit 20',
  )
}

const openExercices = `select id from grandlivre.exercices
  where schema_id = $1 and folder_id = $2 and closed_at is null`

/** Makes a function that runs a statement on a folder, whose ids are $1 and $2. @returns the first row */
function inFolder<Row extends QueryResultRow>(text: string) {
  return (client: ClientBase, { schemaId, folderId }: FolderKey) =>
    queryRow<Row>(client, text, [schemaId, folderId])
}

/** Makes a function that runs a statement on a folder and returns the id of what it changed. */
function correcting<More extends unknown[]>(text: string) {
  return (client: ClientBase, { schemaId, folderId }: FolderKey, ...more: More) =>
    queryValue<string | undefined>(client, text, [schemaId, folderId, ...more])
}

/** Changes the description of a movement. @returns the id of its entry */
export const correctDescription = correcting(
  `update grandlivre.movements m
   set description = regexp_replace(m.description, ' \\(corrigé .*\\)$', '') || ' (corrigé ' || to_char(clock_timestamp(), 'HH24:MI:SS.MS') || ')'
   from (select exercice_id, entry_id, id from grandlivre.movements
         where schema_id = $1 and folder_id = $2 and exercice_id in (${openExercices}) and filed is null
         order by random() limit 1) p
   where (m.schema_id, m.folder_id, m.exercice_id, m.entry_id, m.id) = ($1, $2, p.exercice_id, p.entry_id, p.id)
   returning m.entry_id as id`,
)

/**
 * Raises one debit and one credit of an entry by the same amount. Both must be free of shares and letterings, which
 * depend on the amount.
 * @param cents to add to each
 * @returns the id of the entry
 */
export const correctAmount = correcting<[cents: number]>(
  `with free as (
     select exercice_id, entry_id, id, debit > 0 as is_debit from grandlivre.movements
     where schema_id = $1 and folder_id = $2 and exercice_id in (${openExercices})
       and shares is null and lettering_state = 'none' and filed is null and debit + credit > 0),
   picked as (
     select exercice_id, entry_id, min(id) filter (where is_debit) as debit_id, min(id) filter (where not is_debit) as credit_id
     from free group by exercice_id, entry_id having bool_or(is_debit) and bool_or(not is_debit)
     order by random() limit 1)
   update grandlivre.movements m
   set debit = m.debit + case when m.id = p.debit_id then $3::bigint else 0 end,
       credit = m.credit + case when m.id = p.credit_id then $3::bigint else 0 end
   from picked p
   where (m.schema_id, m.folder_id, m.exercice_id, m.entry_id) = ($1, $2, p.exercice_id, p.entry_id)
     and m.id in (p.debit_id, p.credit_id)
   returning m.entry_id as id`,
)

/** Validates a draft, to which the database then gives a number. @returns the id of the entry */
export const validateDraft = correcting(
  `update grandlivre.entries e set validated_at = greatest(current_date, e.accounted_at)
   from (select id from grandlivre.entries
         where schema_id = $1 and folder_id = $2 and exercice_id in (${openExercices}) and validated_at is null
         order by random() limit 1) p
   where (e.schema_id, e.folder_id, e.id) = ($1, $2, p.id)
   returning e.id`,
)

/** Picks the entry to copy: it has few movements, none with fields that are kept as a FEC filed them. */
export const pickEntry = inFolder<{ id: string; movements: number }>(
  `select entry_id as id, count(*)::integer as movements from grandlivre.movements
   where schema_id = $1 and folder_id = $2 and exercice_id in (${openExercices})
   group by entry_id having count(*) between 2 and 9 and bool_and(filed is null)
   order by random() limit 1`,
)

/**
 * Adds a draft dated today, with the accounts and amounts of another entry.
 * @param ids of the new entry and then of its movements
 * @returns the id of the new entry
 */
export const addEntryLike = correcting<[entryId: string, ids: string[]]>(
  `with added as (
     insert into grandlivre.entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
       source, currency, rate, comment)
     select e.schema_id, e.folder_id, ($4::bigint[])[1], e.exercice_id, e.journal_id,
       least(greatest(current_date, x.start_date), x.end_date), least(greatest(current_date, x.start_date), x.end_date),
       now(), 'M', e.currency, e.rate, e.comment
     from grandlivre.entries e
     join grandlivre.exercices x on (x.schema_id, x.folder_id, x.id) = (e.schema_id, e.folder_id, e.exercice_id)
     where (e.schema_id, e.folder_id, e.id) = ($1, $2, $3)
     returning id)
   insert into grandlivre.movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
     invoice_number, debit, credit, payment_id, shares)
   select m.schema_id, m.folder_id, m.exercice_id, added.id,
     ($4::bigint[])[1 + row_number() over (order by m.id)], m.account_id, m.description, m.invoice_number,
     m.debit, m.credit, m.payment_id, m.shares
   from grandlivre.movements m cross join added
   where (m.schema_id, m.folder_id, m.entry_id) = ($1, $2, $3)
   returning entry_id as id`,
)

/** Renames an account. @returns its id */
export const renameAccount = correcting(
  `update grandlivre.accounts a
   set name = regexp_replace(a.name, ' \\(renommé .*\\)$', '') || ' (renommé ' || to_char(clock_timestamp(), 'HH24:MI:SS.MS') || ')'
   from (select id from grandlivre.accounts where schema_id = $1 and folder_id = $2 and not closed
         order by random() limit 1) p
   where (a.schema_id, a.folder_id, a.id) = ($1, $2, p.id)
   returning a.id`,
)

/**
 * Picks a debit and a credit of one account that may be lettered together, preferring those closest in amount. Also
 * returns the codes that the account already uses.
 */
export const pickPair = inFolder<{ ids: string[]; equal: boolean; codes: string[] }>(
  `with free as (
     select exercice_id, account_id, id, debit, credit from grandlivre.movements
     where schema_id = $1 and folder_id = $2 and exercice_id in (${openExercices})
       and lettering_state = 'none' and filed is null and debit + credit > 0),
   accounts as (
     select exercice_id, account_id from free group by exercice_id, account_id
     having bool_or(debit > 0) and bool_or(credit > 0) order by random() limit 1),
   pair as (
     select d.exercice_id, d.account_id, array[d.id, c.id] as ids, d.debit = c.credit as equal from accounts a
     join lateral (select * from free f where (f.exercice_id, f.account_id) = (a.exercice_id, a.account_id)
       and f.debit > 0 limit 100) d on true
     join lateral (select * from free f where (f.exercice_id, f.account_id) = (a.exercice_id, a.account_id)
       and f.credit > 0 order by abs(f.credit - d.debit) limit 1) c on true
     order by abs(d.debit - c.credit) limit 1)
   select p.ids::text[], p.equal, array(select distinct m.lettering_code from grandlivre.movements m
     where (m.schema_id, m.folder_id, m.exercice_id, m.account_id) = ($1, $2, p.exercice_id, p.account_id)
       and m.lettering_code is not null) as codes
   from pair p`,
)

/** Letters these movements. @returns the id of one of them */
export const letter = correcting<[ids: string[], state: 'partial' | 'complete', code: string]>(
  `update grandlivre.movements set lettering_state = $4, lettering_code = $5
   where (schema_id, folder_id) = ($1, $2) and id = any ($3::bigint[]) returning id`,
)
