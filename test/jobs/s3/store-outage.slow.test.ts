/**
 * Full exports to real S3 servers through an outage of the store. The outage really lasts thirty seconds: the pauses
 * between tries are made for that, and nothing shorter would cross all of them. The stop of a process has its real
 * bound of five seconds.
 */
import { expect, test } from 'vitest'
import type { Progress } from '../../support/full-export.ts'
import { s3StageOf } from '../../support/s3-files.ts'
import { describeOnS3, type S3Server } from '../../support/servers/s3-servers.ts'
import { until } from '../../support/until.ts'

const timeout = 300_000

describeOnS3(describeOutage, { concurrent: true })

const outageMs = 30_000

function describeOutage(server: () => S3Server): void {
  test.concurrent('an export survives a store that refuses connections for 30 s from its start', {
    timeout,
  }, async (context) => {
    const stage = await s3StageOf(server(), context, { isReal: true })
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

  test.concurrent('an export survives a store that stops answering for 30 s mid-export', {
    timeout,
  }, async (context) => {
    const stage = await s3StageOf(server(), context, { isReal: true })
    const { service, gate } = await stage.startGated()
    const id = await stage.begin(service)
    const seen = [await stage.readUpTo(0.5, gate, service, id)]
    stage.proxy.inflict(() => 'silent')
    const before = stage.proxy.seen.length
    gate.open()
    await until(() => stage.proxy.seen.length > before)
    setTimeout(() => stage.proxy.inflict(() => undefined), outageMs)
    await stage.expectRightFile(service, id, seen)
    await stage.expectRow(id, 'done', 1)
    expect(await stage.stored()).toHaveLength(1)
  })

  test.concurrent('a process stops although its store is silent, and its export is requeued', {
    timeout,
  }, async (context) => {
    const stage = await s3StageOf(server(), context, { isReal: true })
    const { service, gate } = await stage.startGatedProcess()
    const id = await stage.begin(service)
    await stage.readUpTo(0.5, gate, service, id)
    // The stopped export cannot remove what it stored, and would try for more than a minute.
    stage.proxy.inflict(() => 'silent')
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([0, null])
    expect(service.logged('export.requeued', id)).toBe(true)
    await stage.expectRow(id, 'queued', 1)
  })
}
