/**
 * Looks up a selection before any of its rows are read, once at the HTTP edge and once in the snapshot. Each look-up is
 * one statement.
 */
import type pg from 'pg'
import { idArrayLiteral, idLiteral } from '../../db/literal.ts'
import { askInTenant } from '../../db/pool.ts'
import { AppError, invalid } from '../../errors.ts'
import type { FolderKey } from '../../formats/rows.ts'
import {
  type CursorRefusal,
  cursorExpression,
  refusalExpression,
  renderingExpression,
  renderingOf,
} from '../../ledger/changes/cursor.sql.ts'
import type { Selection } from '../selection.ts'
import { inFolder, type Position, type ResolvedSelection } from './movements.sql.ts'

/** The fields of a selection by which the HTTP edge looks up its facts. */
export type SelectedKey = Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds' | 'timeZone'>

/** The facts that the HTTP edge looks up for a selection. */
export interface SelectionFacts {
  /** Names the state of the folder's ledger. */
  cursor: string
  /** The folder's own reference. */
  reference: string | null
  /** The period of the exercice selected by id; null if none is selected or it does not exist. */
  period: { start: string; end: string } | null
  /** The selected journals that exist in the folder. */
  journalIds: string[]
  /** Why changes since the given cursor are not available; null if they are, or no cursor is given. */
  refusal: CursorRefusal | null
}

/**
 * Looks up a selection in one round trip. Undefined if the folder does not exist.
 * @throws {AppError} ERR-UNAVAILABLE
 */
export async function readSelected(
  pool: pg.Pool,
  { schemaId, folderId, exerciceId, journalIds, timeZone }: SelectedKey,
  since?: string,
): Promise<SelectionFacts | undefined> {
  const folder = { schemaId, folderId }
  const period =
    exerciceId === undefined
      ? 'null'
      : `(select json_build_object('start', start_date, 'end', end_date)
          from exercices where ${inFolder('exercices', folder)} and id = ${idLiteral(exerciceId)})`
  const journals =
    journalIds.length === 0
      ? `'{}'::text[]`
      : `array(select id::text from journals where ${inFolder('journals', folder)} and id = any (${idArrayLiteral(journalIds)}))`
  const refusal = since === undefined ? 'null' : refusalExpression(since, { ...folder, timeZone })
  const rows = await askInTenant<SelectionFacts>(
    pool,
    schemaId,
    `select ${cursorExpression(timeZone)} as cursor, reference, ${period} as period, ${journals} as "journalIds",
       ${refusal} as refusal
     from folders where schema_id = ${idLiteral(schemaId)} and id = ${idLiteral(folderId)}`,
  )
  return rows[0]
}

/** The facts that the snapshot has for a selection, before its rows are read. */
export interface SnapshotSelection extends ResolvedSelection {
  /** Names the state of the folder's ledger. */
  cursor: string
  /**
   * The exercices that can hold selected entries: the one selected by id (none if the folder does not have it), or
   * those that overlap the period. Only the document date is guaranteed to lie within its exercice.
   */
  exerciceIds: string[]
  /** Whether digests of the selected exercice are kept at this state. */
  hasBlocks: boolean
}

/**
 * Looks up a selection in the snapshot. The statement is named, so a connection keeps its plan after a few exports: it
 * then takes 0.04 ms of the database, and 0.15 ms if it is planned each time.
 * @param after id of the last item that the caller has: a movement, or an entry if `items` are entries
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-VALIDATION naming `after`
 */
export async function readResolved(
  client: pg.ClientBase,
  selection: Selection,
  items: 'movements' | 'entries',
  after?: string,
): Promise<SnapshotSelection> {
  const { schemaId, folderId, exerciceId, period, timeZone } = selection
  const { start, end } = period?.dateFilter === 'document' ? period : {}
  const { rows } = await client.query<Omit<SnapshotSelection, 'after'> & { after: Position | null }>({
    name: `resolve ${items}`,
    text: `select ledger_cursor(schema_id, id, ledger_version, $7) as cursor,
             array(select id::text from exercices
                   where schema_id = $1 and folder_id = $2 and ($3::bigint is null or id = $3)
                     and ($4::date is null or end_date >= $4) and ($5::date is null or start_date <= $5)
                   order by start_date) as "exerciceIds",
             (select ${positions[items]} from ${items} where schema_id = $1 and folder_id = $2 and id = $6) as after,
             exists (select from movement_blocks b
                     where b.schema_id = $1 and b.folder_id = $2 and b.exercice_id = $3
                       and b.version = folders.ledger_version and ${renderingExpression('b.cursor')} = $7) as "hasBlocks"
           from folders where schema_id = $1 and id = $2`,
    values: [schemaId, folderId, exerciceId, start, end, after, renderingOf(timeZone)],
  })
  const [found] = rows
  if (!found) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (exerciceId !== undefined && found.exerciceIds.length === 0) throw new AppError('ERR-EXERCICE-NOT-FOUND')
  if (after !== undefined && !found.after)
    throw invalid('after', `no ${items === 'movements' ? 'movement' : 'entry'} of this folder has this id`)
  return { ...found, after: found.after ?? undefined, selection }
}

const position = (entryId: string, movementId: string): string =>
  `json_build_object('entryId', (${entryId})::text, 'movementId', (${movementId})::text)`

/**
 * The position of an item in the order of an export. For an entry: just before the first movement of the next entry.
 */
const positions = { movements: position('entry_id', 'id'), entries: position('id + 1', '0') }

/** Reads the cursor of a folder's ledger. Undefined if the folder does not exist. */
export async function readLedgerCursor(
  client: pg.ClientBase,
  { schemaId, folderId, timeZone }: FolderKey & Pick<Selection, 'timeZone'>,
): Promise<string | undefined> {
  const { rows } = await client.query<{ cursor: string }>(
    `select ${cursorExpression(timeZone)} as cursor from folders where schema_id = $1 and id = $2`,
    [schemaId, folderId],
  )
  return rows[0]?.cursor
}
