/** How connections are shared, without a database. */
import { expect, test } from 'vitest'
import { FairTurns } from '../../../src/webhooks/dispatch/fair-turns.ts'

/** Work that begins when it may and ends when the test says so. */
function desk(atOnce: number) {
  const turns = new FairTurns(atOnce)
  const begun: string[] = []
  const running: { name: string; end: () => void }[] = []
  return {
    turns,
    begun,
    ask: (key: string, name = key) =>
      turns.run(key, () => {
        begun.push(name)
        return new Promise<void>((end) => void running.push({ name, end }))
      }),
    /** The one that has run longest. */
    endOne: async () => {
      await new Promise(setImmediate)
      running.shift()!.end()
      await new Promise(setImmediate)
    },
  }
}

test('no more run at once than may, and those of one key in their order', async () => {
  const { ask, begun, endOne } = desk(2)
  for (const name of ['a', 'b', 'c', 'd']) void ask('x', name)
  await new Promise(setImmediate)
  expect(begun).toEqual(['a', 'b'])
  await endOne()
  expect(begun).toEqual(['a', 'b', 'c'])
  await endOne()
  expect(begun).toEqual(['a', 'b', 'c', 'd'])
})

test('a key that comes beside thousands of another is next', async () => {
  const { ask, begun, endOne } = desk(4)
  for (let number = 0; number < 3_000; number++) void ask('crowd')
  void ask('one')
  await endOne()
  expect(begun.slice(4)).toEqual(['one'])
})

test('keys take turns', async () => {
  const { ask, begun, endOne } = desk(1)
  for (const key of ['x', 'x', 'x', 'y', 'y', 'z']) void ask(key)
  for (let end = 0; end < 5; end++) await endOne()
  expect(begun).toEqual(['x', 'x', 'y', 'z', 'x', 'y'])
})

test('what fails gives its turn back, and its error to who asked', async () => {
  const turns = new FairTurns(1)
  const failed = turns.run('x', () => Promise.reject(new Error('no')))
  const next = turns.run('x', async () => 'yes')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('yes')
})
