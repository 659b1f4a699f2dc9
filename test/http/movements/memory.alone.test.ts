/** A slow client must cost neither memory nor other callers' time. Measures its own process. */
import { beforeAll, expect, test } from 'vitest'
import { download, movementsUrl, slowReader } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice, runningQueries } from '../../support/ledgers/large-exercice.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const movements = 60_000

const stage = forTests(setExportStage)
let url: string

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, movements)
  url = movementsUrl(stage.service.url, { idExercice: largeExercice })
})

const megabyte = 1024 * 1024

test('memory stays flat and small routes still answer while a client reads a megabyte a second', async () => {
  // After two downloads V8 and the allocator hold the memory that they keep for good.
  await download(url, stage.company)
  await download(url, stage.company)
  const before = process.memoryUsage.rss()
  let peak = before
  const reader = await slowReader(url, stage.company)
  for (let second = 0; second < 4; second++) {
    const next = new Promise((resolve) => setTimeout(resolve, 1000))
    await reader.read(megabyte)
    const small = await download(`${stage.service.url}/api/v1/key/info`, stage.company)
    expect(small.status).toBe(200)
    await next
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  expect(reader.bytes).toBeLessThan(10 * megabyte)
  expect((peak - before) / megabyte).toBeLessThan(40)
  expect(await runningQueries(stage.staff.client), 'the database waits for the client').not.toEqual([])
  await reader.read(Number.POSITIVE_INFINITY)
  expect(reader.message.complete).toBe(true)
  expect(reader.bytes).toBeGreaterThan(60 * megabyte)
  expect(reader.message.trailers).toEqual({
    'x-row-count': String(movements),
    'x-content-sha256': reader.digest(),
  })
})
