import { expect, type TestContext } from 'vitest'
import { statusUrl } from '../support/full-export.ts'
import type { ServiceProcess } from '../support/process.ts'
import { startOwnDatabase } from '../support/servers/own-database.ts'
import { request } from '../support/service.ts'
import {
  concurrently,
  exportAt,
  type FailingStage,
  failingStageOf,
  killedAt,
  storeUnrecorded,
} from '../support/stages/failing-stage.ts'
import { until } from '../support/until.ts'

const withRealTiming = (context: TestContext) => failingStageOf(context, { isReal: true })

concurrently(withRealTiming)(
  'another process finishes the exports of processes killed at 10, 50 and 90 %',
  async (stage) => {
    const victims = await killedAt(stage, [0.1, 0.5, 0.9])
    for (const { seen } of victims) expect(seen[0]!.rows).toBeLessThan(seen[0]!.rowsTotal!)
    expect((await stage.stored()).length).toBe(3)
    // The gate stops the successor long before the rows that the killed processes reached. The successor renews twice
    // before it may continue.
    const { service: successor, gate } = await stage.startGated({ EXPORT_THREADS: '3' })
    await until(() => victims.every(({ id }) => successor.logged('export.started', id)))
    for (let i = 0; i < 2; i++) {
      await stage.sql('update grandlivre.exports set renewed_at = null')
      await until(
        async () => (await stage.sql('select from grandlivre.exports where renewed_at is null')).length === 0,
      )
      for (const { id, seen } of victims) seen.push((await stage.progress(successor, id))!)
    }
    gate.open()
    await Promise.all(
      victims.map(async ({ id, seen }) => {
        await stage.expectRightFile(successor, id, seen)
        await stage.expectRow(id, 'done', 2)
      }),
    )
  },
)

async function withOwnDatabase(context: TestContext) {
  const database = await startOwnDatabase()
  return { stage: await failingStageOf(context, { database, isReal: true }), database }
}

/** The process that lost its database still runs, and makes another export in one attempt. */
async function expectStillExports(stage: FailingStage, service: ServiceProcess): Promise<void> {
  expect([service.child.exitCode, service.child.signalCode]).toEqual([null, null])
  const id = await stage.begin(service)
  await stage.expectRightFile(service, id)
  await stage.expectRow(id, 'done', 1)
}

const test = concurrently(withOwnDatabase)

test('an export survives a restart of the database', async ({ stage, database }) => {
  const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGatedProcess())
  await database.stop()
  await database.start()
  gate.open()
  await stage.expectRightFile(service, id, seen)
  await stage.expectRow(id, 'done', 2)
  await expectStillExports(stage, service)
  expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
})

test('an export survives a database that is away for a while', async ({ stage, database }) => {
  const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGatedProcess())
  await database.stop()
  gate.open()
  // Everything that uses the database has noticed that it is away: the export, the queue, callers.
  await until(() => service.logged('export.interrupted', id) && service.logged('queue.error'))
  expect((await request(statusUrl(service.url, id), stage.headers)).status).toBe(503)
  // The attempt removed its file without the database.
  expect(await stage.stored()).toEqual([])
  await database.start()
  await stage.expectRightFile(service, id, seen)
  await stage.expectRow(id, 'done', 2)
  await expectStillExports(stage, service)
  expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
})

test('an export whose file was complete but not recorded at a restart is made again', async ({
  stage,
  database,
}) => {
  const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGated())
  await storeUnrecorded(stage, gate, id)
  await database.stop()
  await database.start()
  await stage.expectRightFile(service, id, seen)
  await stage.expectRow(id, 'done', 2)
  expect(await stage.stored()).toHaveLength(1)
  expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
})
