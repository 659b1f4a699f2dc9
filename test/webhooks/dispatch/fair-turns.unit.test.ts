/** How turns on connections are shared, without a database. */
import { expect, test } from 'vitest'
import { FairTurns } from '../../../src/webhooks/dispatch/fair-turns.ts'

/** Work that starts when it gets its turn, and ends when the test says so. */
function startTurns(atOnce: number) {
  const turns = new FairTurns(atOnce)
  const started: string[] = []
  const running: { name: string; end: () => void }[] = []
  return {
    turns,
    started,
    run: (key: string, name = key) =>
      turns.run(key, () => {
        started.push(name)
        return new Promise<void>((end) => void running.push({ name, end }))
      }),
    /** Ends the work that has run the longest. */
    endOne: async () => {
      await new Promise(setImmediate)
      running.shift()!.end()
      await new Promise(setImmediate)
    },
  }
}

test('at most the limit of work runs at once, and work of one key runs in order', async () => {
  const { run, started, endOne } = startTurns(2)
  for (const name of ['a', 'b', 'c', 'd']) void run('x', name)
  await new Promise(setImmediate)
  expect(started).toEqual(['a', 'b'])
  await endOne()
  expect(started).toEqual(['a', 'b', 'c'])
  await endOne()
  expect(started).toEqual(['a', 'b', 'c', 'd'])
})

test('a new key is next, however much work of another key waits', async () => {
  const { run, started, endOne } = startTurns(4)
  for (let number = 0; number < 3_000; number++) void run('crowd')
  void run('one')
  await endOne()
  expect(started.slice(4)).toEqual(['one'])
})

test('keys take turns', async () => {
  const { run, started, endOne } = startTurns(1)
  for (const key of ['x', 'x', 'x', 'y', 'y', 'z']) void run(key)
  for (let end = 0; end < 5; end++) await endOne()
  expect(started).toEqual(['x', 'x', 'y', 'z', 'x', 'y'])
})

test('failed work frees its turn, and its caller gets the error', async () => {
  const turns = new FairTurns(1)
  const failed = turns.run('x', () => Promise.reject(new Error('no')))
  const next = turns.run('x', async () => 'yes')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('yes')
})
