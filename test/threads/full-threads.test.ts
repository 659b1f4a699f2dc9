/** More exports than the threads can take: streamed exports are refused, and full exports wait. */
import { expect, test } from 'vitest'
import { defaultExportsPerThread, limits } from '../../src/config.ts'
import { defaultTiming } from '../../src/timing.ts'
import { forTests } from '../support/for-tests.ts'
import { downloadFile, ended, trigger } from '../support/full-export.ts'
import { request } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

/** The shortest polling interval that the queue allows. */
const pollSeconds = 0.5

const stage = forTests(() => {
  const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
  const exports = { ...defaultTiming.exports, pollSeconds }
  return setExportStage({ exportThreads: 1, rateLimit }, { ...defaultTiming, exports })
})

test('a full export that finds no free thread waits for one, and uses up no attempt', async () => {
  const { service, company } = stage
  const { client } = stage.staff
  await client.query('begin; lock table grandlivre.banks in access exclusive mode')
  const capacity = defaultExportsPerThread + limits.exportQueueMax
  const statuses: number[] = []
  const requests = Array.from({ length: capacity + 1 }, async () => {
    const { status } = await request(`${service.url}/api/v1/mad/banks?version=1.0.0`, company)
    statuses.push(status)
  })
  // All other requests are accepted by now: none of them is answered before the lock is released.
  await until(() => statuses.length > 0)
  expect(statuses).toEqual([503])
  const { body } = await trigger(service.url, company)
  const requeued = () =>
    service.lines.filter((line) => line.includes('export.requeued') && line.includes(body.id))
  // The export is requeued four times, and only three attempts are allowed.
  await until(() => requeued().length >= 4)
  expect(requeued().every((line) => line.includes('"because":"noThread"'))).toBe(true)
  await client.query('rollback')
  await Promise.all(requests)
  expect(statuses.filter((status) => status === 200)).toHaveLength(capacity)
  const job = await ended(service.url, company, body.id)
  expect(job.status).toBe('DONE')
  expect((await downloadFile(job.url!)).sha256).toBe(job.sha256)
  // All attempts are left, every requeue was delayed, and every new entry contains the time since which the export
  // waits.
  const { rows } = await client.query(
    `select retry_count, retry_limit, start_after - created_on >= make_interval(secs => $2) as paused,
       (data ->> 'since')::timestamptz = min(date_trunc('milliseconds', start_after)) over () as "waitsSince"
     from pgboss.job where data ->> 'exportId' = $1 order by created_on`,
    [body.id, pollSeconds],
  )
  expect(rows.length).toBeGreaterThanOrEqual(5)
  for (const [i, row] of rows.entries())
    expect(row).toEqual({ retry_count: 0, retry_limit: 2, paused: i > 0, waitsSince: i > 0 ? true : null })
})
