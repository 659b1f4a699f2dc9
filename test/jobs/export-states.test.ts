/** The statements that change an export's state, checked against the table of transitions. */
import type { PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { createPool, inTenant } from '../../src/db/pool.ts'
import { type JobState, jobStates } from '../../src/jobs/job.ts'
import * as jobs from '../../src/jobs/jobs.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const { first } = folders

/**
 * The events of a job. A process claims it, from the queue or from a dead process; releases it for a retry; stores its
 * file; or fails for good. `end` needs no claim: staff, retention or a dead letter ends the job.
 */
const jobEvents = ['claim', 'release', 'finish', 'fail', 'end'] as const
type JobEvent = (typeof jobEvents)[number]

/** The state after each event. If an event is missing, its statement changes nothing. */
const transitions: Record<JobState, Partial<Record<JobEvent, JobState>>> = {
  queued: { claim: 'running', end: 'failed' },
  running: { claim: 'running', release: 'queued', finish: 'done', fail: 'failed', end: 'failed' },
  done: {},
  failed: {},
}

const file = {
  fileKey: 'k',
  rows: 1,
  bytes: 1,
  sha256: '0'.repeat(64),
  fileBytes: 1,
  fileSha256: '0'.repeat(64),
  debit: 1n,
  credit: 1n,
  snapshotOn: '2026-01-01',
  notes: undefined,
}

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))

test('each statement applies only in the states that allow its event, and no statement leaves a final state', async () => {
  const id = `export_${'e'.repeat(32)}`
  const epoch = Number(
    (await staff.client.query('select last_value from grandlivre.epoch')).rows[0].last_value,
  )
  const claim = { schemaId: first.schemaId, exportId: id, attempt: 1, epoch }
  const events: Record<JobEvent, (client: PoolClient, key: jobs.Claim) => Promise<unknown>> = {
    claim: (client, key) => jobs.claimExport(client, key),
    release: (client, key) => jobs.releaseExport(client, key),
    finish: (client, key) => jobs.finishExport(client, key, file),
    fail: (client, key) => jobs.failExport(client, key, 'reason'),
    end: (client, key) => jobs.endExport(client, key, 'reason'),
  }
  const prepare: Record<string, string> = {
    queued: `state = 'queued'`,
    running: `state = 'running'`,
    done: `state = 'done', finished_at = now(), sha256 = repeat('0', 64), debit = 1, credit = 1, snapshot_on = now()`,
    failed: `state = 'failed', finished_at = now(), reason = 'reason'`,
  }
  const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'test states' })
  const owner = staff.client
  const stateAfter = async (state: string, event: JobEvent, attempt: number) => {
    await owner.query('delete from grandlivre.exports where id = $1', [id])
    await owner.query(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, attempt, epoch)
       values ($1, $2, $3, '1.0.0', 'JSON', repeat('e', 64), 'request', 1, $4)`,
      [first.schemaId, id, first.folderId, epoch],
    )
    await owner.query(`update grandlivre.exports set ${prepare[state]} where id = $1`, [id])
    await inTenant(pool, first.schemaId, (client) => events[event](client, { ...claim, attempt }))
    return (await owner.query('select state from grandlivre.exports where id = $1', [id])).rows[0].state
  }
  for (const state of jobStates)
    for (const event of jobEvents)
      expect(await stateAfter(state, event, 1), `${state}, ${event}`).toBe(transitions[state][event] ?? state)
  // A process whose attempt is not the current one changes nothing.
  for (const event of ['release', 'finish', 'fail'] as const)
    for (const attempt of [0, 2]) expect(await stateAfter('running', event, attempt), event).toBe('running')
  await stateAfter('done', 'claim', 1)
  await expect(
    owner.query(`update grandlivre.exports set state = 'queued' where id = $1`, [id]),
  ).rejects.toThrow('final')
  await owner.query('delete from grandlivre.exports where id = $1', [id])
  await pool.end()
})

test('a claim of a former epoch can only be released, and only if its attempt was not claimed again', async () => {
  const key = { schemaId: first.schemaId, exportId: `export_${'f'.repeat(32)}` }
  const owner = staff.client
  await owner.query(
    `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id)
     values ($1, $2, $3, '1.0.0', 'JSON', repeat('f', 64), 'request')`,
    [key.schemaId, key.exportId, first.folderId],
  )
  const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'test claims' })
  const run = <Result>(statement: (client: PoolClient) => Promise<Result>) =>
    inTenant(pool, key.schemaId, statement)
  const claim = async (): Promise<jobs.Claim> => {
    const { attempt, epoch } = (await run((client) => jobs.claimExport(client, key)))!
    return { ...key, attempt, epoch }
  }
  /** Makes the name in the database that of a former primary. */
  const becomeOther = () => owner.query(`select setval('grandlivre.server_name', 1)`)
  const progress = { rows: 1, rowsTotal: undefined, bytes: 1 }
  const state = async () =>
    (await owner.query('select state from grandlivre.exports where id = $1', [key.exportId])).rows[0].state

  const survived = await claim()
  expect(await run((client) => jobs.renewExport(client, survived, progress))).toBe(true)
  await becomeOther()
  expect(await run((client) => jobs.renewExport(client, survived, progress))).toBe(false)
  expect(await run((client) => jobs.finishExport(client, survived, file))).toBe(undefined)
  expect(await run((client) => jobs.failExport(client, survived, 'reason'))).toBe(undefined)
  expect(await state()).toBe('running')
  expect(await run((client) => jobs.releaseExport(client, survived))).toBe(true)
  expect(await state()).toBe('queued')

  const lost = await claim()
  // The promoted server lacks the claim, and gives its attempt to another process.
  await owner.query(`update grandlivre.exports set state = 'queued', attempt = attempt - 1`)
  await becomeOther()
  const other = await claim()
  expect(other.attempt).toBe(lost.attempt)
  expect(await run((client) => jobs.finishExport(client, lost, file))).toBe(undefined)
  expect(await run((client) => jobs.releaseExport(client, lost))).toBe(false)
  expect(await run((client) => jobs.finishExport(client, other, file))).toBe(first.folderId)
  await pool.end()
})
