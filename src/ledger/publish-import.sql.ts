/**
 * Publishes the events of an import. SQL builds them from rows, because there are too many to send one by one.
 * Statements run as the owner. All except `rememberLetterings` are to be called after `lockEvents`.
 *
 * Movements of one account and exercice with the same code form a lettering, which is one event. The event has the id
 * and the invoice number of the first movement, and the payment mode of any movement that has one; it is empty if none
 * has.
 */
import type { ClientBase } from 'pg'
import type { NewEvent } from '../events/events.sql.ts'
import { publishRows, writeEvents } from '../events/publish.ts'
import { paymentMode, paymentModes } from '../formats/items/payment.ts'
import type { FolderKey } from '../formats/rows.ts'

/**
 * Saves the letterings of a folder, or of one of its exercices, before they are deleted. They are kept until the
 * transaction ends.
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
 * Inserts events for letterings: for all that exist, for those that are not among the saved ones, or for saved ones
 * that no longer exist.
 * @param exerciceId null for the whole folder
 */
async function insertLetterings(
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
 * @param exerciceId null for the entries that a replacement added (see replace/replace.sql.ts)
 */
async function insertEntries(
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

/** The scope of events in schema $1 and folder $2. It reads the firm once, rather than in the trigger of each event. */
const origin = `origin as materialized (
  select scope, (scope ->> 'firmId')::bigint as firm_id from grandlivre.event_scope($1::bigint, null, $2::bigint) as scope)`

/** Payment codes as stored, the same codes as shown to partners, and the code shown for any other code. */
const shownPayments = [
  Object.keys(paymentModes),
  Object.values(paymentModes).map(({ code }) => code),
  paymentMode('').code,
]

/** The parameters of the statement `letterings`. */
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
