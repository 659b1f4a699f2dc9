import type { ClientBase } from 'pg'
import type { NewEvent } from '../events/events.sql.ts'
import { publishRows, writeEvents } from '../events/publish.ts'
import type { FolderKey } from '../formats/rows.ts'
import { insertEntries, insertLetterings } from './events.sql.ts'

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
