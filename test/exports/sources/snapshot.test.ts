/** A snapshot whose first session ends before the second one takes part in it, as when a server stops. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import { openSnapshot } from '../../../src/exports/read/snapshot.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { until } from '../../support/until.ts'

test('a snapshot that ended with its session is reported as an outage, not as the fault of a statement', async () => {
  const database = await createTestDatabase()
  const pool = createPool(database.serviceUrl, { max: 2, applicationName: 'grandlivre test' })
  const owner = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre test owner' })
  const endSession = async (pid: number) => {
    await owner.query('select pg_terminate_backend($1)', [pid])
    await until(async () => {
      const { rows } = await owner.query('select from pg_stat_activity where pid = $1', [pid])
      return rows.length === 0
    })
  }
  const fence = {
    expression: 'pg_backend_pid()',
    beginMs: 1_000,
    accepts: async (pid: number, _: pg.ClientBase) => {
      await endSession(pid)
      return true
    },
  }
  const opened = openSnapshot(pool, '100', { waitMs: 1_000, halfMs: 1_000 }, fence)
  await expect(opened).rejects.toMatchObject({ status: 503, missing: 'the database' })
  await Promise.all([pool.end(), owner.end()])
  await database.drop()
})
