import { expect, test } from 'vitest'
import { createReading } from '../../src/telemetry/reading.ts'

test('a reading is cached for some seconds, and concurrent callers share one reading', async () => {
  let [reads, now] = [0, 0]
  const read = async () => {
    reads += 1
    return reads
  }
  const reading = createReading(read, () => now)
  expect(await Promise.all([reading.latest(), reading.latest()])).toEqual([1, 1])
  now = 1_999
  expect(await reading.latest()).toBe(1)
  now = 2_000
  expect(await reading.latest()).toBe(2)
})

test('a failed reading is reported as absent, and is tried again', async () => {
  let reads = 0
  const reading = createReading(() => {
    reads += 1
    if (reads === 1) throw new Error('the database is away')
    return reads
  })
  expect(await reading.latest()).toBeUndefined()
  expect(await reading.latest()).toBe(2)
})

test('a later failed reading is absent as well, as its old value would be shown forever', async () => {
  let [isAway, now] = [false, 0]
  const read = () => {
    if (isAway) throw new Error('the database is away')
    return 1
  }
  const reading = createReading(read, () => now)
  expect(await reading.latest()).toBe(1)
  ;[isAway, now] = [true, 2_000]
  expect(await reading.latest()).toBeUndefined()
})

test('a reading that never ends blocks no caller, and is not started twice', async () => {
  let reads = 0
  const reading = createReading(
    () => {
      reads += 1
      return new Promise<never>(() => {})
    },
    undefined,
    20,
  )
  expect(await Promise.all([reading.latest(), reading.latest()])).toEqual([undefined, undefined])
  expect(await reading.latest()).toBeUndefined()
  expect(reads).toBe(1)
})
