/**
 * Full exports to real S3 servers. Their process is killed, or the store refuses parts. Long outages are in
 * store-outage.slow.test.ts.
 */
import { expect, type TestContext } from 'vitest'
import { trigger } from '../../support/full-export.ts'
import { s3StageOf } from '../../support/s3-files.ts'
import type { SeenRequest } from '../../support/servers/s3-proxy.ts'
import { describeOnS3, type S3Server } from '../../support/servers/s3-servers.ts'
import {
  concurrently,
  exportAt,
  type FailingStage,
  killedAt,
  storeUnrecorded,
} from '../../support/stages/failing-stage.ts'
import { until } from '../../support/until.ts'

/** Whether the request uploads that part of the file that this attempt at the export writes. */
const sends = (request: SeenRequest, part: number, attempt: number, id = ''): boolean =>
  request.part === part && request.path.includes(`${id}/${attempt}-`)

/** Triggers an export that starts in its last attempt: the earlier ones are used up. */
async function triggerInLastAttempt(stage: FailingStage, url: string): Promise<string> {
  await stage.sql('update grandlivre.exports set latest = false')
  const { body } = await trigger(url, stage.headers)
  const used = await stage.sql(
    `update pgboss.job set retry_count = retry_limit
     where state = 'created' and data ->> 'exportId' = $1 returning id`,
    [body.id],
  )
  expect(used).toHaveLength(1)
  return body.id
}

describeOnS3(
  (server) => {
    describeProcess(server)
    describeRefusal(server)
  },
  { concurrent: true },
)

function describeProcess(server: () => S3Server): void {
  const test = concurrently((context: TestContext) => s3StageOf(server(), context))

  test('another process finishes the exports of processes killed at 10, 50 and 90 %', async (stage) => {
    const victims = await killedAt(stage, [0.1, 0.5, 0.9])
    expect((await stage.stored()).filter((name) => name.endsWith('(unfinished)'))).toHaveLength(3)
    await stage.noticeSilence(victims.map(({ id }) => id))
    const successor = await stage.start()
    await Promise.all(victims.map(({ id, seen }) => stage.expectRightFile(successor, id, seen)))
    for (const { id } of victims) await stage.expectRow(id, 'done', 2)
    expect(await stage.stored()).toHaveLength(3)
    expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
  })

  test('another process finishes an export whose process is killed with the file complete', async (stage) => {
    const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGatedProcess())
    await storeUnrecorded(stage, gate, id)
    await service.kill()
    await stage.sql('commit')
    await stage.noticeSilence([id])
    const successor = await stage.start()
    await stage.expectRightFile(successor, id, seen)
    await stage.expectRow(id, 'done', 2)
    expect(await stage.stored()).toHaveLength(1)
    expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
  })
}

function describeRefusal(server: () => S3Server): void {
  const test = concurrently((context: TestContext) => s3StageOf(server(), context))

  test('an export ends its transactions before the store joins the parts of its file', async (stage) => {
    const service = await stage.start()
    stage.proxy.inflict(({ joins }) => (joins ? 'silent' : undefined))
    await stage.begin(service)
    await until(() => stage.proxy.seen.some(({ joins }) => joins))
    const open = await stage.sql(
      `select state, query from pg_stat_activity where datname = current_database()
         and application_name = 'grandlivre export' and xact_start is not null`,
    )
    expect(open).toEqual([])
  })

  test('an export needs only one attempt if each part is refused once', async (stage) => {
    const refused = new Set<number>()
    stage.proxy.inflict(({ part }) => {
      if (part === undefined || refused.has(part)) return undefined
      refused.add(part)
      return 503
    })
    const service = await stage.start()
    const id = await stage.begin(service)
    await stage.expectRightFile(service, id)
    expect([...refused].sort()).toEqual([1, 2])
    await stage.expectRow(id, 'done', 1)
    expect(await stage.stored()).toHaveLength(1)
  })

  test('an export succeeds in its second attempt if a part is refused throughout the first', async (stage) => {
    stage.proxy.inflict((request) => (sends(request, 2, 1) ? 503 : undefined))
    const service = await stage.start()
    const id = await stage.begin(service)
    await stage.expectRightFile(service, id)
    expect(stage.proxy.seen.filter((request) => sends(request, 2, 1)).length).toBeGreaterThan(1)
    expect(service.logged('export.interrupted', id)).toBe(true)
    await stage.expectRow(id, 'done', 2)
    expect(await stage.stored()).toHaveLength(1)
  })

  test('an export fails if a part is refused throughout the last attempt', async (stage) => {
    // The only thread is busy until the entry of the next export is prepared.
    const { service, gate } = await stage.startGated()
    const first = await stage.begin(service)
    const id = await triggerInLastAttempt(stage, service.url)
    stage.proxy.inflict((request) => (sends(request, 2, 1, id) ? 503 : undefined))
    gate.open()
    await stage.expectFailed(service, id, /could not be stored, despite retries.* request [\w-]{36} /, 1)
    await stage.expectRightFile(service, first)
    expect(await stage.stored()).toHaveLength(1)
  })

  test('an export fails at once if the store denies access for a part', async (stage) => {
    stage.proxy.inflict(({ part }) => (part === 2 ? { status: 403, code: 'AccessDenied' } : undefined))
    const service = await stage.start()
    const id = await stage.begin(service)
    await stage.expectFailed(service, id, /free space or restore access/, 1)
    expect(await stage.stored()).toEqual([])
  })
}
