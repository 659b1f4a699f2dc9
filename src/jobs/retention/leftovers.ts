/**
 * Removes what killed attempts left in the store: a partial file, or a complete one that was never recorded. Runs
 * before the next attempt writes and after the export ends.
 *
 * Thirty kills once left 51 part files, 988 MB, for a day. Because an attempt first removes what earlier ones left, a
 * crash loop leaves at most one part file of a running export; an ended export keeps only the file that its row names.
 *
 * An earlier attempt may still be alive. Its part file can no longer be renamed and its upload accepts no more parts,
 * so it fails and creates no file.
 *
 * No process needs to survive the end of an export: its queue entry returns until a process has found the export ended,
 * also after `cli export cancel`. Retention removes the rest: orphans after an hour, unfinished writes after a day.
 */
import type { Pool } from 'pg'
import { inTenant } from '../../db/pool.ts'
import { type ObjectStore, StoreError } from '../../store/store.ts'
import { exportFolder, readFileKey } from '../file-key.ts'
import { statusOf } from '../job.ts'
import type { AttemptKey, ExportKey } from '../jobs.sql.ts'
import { fileOf } from './retention.sql.ts'

/**
 * Removes what earlier attempts left. Leaves later attempts alone: if this process was frozen for long, others may have
 * claimed the export since, and even finished it.
 * @throws {StoreError} if the store is unreachable. If the store refuses the removal, the attempt continues: the store
 *   may still accept the file
 */
export async function clearEarlier(store: ObjectStore, claim: AttemptKey): Promise<void> {
  if (claim.attempt === 1) return
  const isEarlier = (key: string) => {
    const other = readFileKey(key)
    return other !== undefined && other.attempt < claim.attempt
  }
  try {
    await store.clear(exportFolder(claim), isEarlier)
  } catch (error) {
    if (!(error instanceof StoreError) || error.retryable) throw error
  }
}

/** If the export has ended, removes all of its files except the recorded one. Otherwise removes nothing. */
export async function clearEnded(database: Pool, store: ObjectStore, key: ExportKey): Promise<void> {
  const file = await inTenant(database, key.schemaId, (client) => fileOf(client, key))
  if (!file || statusOf(file.state) === 'INIT') return
  await store.clear(exportFolder(key), (other) => readFileKey(other) !== undefined && other !== file.fileKey)
}
