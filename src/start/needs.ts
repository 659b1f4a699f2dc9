/** The dependencies of requests, as /readyz checks and names them. */
import type { Pool } from 'pg'
import { checkAdopted } from '../auth/master-key.sql.ts'
import type { MasterKeys } from '../auth/secrets.ts'
import { type Config, limits } from '../config.ts'
import type { Address } from '../db/address.ts'
import { checkConnection } from '../db/check-connection.ts'
import { latestMigration } from '../db/migrations/migrate.ts'
import { readVersion } from '../db/migrations/version.sql.ts'
import { aWritableDatabase } from '../db/outage.ts'
import { createPool, onConnection } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { openSnapshot } from '../exports/read/snapshot.ts'
import type { Need } from '../http/readiness.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Threads } from '../threads/pool.ts'

export async function needsOf(
  config: Config,
  masterKeys: MasterKeys,
  { database, direct }: { database: Pool; direct: Pool },
  { store, threads }: { store: ObjectStore; threads: Threads },
): Promise<Need[]> {
  const isPooled = config.directDatabaseUrl !== undefined
  const version = await latestMigration()
  const needs: Need[] = [
    {
      name: config.databaseUrl === undefined ? 'the database' : 'the database of DATABASE_URL',
      label: 'database',
      check: async () => {
        await checkPool(database, isPooled)
        await checkVersion(database, version)
        await checkAdopted(database, masterKeys)
      },
    },
    { name: 'the store of files', label: 'store', check: () => store.check() },
    {
      name: 'the export threads',
      label: 'threads',
      check: async () => {
        if (threads.exports.threads.length === 0) throw new Error('No thread is running')
      },
    },
  ]
  if (isPooled)
    needs.push({
      name: 'the database of DIRECT_DATABASE_URL',
      label: 'direct',
      check: () => checkPool(direct, false),
    })
  return needs
}

/**
 * Checks the version of the database. A standby is not ready before it is promoted. A database that is newer by
 * expanding migrations only is ready: a release is being rolled out.
 */
async function checkVersion(database: Pool, ours: number): Promise<void> {
  const { version, oldestCode, isReadOnly } = await readVersion(database)
  if (isReadOnly)
    throw new AppError('ERR-UNAVAILABLE', {
      message: 'The database takes no changes',
      missing: aWritableDatabase,
    })
  if (version >= ours && oldestCode <= ours) return
  throw new AppError('ERR-UNAVAILABLE', {
    message: `The database is at version ${version}, and this process needs ${ours}`,
    missing: 'the version of this process',
  })
}

/** Checks a connection of the pool, even if it was checked when it opened: its role may have changed since. */
export function checkPool(pool: Pool, isPooled: boolean): Promise<void> {
  return onConnection(pool, (client) => checkConnection(client, { actor: 'service', isPooled }))
}

/**
 * Opens the two connections and the snapshot that every export begins with. Waits for them no longer than other checks
 * wait, so that a probe is answered even while a pooler has no session left.
 */
export async function beginExport(address: Address): Promise<void> {
  const pool = createPool(address, { max: 2, applicationName: 'grandlivre readiness' })
  try {
    const noTenant = '0'
    const timing = { waitMs: limits.databaseConnectMs, halfMs: limits.halfSnapshotMs }
    await (await openSnapshot(pool, noTenant, timing)).close()
  } finally {
    await pool.end()
  }
}
