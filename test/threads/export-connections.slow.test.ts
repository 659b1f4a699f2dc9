/**
 * Connections of exports, with real waits: an idle connection closes after ten seconds, and a caller waits five seconds
 * for a free one.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { defaultExportsPerThread } from '../../src/config.ts'
import { asAddress } from '../../src/db/address.ts'
import { createPool } from '../../src/db/pool.ts'
import { openSnapshot } from '../../src/exports/read/snapshot.ts'
import { startExport } from '../../src/exports/run/start.ts'
import { noTelemetry } from '../../src/telemetry/telemetry.ts'
import { createThreads } from '../../src/threads/pool.ts'
import { defaultTiming } from '../../src/timing.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))

test('a thread opens two connections at its start, and keeps two after a burst of exports', async () => {
  const { schemaId, folderId } = folders.first
  const owner = { schemaId, folderId, today: '2025-01-01', timeZone: 'Europe/Paris', withEmployees: true }
  const threads = createThreads(1, noTelemetry, {
    database: asAddress(database.serviceUrl),
    exportsPerThread: defaultExportsPerThread,
    store: { kind: 'filesystem', folder: '', publicUrl: '', signingKeys: [] },
    storeTiming: defaultTiming.store,
    timeZone: 'Europe/Paris',
  })
  const connections = async () => {
    const { rows } = await staff.client.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where datname = current_database() and application_name = 'grandlivre export' order by backend_start`,
    )
    return rows.map(({ pid }) => pid)
  }
  try {
    await until(async () => (await connections()).length === 2)
    const task = { what: 'banks', owner, form: 'json', encoding: 'identity' } as const
    const asked = { task, schemaId: owner.schemaId, seen: undefined }
    const exports = [1, 2, 3, 4].map(() => startExport(threads, asked, true))
    for (const reader of exports) while (await reader.read());
    expect((await connections()).length).toBeGreaterThan(2)
    await until(async () => (await connections()).length <= 2)
    // Connections that are not kept close at about the same time.
    await delay(2_000)
    expect(await connections()).toHaveLength(2)
  } finally {
    await threads.destroy()
  }
})

test('a snapshot that gets only one of its two connections returns it', async () => {
  const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'test' })
  try {
    await expect(openSnapshot(pool, folders.first.schemaId)).rejects.toMatchObject({
      code: 'ERR-UNAVAILABLE',
    })
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1])
    const client = await pool.connect()
    const listeners = client.listenerCount('error')
    client.release()
    expect(listeners, 'only the listener of every pooled client is left').toBe(1)
  } finally {
    await pool.end()
  }
})
