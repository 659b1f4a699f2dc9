/**
 * Removes what has expired.
 *
 *   files        FILE_RETENTION_DAYS after their export ended, plus the life of a link, so that no valid link is dead
 *   rows         `expiredDays` later; until then the status answers 410, afterwards 404
 *   orphans      complete files that no export names: their attempt died or lost the export before it recorded them
 *   unfinished   writes of attempts that died
 *   forgotten    exports that did not end within FILE_RETENTION_DAYS and that no process works on: they fail
 *
 * The next sweep repeats a step that failed: a file is removed before its row forgets it.
 */
import type { Pool } from 'pg'
import { limits } from '../../config.ts'
import { inTenant, onConnection } from '../../db/pool.ts'
import type { LogEvents } from '../../log.ts'
import type { ObjectStore } from '../../store/store.ts'
import { end } from '../end.ts'
import { readFileKey } from '../file-key.ts'
import { reasonOf, statusOf } from '../job.ts'
import { clearEnded } from './leftovers.ts'
import {
  deleteEnded,
  expiredFiles,
  fileOf,
  forgetFile,
  forgottenExports,
  tenantsWithExports,
} from './retention.sql.ts'

interface FilesOfExports {
  /** Connects as the service role. */
  database: Pool
  store: ObjectStore
  retentionDays: number
}

export type Swept = LogEvents['retention.swept']

/** One sweep. @param now determines the ages of objects in the store; ages of rows use the database's clock */
export async function sweepExports(files: FilesOfExports, now: Date, stopped?: AbortSignal): Promise<Swept> {
  const { database, store } = files
  const swept: Swept = { files: 0, rows: 0, orphans: 0, unfinished: 0, forgotten: 0 }
  for (const schemaId of await onConnection(database, tenantsWithExports)) {
    stopped?.throwIfAborted()
    await sweepTenant(files, schemaId, swept)
  }
  for await (const { key } of store.listObjects(new Date(now.getTime() - limits.orphanAgeMs))) {
    stopped?.throwIfAborted()
    if (!(await isOrphan(database, key))) continue
    await store.remove(key)
    swept.orphans += 1
  }
  swept.unfinished = await store.sweep(new Date(now.getTime() - limits.unfinishedAgeMs))
  return swept
}

async function sweepTenant(
  { database, store, retentionDays }: FilesOfExports,
  schemaId: string,
  swept: Swept,
): Promise<void> {
  const ofTenant = <T>(run: Parameters<typeof inTenant<T>>[2]) => inTenant<T>(database, schemaId, run)
  const expired = await ofTenant((client) =>
    expiredFiles(client, schemaId, { retentionDays, linkSeconds: limits.fileLinkSeconds }),
  )
  for (const { exportId, fileKey } of expired) {
    await store.remove(fileKey)
    await ofTenant((client) => forgetFile(client, { schemaId, exportId }))
    swept.files += 1
  }
  swept.rows += await ofTenant((client) => deleteEnded(client, schemaId, retentionDays + limits.expiredDays))
  for (const { exportId, requestId } of await ofTenant((client) =>
    forgottenExports(client, schemaId, retentionDays),
  )) {
    const reason = reasonOf('forgotten', requestId)
    if (!(await ofTenant((client) => end(client, { schemaId, exportId }, reason)))) continue
    swept.forgotten += 1
    await clearEnded(database, store, { schemaId, exportId })
  }
}

async function isOrphan(database: Pool, key: string): Promise<boolean> {
  const named = readFileKey(key)
  if (!named) return false
  const file = await inTenant(database, named.schemaId, (client) => fileOf(client, named))
  // The export has not ended: the process that stored this file may be about to record it.
  if (file && statusOf(file.state) === 'INIT') return false
  return file?.fileKey !== key
}
