/**
 * The cursor that names a state of a folder's ledger (docs/spec/changes.md#cursor). Only the database makes and reads
 * cursors.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { queryRow } from '../../db/statement.ts'
import { AppError, invalid } from '../../errors.ts'
import { formatRevisions } from '../../formats/file-formats.ts'
import type { FolderKey } from '../../formats/rows.ts'

/** A text of 8 characters. It changes if the same ledger would give lines with other bytes. */
export function renderingOf(timeZone: string): string {
  const { movements, entries } = formatRevisions
  return createHash('sha256')
    .update(JSON.stringify([movements, entries, timeZone]))
    .digest('base64url')
    .slice(0, 8)
}

/** An SQL expression for the cursor of a row of `folders`. */
export function cursorExpression(timeZone: string): string {
  return `ledger_cursor(schema_id, id, ledger_version, ${textLiteral(renderingOf(timeZone))})`
}

/** An SQL expression for the rendering that a cursor names. */
export const renderingExpression = (cursor: string): string => `split_part(${cursor}, '.', 3)`

interface FolderOfCursor extends FolderKey {
  timeZone: string
}

/** An SQL expression for the reason why changes since a cursor are unknown; null if they are known. */
export function refusalExpression(cursor: string, { schemaId, folderId, timeZone }: FolderOfCursor): string {
  const given = [
    textLiteral(cursor),
    idLiteral(schemaId),
    idLiteral(folderId),
    textLiteral(renderingOf(timeZone)),
  ]
  return `(select refusal from read_ledger_cursor(${given.join(', ')}))`
}

/**
 * Reads the version of the ledger that a cursor names, and why changes since the cursor are unknown; null if they are
 * known.
 */
export async function readCursor(
  client: pg.ClientBase,
  cursor: string,
  { schemaId, folderId, timeZone }: FolderOfCursor,
): Promise<{ version: string; refusal: CursorRefusal | null }> {
  return (await queryRow<{ version: string; refusal: CursorRefusal | null }>(client, {
    name: 'read a cursor',
    text: 'select version, refusal from read_ledger_cursor($1, $2, $3, $4)',
    values: [cursor, schemaId, folderId, renderingOf(timeZone)],
  }))!
}

/** Makes events of the kind `ledger` carry cursors of this rendering. */
export async function adoptRendering(pool: pg.Pool | pg.ClientBase, timeZone: string): Promise<void> {
  await pool.query('select adopt_rendering($1)', [renderingOf(timeZone)])
}

/** Why changes since a cursor are unknown (`read_ledger_cursor` in db/migrations/functions/changes.sql). */
export type CursorRefusal = 'unknown' | 'epoch' | 'rendering' | 'later' | 'forgotten'

const expired: Record<Exclude<CursorRefusal, 'unknown'>, string> = {
  epoch: 'Another server took the place of the database after this cursor, in a failover or a restore',
  rendering: 'The format of lines has changed since this cursor',
  later:
    'The ledger has not reached the state that this cursor names: it was restored from a backup, or lost changes in a failover',
  forgotten: 'Changes after this cursor are no longer remembered',
}

export function refusedCursor(refusal: CursorRefusal): AppError {
  if (refusal === 'unknown') return invalid('since', 'is not a cursor of this folder')
  return new AppError('ERR-CURSOR-EXPIRED', {
    message: `${expired[refusal]}; compare the copy with its blocks, and read what differs`,
  })
}
