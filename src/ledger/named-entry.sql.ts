/** Finds the entry that a partner names, by the entry's id, an invoice number, or the partner's own id. */
import type pg from 'pg'
import { limits } from '../config.ts'
import { idLiteral, textLiteral } from '../db/literal.ts'
import { askInTenant } from '../db/pool.ts'
import { queryRows } from '../db/statement.ts'
import { AppError } from '../errors.ts'
import type { FolderKey } from '../formats/rows.ts'
import { cursorExpression } from './changes/cursor.sql.ts'

export interface EntryName extends FolderKey {
  /** The name, which must not contain the character NUL. */
  name: string
  /** Whether to find an entry that awaits validation. If false, finds a validated entry, or any entry by its id. */
  draft: boolean
}

/**
 * Runs inside the caller's transaction.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-ENTRY-NOT-FOUND, ERR-AMBIGUOUS-ENTRY
 */
export async function readNamedEntry(client: pg.ClientBase, name: EntryName, timeZone: string) {
  return onlyEntry(await queryRows<FoundEntries>(client, statement(name, timeZone)))
}

/** Does the same as `readNamedEntry` in a round trip of its own. @throws {AppError} also ERR-UNAVAILABLE */
export async function askForNamedEntry(pool: pg.Pool, name: EntryName, timeZone: string) {
  return onlyEntry(await askInTenant<FoundEntries>(pool, name.schemaId, statement(name, timeZone)))
}

interface FoundEntries {
  /** The cursor that names the state of the folder's ledger. */
  cursor: string
  /** The folder's own reference. */
  reference: string | null
  /** Ascending by id. */
  entries: { id: string; exerciceId: string }[]
}

function statement({ schemaId, folderId, name, draft }: EntryName, timeZone: string): string {
  const folder = idLiteral(folderId)
  return `select ${cursorExpression(timeZone)} as cursor, reference,
      (select coalesce(json_agg(json_build_object('id', n.id::text, 'exerciceId', n.exercice_id::text) order by n.id), '[]')
       from entries_named(${folder}, ${textLiteral(name)}, ${draft}, ${limits.ambiguousEntriesMax + 1}) n) as entries
    from folders where schema_id = ${idLiteral(schemaId)} and id = ${folder}`
}

function onlyEntry([found]: FoundEntries[]) {
  if (!found) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const { entries, ...folder } = found
  const [entry, ...others] = entries
  if (!entry) throw new AppError('ERR-ENTRY-NOT-FOUND')
  if (others.length === 0) return { ...folder, ...entry }
  const shown = limits.ambiguousEntriesMax
  const producerIds = entries.slice(0, shown).map(({ id }) => id)
  const count = entries.length > shown ? `More than ${shown}` : String(entries.length)
  throw new AppError('ERR-AMBIGUOUS-ENTRY', {
    message: `${count} entries have this invoice number or partner id; ask for one of details.producerIds`,
    producerIds,
  })
}
