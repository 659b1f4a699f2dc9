/**
 * Publishes the events of an import. SQL builds them from rows, because there are too many to send one by one.
 * Statements run as the owner. Call all except `rememberLetterings` after `lockEvents`.
 *
 * Movements of one account and exercice with the same code form a lettering, which is one event. The event has the id
 * and the invoice number of the first movement, and the payment mode of any movement that has one; it is empty if none
 * has.
 */
import type { ClientBase } from 'pg'
import { textLiteral } from '../db/literal.ts'
import type { NewEvent } from '../events/events.sql.ts'
import { publishRows, writeEvents } from '../events/publish.ts'
import { paymentMode, paymentModes } from '../formats/items/payment.ts'
import type { FolderKey } from '../formats/rows.ts'

/**
 * Saves the letterings of a folder, or of one of its exercices, before they are deleted. They are kept until the
 * transaction ends.
 */
export async function rememberLetterings(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  exerciceId: string | null,
) {
  await client.query(`create temporary table removed_letterings (id bigint, payment_type text, piece text, members text)
     on commit drop`)
  await client.query(`insert into pg_temp.removed_letterings ${letterings}`, [schemaId, folderId, exerciceId])
}

/** Selects letterings of the folder $2 in schema $1: those of the exercice $3 or, if that is null, all. */
const letterings = `select min(m.id) as id,
      coalesce(min(case when p.id is not null then coalesce(shown.code, ${textLiteral(paymentMode('').code)}) end), '') as payment_type,
      (array_agg(m.invoice_number order by m.id))[1] as piece,
      md5(string_agg(concat(m.id, m.lettering_state), ',' order by m.id)) as members
    from grandlivre.movements m
    left join grandlivre.payments p on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
    left join (values ${Object.entries(paymentModes)
      .map(([stored, { code }]) => `(${textLiteral(stored)}, ${textLiteral(code)})`)
      .join(', ')}) as shown (stored, code) on shown.stored = p.code
    where m.schema_id = $1 and m.folder_id = $2 and ($3::bigint is null or m.exercice_id = $3) and m.lettering_state <> 'none'
    group by m.exercice_id, m.account_id, m.lettering_code`
const formerLetterings = 'select * from pg_temp.removed_letterings'

const entriesOfExercice =
  'select id from grandlivre.entries where schema_id = $1 and folder_id = $2 and exercice_id = $3'
/** Selects the entries that a replacement added (see replace/replace.sql.ts). $3 is null. */
const addedEntries = 'select id from pg_temp.entry_matches where is_new and $3::bigint is null'

/** SQL expressions for the data of the event of a row `r`. */
const eventData = {
  accountingLineEntry: `json_build_object('id', r.id::text)`,
  accountingEntryLettering: `case when r.piece = '' then json_build_object('id', r.id::text, 'paymentType', r.payment_type)
    else json_build_object('id', r.id::text, 'paymentType', r.payment_type, 'piece1', r.piece) end`,
}

/**
 * Inserts an event for each of the rows, in the order of their ids.
 * @param rows a select with the parameters of `letterings`
 */
async function insertEvents(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  exerciceId: string | null,
  operation: 'CREATE' | 'DELETE',
  name: keyof typeof eventData,
  rows: string,
): Promise<void> {
  // Reads the scope and the firm once, rather than in the trigger of each event.
  const text = `with origin as materialized (
       select scope, (scope ->> 'firmId')::bigint as firm_id from grandlivre.event_scope($1::bigint, null, $2::bigint) as scope)
     insert into grandlivre.events (schema_id, folder_id, firm_id, name, operation, scope, data)
     select $1::bigint, $2::bigint, origin.firm_id, '${name}', '${operation}', origin.scope, ${eventData[name]}
     from (${rows}) as r cross join origin
     order by r.id`
  await client.query(text, [schemaId, folderId, exerciceId])
}

/** The changes that an import or a seed made in a folder. Lists have ids of exercices. */
interface ImportedLedger extends FolderKey {
  folderCreated: boolean
  /** Whether `rememberLetterings` saved the former letterings. */
  replaced: boolean
  deleted: string[]
  created: string[]
  /** Exercices that were empty before and now have entries. */
  filled: string[]
  /** The exercice in which some of the former entries were replaced; null if this may be any exercice of the folder. */
  changed?: string | null | undefined
}

/** Publishes the events of an import, deletions first. Call it as the last step of the transaction. */
export async function publishImport(client: ClientBase, imported: ImportedLedger): Promise<void> {
  const { schemaId, folderId } = imported
  const exercice = (operation: 'CREATE' | 'DELETE') => (id: string) =>
    ({ name: 'exercice', operation, folderId, data: { id } }) satisfies NewEvent
  const events: NewEvent[] = imported.deleted.map(exercice('DELETE'))
  if (imported.folderCreated)
    events.push({ name: 'accountingFolder', operation: 'CREATE', folderId, data: { id: folderId } })
  events.push(...imported.created.map(exercice('CREATE')))
  await publishRows(client, schemaId, async () => {
    const { changed, filled } = imported
    const insertLetterings = (exerciceId: string | null, operation: 'CREATE' | 'DELETE', rows: string) =>
      insertEvents(client, imported, exerciceId, operation, 'accountingEntryLettering', rows)
    const insertEntries = (exerciceId: string | null, rows: string) =>
      insertEvents(client, imported, exerciceId, 'CREATE', 'accountingLineEntry', rows)
    if (imported.replaced)
      await insertLetterings(changed ?? null, 'DELETE', `${formerLetterings} except ${letterings}`)
    await writeEvents(client, schemaId, events)
    for (const exerciceId of filled) {
      await insertEntries(exerciceId, entriesOfExercice)
      await insertLetterings(exerciceId, 'CREATE', letterings)
    }
    if (changed !== undefined) {
      await insertEntries(null, addedEntries)
      await insertLetterings(changed, 'CREATE', `${letterings} except ${formerLetterings}`)
    }
  })
}
