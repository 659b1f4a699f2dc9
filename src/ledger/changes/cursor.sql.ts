/** The cursor that names a state of a folder's ledger (docs/spec/changes.md#cursor). The database makes and reads it. */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { textLiteral } from '../../db/literal.ts'
import { formatRevisions } from '../../formats/mad/revisions.ts'

/** What decides the bytes of a line besides the ledger: 8 characters. */
export function renderingOf(timeZone: string): string {
  const { movements, entries } = formatRevisions
  return createHash('sha256')
    .update(JSON.stringify([movements, entries, timeZone]))
    .digest('base64url')
    .slice(0, 8)
}

/** The cursor of a row of `folders`, as an expression. */
export function cursorExpression(timeZone: string): string {
  return `ledger_cursor(schema_id, id, ledger_version, ${textLiteral(renderingOf(timeZone))})`
}

/** From now on `ledger` events carry cursors of this rendering. */
export async function adoptRendering(pool: pg.Pool, timeZone: string): Promise<void> {
  await pool.query('select adopt_rendering($1)', [renderingOf(timeZone)])
}
