/**
 * Many small full exports at once. The queue is polled once a minute here, so an entry that waits for the next poll makes
 * its test run out of time.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { defaultTiming } from '../../../src/timing.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { lockWaits } from '../../support/ledgers/lock-waits.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { type ExportStage, setExportStage } from '../../support/stages/export-stage.ts'
import { metricsOf, sumOf } from '../../support/telemetry/scrape.ts'
import { until } from '../../support/until.ts'

const timing = { ...defaultTiming, exports: { ...defaultTiming.exports, pollSeconds: 60 } }
const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }

interface Stage extends ExportStage {
  /** Folder of the store. */
  folder: string
  /** A second process on the same database and store. */
  join(): Promise<TestService>
  /** Makes exports that begin wait for a lock, until the returned function is called. */
  hold(): Promise<() => Promise<unknown>>
  /** Triggers this many exports, one after the other. */
  triggered(count: number): Promise<string[]>
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>
}

async function stageOf(exportThreads: number): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-many-'))
  const settings = { exportThreads, rateLimit, store: { kind: 'filesystem', folder } as const }
  const metrics = { host: '127.0.0.1', port: 0, allowedHosts: [] }
  const stage = await setExportStage({ ...settings, metrics }, timing)
  onTestFinished(async () => {
    await stage.close()
    await rm(folder, { recursive: true, force: true })
  })
  const { client } = stage.staff
  let days = 0
  return {
    ...stage,
    folder,
    join: async () => {
      const service = await startTestService(stage.database, settings, { timing })
      let stopped: Promise<void> | undefined
      const stop = () => (stopped ??= service.stop())
      onTestFinished(stop)
      return { ...service, stop }
    },
    hold: async () => {
      await client.query('begin; lock table grandlivre.accounts in access exclusive mode')
      return () => client.query('rollback')
    },
    triggered: async (count) => {
      const ids: string[] = []
      for (const end = days + count; days < end; days++) {
        const endDate = new Date(Date.UTC(2025, 0, 1 + days)).toISOString().slice(0, 10)
        const { body } = await trigger(stage.service.url, stage.company, {
          format: 'TRA',
          startDate: '2025-01-01',
          endDate,
        })
        ids.push(body.id)
      }
      return ids
    },
    sql: async (text, values = []) => (await client.query(text, values)).rows,
  }
}

/** Ids of the exports in lines of that event, in order. */
const logged = ({ lines }: TestService, event: string): string[] =>
  lines.filter((line) => line.includes(`"${event}"`)).map((line) => JSON.parse(line).exportId)
const begunBy = (service: TestService) => logged(service, 'export.started')
const requeuedBy = (service: TestService) => logged(service, 'export.requeued')
/** How many exports a process runs. */
const runningIn = (service: TestService) =>
  begunBy(service).length -
  ['export.done', 'export.interrupted', 'export.requeued'].flatMap((event) => logged(service, event)).length

const doneOf = async ({ sql }: Stage) =>
  (await sql<{ id: string }>(`select id from grandlivre.exports where state = 'done'`)).map(({ id }) => id)

test('a slot claims the next export when one has ended, in the order of the triggers, until none is left', async () => {
  const stage = await stageOf(1)
  const release = await stage.hold()
  const ids = await stage.triggered(50)
  await until(async () => (await lockWaits(stage.staff.client, 'accounts')) > 0)
  await release()
  for (const id of ids) expect((await ended(stage.service.url, stage.company, id)).status).toBe('DONE')
  expect(begunBy(stage.service)).toEqual(ids)
  // Each export has its time in the queue as a stage.
  const queue = { grandlivre_export_stage: 'queue' }
  const samples = await metricsOf(stage.service)
  expect(sumOf(samples, 'grandlivre_export_duration_seconds_count', queue)).toBe(ids.length)
  const [waited] = await stage.sql<{ seconds: number }>(
    `select sum(extract(epoch from started_on - created_on))::float8 as seconds from pgboss.job where name = 'exports'`,
  )
  expect(sumOf(samples, 'grandlivre_export_duration_seconds_sum', queue)).toBeCloseTo(waited!.seconds, 0)
})

test('processes share a burst and run each export once; a process that stops returns its exports to the queue', async () => {
  const stage = await stageOf(2)
  const { service } = stage
  const second = await stage.join()
  const release = await stage.hold()
  const ids = await stage.triggered(240)
  await release()
  await until(async () => (await doneOf(stage)).length >= 10)
  const releaseAgain = await stage.hold()
  // All running exports wait for the lock. A slot whose connection was lost has no export until the next poll.
  await until(async () => {
    const waiting = await lockWaits(stage.staff.client, 'accounts')
    return runningIn(second) > 0 && waiting === runningIn(service) + runningIn(second)
  })
  const stopped = second.stop()
  await until(() => requeuedBy(second).length > 0)
  const left = ids.length - (await doneOf(stage)).length
  await releaseAgain()
  await stopped
  expect(left).toBeGreaterThan(0)
  for (const id of ids) expect((await ended(service.url, stage.company, id)).status).toBe('DONE')
  const begun = [service, second].map((each) => begunBy(each).length)
  expect(Math.min(...begun)).toBeGreaterThan(0)
  expect(begun[0]! + begun[1]!).toBe(ids.length + requeuedBy(second).length)
  // The last entry completes after its export has ended.
  await until(async () => {
    const [queue] = await stage.sql<{ active: number; attempts: number }>(
      `select count(*) filter (where state <> 'completed')::int as active, max(retry_count) as attempts
       from pgboss.job where name = 'exports'`,
    )
    expect(queue!.attempts).toBe(0)
    return queue!.active === 0
  })
})

test('a slot whose export failed takes no other export until the next poll or trigger', async () => {
  const stage = await stageOf(1)
  const release = await stage.hold()
  const ids = await stage.triggered(10)
  await until(() => begunBy(stage.service).length === 1)
  await rm(stage.folder, { recursive: true, force: true })
  await writeFile(stage.folder, 'no folder')
  await release()
  // The triggers came while the slot was busy, so the slot looks for an entry once more after the first export.
  await until(() => logged(stage.service, 'export.interrupted').length === 2)
  for (let requests = 0; requests < 20; requests++) await metricsOf(stage.service)
  expect(begunBy(stage.service)).toEqual(ids.slice(0, 2))
  await rm(stage.folder)
  const [last] = await stage.triggered(1)
  for (const id of [...ids.slice(2), last!])
    expect((await ended(stage.service.url, stage.company, id)).status).toBe('DONE')
})
