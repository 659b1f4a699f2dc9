/** Looks up what is needed to read one ledger of many, in one round trip of its snapshot. */
import type pg from 'pg'
import { AppError } from '../../../errors.ts'
import { readChangedEntries } from '../../../ledger/changes/changed-entries.sql.ts'
import { renderingExpression, renderingOf } from '../../../ledger/changes/cursor.sql.ts'
import { markChanged, noBlocks } from '../../blocks/block.ts'
import {
  blocksOf,
  digestColumns,
  isRemembered,
  type KeptRow,
  tableDigestsOf,
} from '../../blocks/kept-blocks.sql.ts'
import { wholeFolder } from '../../selection.ts'
import type { AskedLedger, LedgersTask } from './task.ts'

/**
 * Checks again that the token opens the folder: since the main thread checked, the token may have been revoked, or
 * the folder moved to another firm. A replica that lacks the token shows a state from before it was issued.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 */
export async function readLedgerState(
  client: pg.ClientBase,
  { society: folderId }: Pick<AskedLedger, 'society'>,
  { schemaId, timeZone, tokenId }: Pick<LedgersTask, 'schemaId' | 'timeZone' | 'tokenId'>,
) {
  const { rows } = await client.query<
    KeptRow & {
      cursor: string
      exerciceIds: string[]
      /** Whether the kept digests are of this state. Without usable digests, this and the next columns are null. */
      isKept: boolean | null
      version: string
      hasTables: boolean | null
    }
  >({
    name: 'ledger state',
    text: `select ledger_cursor(f.schema_id, f.id, f.ledger_version, $3) as cursor,
             array(select id::text from exercices where schema_id = $1 and folder_id = $2) as "exerciceIds", k.*
           from folders f left join lateral (
             select b.version = f.ledger_version as "isKept", b.version, ${digestColumns({ exerciceId: undefined })},
               coalesce(t.version <= b.version, true) as "hasTables"
             from ledger_blocks b
               left join table_changes t on (t.schema_id, t.folder_id) = (b.schema_id, b.folder_id)
             where b.schema_id = $1 and b.folder_id = $2 and ${renderingExpression('b.cursor')} = $3 and ${isRemembered}
           ) k on true
           where f.schema_id = $1 and f.id = $2 and not exists (
             select from tokens t where t.id = $4
               and (t.revoked_at is not null or t.expires_at <= clock_timestamp()
                 or not coalesce(t.folder_id = f.id, t.firm_id = f.firm_id)))`,
    values: [schemaId, folderId, renderingOf(timeZone), tokenId],
  })
  const [found] = rows
  if (!found) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const { cursor, exerciceIds, isKept, version } = found
  const selection = wholeFolder({ schemaId, folderId }, timeZone)
  const watched = { schemaId, folderId, exerciceIds, among: [] }
  const changed = () => (isKept ? [] : readChangedEntries(client, watched, version))
  return {
    cursor,
    resolved: { selection, exerciceIds },
    isKept: isKept === true,
    /** The digests of its tables, if none of these has changed since they were kept. */
    tables: found.hasTables ? tableDigestsOf(found.tables!) : undefined,
    /** The blocks that are kept, and which of them have changed since; `noBlocks` if that is unknown. */
    former: async () => (isKept === null ? noBlocks : markChanged(blocksOf(found), await changed())),
  }
}
