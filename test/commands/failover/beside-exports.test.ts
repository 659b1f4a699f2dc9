/** A failover while processes work on full exports: in each order of their locks both go on. */
import type { ClientBase, Pool, QueryConfig } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { finish } from '../../../src/jobs/end.ts'
import { claimExport } from '../../../src/jobs/jobs.sql.ts'
import { cli } from '../../support/cli.ts'
import { createTenants, folders, type Staff } from '../../support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../../support/servers/database.ts'
import { until } from '../../support/until.ts'

const { schemaId, folderId } = folders.first
const idOf = (letter: string) => `export_${letter.repeat(32)}`
const stored = {
  fileKey: 'file',
  rows: 1,
  bytes: 1,
  sha256: 'a'.repeat(64),
  fileBytes: 1,
  fileSha256: 'a'.repeat(64),
  debit: 0n,
  credit: 0n,
  snapshotOn: '2026-01-01',
  notes: undefined,
}

let database: TestDatabase
let staff: Staff
/** Of a process that works on full exports. */
let pool: Pool

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  await staff.client.query('set search_path = grandlivre')
  pool = createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'grandlivre test' })
})
afterAll(async () => {
  await pool?.end()
  await staff?.end()
  await database?.drop()
})

async function addExport(letter: string, state: 'queued' | 'running'): Promise<void> {
  // As after an hour: it no longer answers triggers.
  await staff.client.query(
    `insert into exports (schema_id, id, folder_id, version, format, identity, request_id, state, attempt, latest)
     values ($1, $2, $3, '1.0.0', 'JSON', repeat($4, 64), 'test', $5, $6, false)`,
    [schemaId, idOf(letter), folderId, letter, state, state === 'running' ? 1 : 0],
  )
}

async function stateOf(letter: string): Promise<string> {
  const { rows } = await staff.client.query('select state from exports where id = $1', [idOf(letter)])
  return rows[0].state
}

/** Statements of this program that wait for a lock. */
async function waiting(program: string): Promise<number> {
  const { rowCount } = await staff.client.query(
    `select from pg_stat_activity
     where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`,
    [program],
  )
  return rowCount!
}

/** Passes everything on, but what locks events only after the pause. */
function pausing(client: ClientBase, pause: () => Promise<void>): ClientBase {
  const query = async (statement: string | QueryConfig, values?: unknown[]) => {
    if (JSON.stringify(statement).includes('lock_events')) await pause()
    return client.query(statement, values)
  }
  return Object.assign(Object.create(client) as ClientBase, { query })
}

test('a full export that ends at the same moment is done, and the others fail', async () => {
  for (const letter of ['a', 'b', 'c']) await addExport(letter, 'running')
  const released = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const ending = inTransaction(pool, (client) => {
    // Its row is locked, and the events of its schema are not.
    const paused = pausing(client, () => {
      reached.resolve()
      return released.promise
    })
    return finish(paused, { schemaId, exportId: idOf('b'), attempt: 1 }, stored)
  })
  await Promise.race([reached.promise, ending])
  const failover = cli(database.ownerUrl, 'failover', '--yes')
  await until(async () => (await waiting('grandlivre cli')) === 1)
  released.resolve()
  const [isDone, result] = await Promise.all([ending.catch(String), failover])
  expect([isDone, result]).toEqual([true, { code: 0, out: expect.any(String), error: '' }])
  expect([await stateOf('a'), await stateOf('b'), await stateOf('c')]).toEqual(['failed', 'done', 'failed'])
})

test('a full export that is claimed at the same moment reads nothing from before', async () => {
  await addExport('d', 'running')
  await addExport('e', 'queued')
  const held = await pool.connect()
  await held.query('begin; select lock_events(100)')
  const failover = cli(database.ownerUrl, 'failover', '--yes')
  await until(async () => (await waiting('grandlivre cli')) === 1)
  const claiming = inTransaction(pool, (client) => claimExport(client, { schemaId, exportId: idOf('e') }))
  // Either it waits for the failover, or it has read the former epoch by now.
  await Promise.race([claiming, until(async () => (await waiting('grandlivre test')) === 1)])
  await held.query('commit')
  held.release()
  expect(await failover).toMatchObject({ code: 0, error: '' })
  const { rows } = await staff.client.query('select last_value as epoch from epoch')
  expect((await claiming)?.seen?.split('.')[1]).toBe(rows[0].epoch)
})

test('the rendering of the processes stays, whatever the TIME_ZONE of the command', async () => {
  await staff.client.query(`update service_state set rendering = 'theirs'`)
  expect(await cli(database.ownerUrl, 'failover', '--yes')).toMatchObject({ code: 0, error: '' })
  const { rows } = await staff.client.query('select rendering from service_state')
  expect(rows).toEqual([{ rendering: 'theirs' }])
})
