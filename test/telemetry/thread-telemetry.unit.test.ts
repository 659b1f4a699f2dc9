import { expect, onTestFinished, test } from 'vitest'
import type { SharedCounterName } from '../../src/telemetry/metrics.ts'
import { readThreadMemory, shareThreadMemory, ThreadTelemetry } from '../../src/telemetry/thread-telemetry.ts'

const pool = (totalCount: number) => ({ totalCount, idleCount: 1, waitingCount: 0, options: { max: 16 } })

function inThread(memory: SharedArrayBuffer, threadId: number): ThreadTelemetry {
  const telemetry = new ThreadTelemetry(memory, threadId)
  onTestFinished(() => telemetry.close())
  return telemetry
}

test('threads add to the same counters', () => {
  const memory = shareThreadMemory()
  for (const threadId of [1, 2]) {
    inThread(memory, threadId).count('grandlivre.database.errors', { class: '53' })
    inThread(memory, threadId).count('grandlivre.replica.fallbacks', { reason: 'promoted' })
  }
  const main = readThreadMemory(memory)
  const counted = (name: SharedCounterName) => main.counts(name).filter(({ value }) => value > 0)
  expect(counted('grandlivre.database.errors')).toEqual([{ value: 2, labels: { class: '53' } }])
  expect(counted('grandlivre.replica.fallbacks')).toEqual([{ value: 2, labels: { reason: 'promoted' } }])
})

test('the pools of a dead thread are no longer counted, but the time-outs of its callers still are', () => {
  const memory = shareThreadMemory()
  const main = readThreadMemory(memory)
  for (const threadId of [1, 2]) {
    const telemetry = inThread(memory, threadId)
    telemetry.watchPool('grandlivre export', pool(threadId))
    telemetry.count('db.client.connection.timeouts', {
      'db.client.connection.pool.name': 'grandlivre export',
    })
  }
  expect(main.pools(new Set([1, 2])).map(({ totalCount }) => totalCount)).toEqual([1, 2])
  expect(main.pools(new Set([2])).map(({ totalCount, timeouts }) => [totalCount, timeouts])).toEqual([[2, 1]])
  expect([...main.formerTimeouts]).toEqual([['grandlivre export', 1]])
  // The slot is free for the thread that replaces it.
  inThread(memory, 3).watchPool('grandlivre export', pool(3))
  expect(main.pools(new Set([2, 3])).map(({ totalCount }) => totalCount)).toEqual([3, 2])
})

test('a thread is busy while it has a task', async () => {
  const memory = shareThreadMemory()
  const main = readThreadMemory(memory)
  const telemetry = inThread(memory, 1)
  telemetry.watchPool('grandlivre export', pool(2))
  inThread(memory, 2).watchPool('grandlivre export', pool(2))
  const { promise, resolve } = Promise.withResolvers<void>()
  const running = Promise.all([telemetry.during(promise), telemetry.during(promise)])
  expect(main.busy([1, 2])).toBe(1)
  resolve()
  await running
  expect(main.busy([1, 2])).toBe(0)
})

test('threads beyond the size of the shared memory are not counted', () => {
  const memory = shareThreadMemory()
  for (let threadId = 1; threadId <= 300; threadId += 1)
    inThread(memory, threadId).watchPool('grandlivre export', pool(1))
  const all = new Set(Array.from({ length: 300 }, (_, index) => index + 1))
  expect(readThreadMemory(memory).pools(all)).toHaveLength(256)
})
