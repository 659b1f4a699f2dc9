/** Looks up a selection before any of it is read, in one statement each: at the HTTP edge, and in the snapshot. */
import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { askInTenant } from '../../db/pool.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { Selection } from '../selection.ts'
import type { Position } from './movements.sql.ts'

/** The result at the HTTP edge. */
export interface Selected {
  ledgerVersion: string
  /** The folder's own reference. */
  reference: string | null
  /** The period of the exercice selected by id; null if none is selected or it does not exist. */
  period: { start: string; end: string } | null
  /** The selected journals that exist in the folder. */
  journalIds: string[]
}

/** One round trip. Undefined if the folder does not exist. @throws {AppError} ERR-UNAVAILABLE */
export async function readSelected(
  pool: pg.Pool,
  {
    schemaId,
    folderId,
    exerciceId,
    journalIds,
  }: Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds'>,
): Promise<Selected | undefined> {
  const ofFolder = inFolder({ schemaId, folderId })
  const period =
    exerciceId === undefined
      ? 'null'
      : `(select json_build_object('start', start_date, 'end', end_date)
          from exercices where ${ofFolder} and id = ${idLiteral(exerciceId)})`
  const journals =
    journalIds.length === 0
      ? `'{}'::text[]`
      : `array(select id::text from journals where ${ofFolder} and id in (${journalIds.map(idLiteral).join(', ')}))`
  const rows = await askInTenant<Selected>(
    pool,
    schemaId,
    `select ledger_version as "ledgerVersion", reference, ${period} as period, ${journals} as "journalIds"
     from folders where schema_id = ${idLiteral(schemaId)} and id = ${idLiteral(folderId)}`,
  )
  return rows[0]
}

/** The result in the snapshot, before its rows are read. */
export interface Resolved {
  ledgerVersion: string
  /**
   * The exercices that can hold selected entries: the one selected by id (none if the folder does not have it), or
   * those that overlap the period. Only the document date is guaranteed to lie within its exercice.
   */
  exerciceIds: string[]
  /** Null if no item has the id `after`. */
  after: Position | null
}

/**
 * Undefined if the folder does not exist.
 * @param after id of the last item that the caller has: a movement, or an entry if `items` are entries
 */
export async function readResolved(
  client: pg.ClientBase,
  selection: Selection,
  items: 'movements' | 'entries',
  after: string | undefined,
): Promise<Resolved | undefined> {
  const { schemaId, folderId, exerciceId, period } = selection
  const conditions = [inFolder(selection)]
  if (exerciceId !== undefined) conditions.push(`id = ${idLiteral(exerciceId)}`)
  if (period?.dateFilter === 'document')
    conditions.push(
      `end_date >= ${textLiteral(period.start)}::date`,
      `start_date <= ${textLiteral(period.end)}::date`,
    )
  const { rows } = await client.query<Resolved>(
    `select ledger_version as "ledgerVersion",
            array(
              select id::text from exercices where ${conditions.join(' and ')} order by start_date
            ) as "exerciceIds",
            ${after === undefined ? 'null' : positionText(selection, items, after)} as after
     from folders where schema_id = ${idLiteral(schemaId)} and id = ${idLiteral(folderId)}`,
  )
  return rows[0]
}

/**
 * The position of an item in the order of an export. For an entry: just before the first movement of the next entry.
 */
function positionText(folder: FolderKey, items: 'movements' | 'entries', after: string): string {
  const [entryId, movementId] = items === 'movements' ? ['entry_id', 'id'] : ['id + 1', '0']
  return `(select json_build_object('entryId', (${entryId})::text, 'movementId', (${movementId})::text)
    from ${items} where ${inFolder(folder)} and id = ${idLiteral(after)})`
}

/** Undefined if the folder does not exist. */
export async function readLedgerVersion(
  client: pg.ClientBase,
  folder: FolderKey,
): Promise<string | undefined> {
  const { rows } = await client.query<{ version: string }>(
    'select ledger_version as version from folders where schema_id = $1 and id = $2',
    [folder.schemaId, folder.folderId],
  )
  return rows[0]?.version
}

function inFolder({ schemaId, folderId }: FolderKey): string {
  return `schema_id = ${idLiteral(schemaId)} and folder_id = ${idLiteral(folderId)}`
}
