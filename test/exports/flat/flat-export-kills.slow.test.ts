/** Full exports in Parquet whose service, or the process that writes the file, is killed or stopped. */
import { describe, expect, test } from 'vitest'
import { isRunning, parquetWriters } from '../../support/fixtures/parquet.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { setFailingStage } from '../../support/stages/failing-stage.ts'
import { until } from '../../support/until.ts'

describe('an export in Parquet', () => {
  const hold = 'begin; lock table grandlivre.accounts in access exclusive mode'

  /** The only process that writes Parquet for the service with this process id. */
  async function writerOf(pid: number): Promise<number> {
    let found: number[] = []
    await until(async () => {
      found = await parquetWriters(pid)
      return found.length === 1
    })
    return found[0]!
  }

  test('whose program is killed succeeds at the next attempt; after the last attempt it fails with a reason', async ({
    onTestFinished,
  }) => {
    const stage = await setFailingStage({ movements: 200 })
    onTestFinished(() => stage.close())
    const service = await stage.start()
    await stage.sql(hold)
    for (const deaths of [1, 3]) {
      const { body } = await trigger(service.url, stage.headers, { format: 'PARQUET' })
      for (let attempt = 1; attempt <= deaths; attempt++) {
        const pid = await writerOf(process.pid)
        process.kill(pid, 'SIGKILL')
        await until(async () => !(await isRunning(pid)))
      }
      if (deaths === 1) await writerOf(process.pid)
      await stage.sql('commit')
      const job = await ended(service.url, stage.headers, body.id)
      if (deaths === 1) expect(job).toMatchObject({ status: 'DONE', rows: 200 })
      else
        expect(job.reason).toMatch(
          /^The program that writes Parquet files failed\. A new export may succeed; format=CSV has the same rows\./,
        )
      expect(await stage.stored()).toHaveLength(1)
      await stage.sql('update grandlivre.exports set latest = false')
      await stage.sql(hold)
    }
  })

  test('leaves no program running when the service is killed', async ({ onTestFinished }) => {
    const stage = await setFailingStage({ movements: 200 })
    onTestFinished(() => stage.close())
    const service = await stage.startProcess()
    await stage.sql(hold)
    await trigger(service.url, stage.headers, { format: 'PARQUET' })
    const pid = await writerOf(service.child.pid!)
    await service.kill()
    await until(async () => !(await isRunning(pid)))
    await stage.sql('commit')
  })

  test('leaves no program running when the service stops', async ({ onTestFinished }) => {
    const stage = await setFailingStage({ movements: 200 })
    onTestFinished(() => stage.close())
    const service = await stage.startProcess()
    await stage.sql(hold)
    const { body } = await trigger(service.url, stage.headers, { format: 'PARQUET' })
    const pid = await writerOf(service.child.pid!)
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([0, null])
    expect(await isRunning(pid)).toBe(false)
    await stage.sql('commit')
    const successor = await stage.start()
    expect((await ended(successor.url, stage.headers, body.id)).status).toBe('DONE')
  })
})
