/**
 * Full exports to real S3 servers during an outage of the store. The outage really lasts thirty seconds: the pauses
 * between tries are made for that, and a shorter outage would not need all of them. A process that stops has its real
 * limit of five seconds.
 */
import { expect, type TestContext } from 'vitest'
import type { Progress } from '../../support/full-export.ts'
import { s3StageOf } from '../../support/s3-files.ts'
import { describeOnS3, type S3Server } from '../../support/servers/s3-servers.ts'
import { concurrently, exportAt } from '../../support/stages/failing-stage.ts'
import { until } from '../../support/until.ts'

describeOnS3(describeOutage, { concurrent: true })

const outageMs = 30_000

function describeOutage(server: () => S3Server): void {
  const test = concurrently((context: TestContext) => s3StageOf(server(), context, { isReal: true }))

  test('an export survives a store that refuses connections for 30 s from its start', async (stage) => {
    const service = await stage.start()
    stage.proxy.down()
    const id = await stage.begin(service)
    setTimeout(() => stage.proxy.up(), outageMs)
    const before = stage.proxy.seen.length
    const seen: Progress[] = []
    await stage.expectRightFile(service, id, seen)
    expect(seen[0]).toMatchObject({ rows: 0 })
    expect(stage.proxy.seen.length).toBeGreaterThan(before)
    // The pauses between tries are jittered: they may end just before the outage does.
    const [row] = await stage.sql('select attempt from grandlivre.exports where id = $1', [id])
    expect(row.attempt).toBeLessThanOrEqual(2)
    expect(await stage.stored()).toHaveLength(1)
  })

  test('an export survives a store that stops answering for 30 s mid-export', async (stage) => {
    const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGated())
    stage.proxy.inflict(() => 'silent')
    const before = stage.proxy.seen.length
    gate.open()
    await until(() => stage.proxy.seen.length > before)
    setTimeout(() => stage.proxy.inflict(() => undefined), outageMs)
    await stage.expectRightFile(service, id, seen)
    await stage.expectRow(id, 'done', 1)
    expect(await stage.stored()).toHaveLength(1)
  })

  test('a process stops although its store is silent, and its export is requeued', async (stage) => {
    const { service, id } = await exportAt(stage, 0.5, stage.startGatedProcess())
    // The stopped export cannot remove what it stored, and would try for more than a minute.
    stage.proxy.inflict(() => 'silent')
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([0, null])
    expect(service.logged('export.requeued', id)).toBe(true)
    await stage.expectRow(id, 'queued', 1)
  })
}
