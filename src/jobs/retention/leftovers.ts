/**
 * What is left in the store of attempts that could not take it back themselves, as their process was killed: a file
 * half written, or one that was complete and never written down. It goes when the export goes on, and when it has ended.
 * Retention is the net beneath.
 */
import type { Pool } from 'pg'
import { inTenant } from '../../db/pool.ts'
import { type ObjectStore, StoreError } from '../../store/store.ts'
import { exportFolder, readFileKey } from '../file-key.ts'
import { statusOf } from '../job.ts'
import type { Claim, ExportKey } from '../jobs.sql.ts'
import { fileOf } from './retention.sql.ts'

/**
 * Before an attempt writes. A process that is still at an earlier one has lost the export and fails. Later ones are left
 * alone: by now another process may have the export, and even have finished it.
 * @throws {StoreError} where the store is out of reach. One that refuses can take the file all the same: the end tells
 */
export async function clearEarlier(store: ObjectStore, claim: Claim): Promise<void> {
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

/** Of an export that has ended, everything but the file that its row names. Of another one nothing. */
export async function clearEnded(database: Pool, store: ObjectStore, key: ExportKey): Promise<void> {
  const file = await inTenant(database, key.schemaId, (client) => fileOf(client, key))
  if (!file || statusOf(file.state) === 'INIT') return
  await store.clear(exportFolder(key), (other) => readFileKey(other) !== undefined && other !== file.fileKey)
}
