/**
 * Publishes the events of an import, which SQL builds from rows: there are too many to send them one by one. As the
 * owner; to be called after `lockEvents`, except `rememberLetterings`.
 *
 * Movements of one account and exercice with the same code form a lettering, so it is one event, with the id and the
 * invoice number of its first movement and the payment mode of any that has one; empty if none has.
 */
import type { ClientBase } from 'pg'
import type { NewEvent } from '../events/events.sql.ts'
import { publishRows, writeEvents } from '../events/publish.ts'
import { paymentMode, paymentModes } from '../formats/items/payment.ts'
import type { FolderKey } from '../formats/rows.ts'

/**
 * Saves the letterings of a folder, or of one of its exercices, until the transaction ends, before they are deleted.
 */
export async function rememberLetterings(client: ClientBase, key: FolderKey, exerciceId: string | null) {
  await client.query(
    `create temporary table removed_letterings (id bigint, payment_type text, piece text, members text)
     on commit drop`,
  )
  await client.query(`insert into pg_temp.removed_letterings ${letterings}`, parameters(key, exerciceId))
}

const rowsOf = (letterings: string) => ({
  all: letterings,
  new: `${letterings} except select * from pg_temp.removed_letterings`,
  removed: `select * from pg_temp.removed_letterings except ${letterings}`,
})

/**
 * Inserts the events of letterings: of all that there are, of those that are not among the saved ones, or of the saved
 * ones that are no longer there.
 * @param exerciceId null: of the whole folder
 */
export async function insertLetterings(
  client: ClientBase,
  key: FolderKey,
  exerciceId: string | null,
  which: 'all' | 'new' | 'removed',
): Promise<void> {
  await client.query(
    `with ${origin} insert into grandlivre.events (schema_id, folder_id, firm_id, name, operation, scope, data)
     select $1::bigint, $2::bigint, origin.firm_id, 'accountingEntryLettering',
       '${which === 'removed' ? 'DELETE' : 'CREATE'}', origin.scope,
       case when l.piece = '' then json_build_object('id', l.id::text, 'paymentType', l.payment_type)
         else json_build_object('id', l.id::text, 'paymentType', l.payment_type, 'piece1', l.piece) end
     from (${rowsOf(letterings)[which]}) as l cross join origin
     order by l.id`,
    parameters(key, exerciceId),
  )
}

/**
 * Inserts the events of entries, in the order of their ids.
 * @param exerciceId null: of those that a replacement added (see replace/replace.sql.ts)
 */
export async function insertEntries(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  exerciceId: string | null,
) {
  const ids =
    exerciceId === null
      ? 'select id from pg_temp.entry_matches where is_new and $3::bigint is null'
      : 'select id from grandlivre.entries where schema_id = $1 and folder_id = $2 and exercice_id = $3'
  await client.query(
    `with ${origin} insert into grandlivre.events (schema_id, folder_id, firm_id, name, operation, scope, data)
     select $1::bigint, $2::bigint, origin.firm_id, 'accountingLineEntry', 'CREATE', origin.scope, json_build_object('id', e.id::text)
     from (${ids}) as e cross join origin
     order by e.id`,
    [schemaId, folderId, exerciceId],
  )
}

/** Where the events of $1 schema and $2 folder happen. The firm is read once, not by the trigger of each. */
const origin = `origin as materialized (
  select scope, (scope ->> 'firmId')::bigint as firm_id from grandlivre.event_scope($1::bigint, null, $2::bigint) as scope)`

/** Payment codes as stored, as shown to partners, and the code shown for any other. */
const shownPayments = [
  Object.keys(paymentModes),
  Object.values(paymentModes).map(({ code }) => code),
  paymentMode('').code,
]

/** The values of the statement `letterings`. */
const parameters = ({ schemaId, folderId }: FolderKey, exerciceId: string | null) => [
  schemaId,
  folderId,
  exerciceId,
  ...shownPayments,
]

const letterings = `select min(m.id) as id,
      coalesce(min(case when p.id is not null then coalesce(shown.code, $6) end), '') as payment_type,
      (array_agg(m.invoice_number order by m.id))[1] as piece,
      md5(string_agg(concat(m.id, m.lettering_state), ',' order by m.id)) as members
    from grandlivre.movements m
    left join grandlivre.payments p on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
    left join unnest($4::text[], $5::text[]) as shown (internal, code) on shown.internal = p.code
    where m.schema_id = $1 and m.folder_id = $2 and ($3::bigint is null or m.exercice_id = $3) and m.lettering_state <> 'none'
    group by m.exercice_id, m.account_id, m.lettering_code`

/** What an import or a seed changed in a folder. Ids of exercices. */
export interface ImportedLedger extends FolderKey {
  folderCreated: boolean
  /** Whether `rememberLetterings` saved what was there before. */
  replaced: boolean
  deleted: string[]
  created: string[]
  /** Exercices that were empty before and have entries now. */
  filled: string[]
  /** One that had entries before, of which some were replaced; null: any exercice of the folder. */
  changed?: string | null | undefined
}

/** Publishes the events of an import, deletions first, as the last step of the transaction. */
export async function publishImport(client: ClientBase, imported: ImportedLedger): Promise<void> {
  const { schemaId, folderId } = imported
  const exercice = (operation: 'CREATE' | 'DELETE') => (id: string) =>
    ({ name: 'exercice', operation, folderId, data: { id } }) satisfies NewEvent
  const events: NewEvent[] = imported.deleted.map(exercice('DELETE'))
  if (imported.folderCreated)
    events.push({ name: 'accountingFolder', operation: 'CREATE', folderId, data: { id: folderId } })
  events.push(...imported.created.map(exercice('CREATE')))
  await publishRows(client, schemaId, async () => {
    const { changed } = imported
    if (imported.replaced) await insertLetterings(client, imported, changed ?? null, 'removed')
    await writeEvents(client, schemaId, events)
    for (const exerciceId of imported.filled) {
      await insertEntries(client, imported, exerciceId)
      await insertLetterings(client, imported, exerciceId, 'all')
    }
    if (changed !== undefined) {
      await insertEntries(client, imported, null)
      await insertLetterings(client, imported, changed, 'new')
    }
  })
}
