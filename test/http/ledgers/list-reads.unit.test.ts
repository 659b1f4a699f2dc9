import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type LedgerList, ListReads } from '../../../src/http/stream/list-reads.ts'

/** Reads of lists, which end when the test ends them. */
function stage(pauseMs = 3_600_000) {
  const reads = new ListReads(pauseMs)
  const begun: PromiseWithResolvers<LedgerList>[] = []
  const read = () => {
    const running = Promise.withResolvers<LedgerList>()
    begun.push(running)
    return running.promise
  }
  const ask = (list: string) => reads.read(list, read)
  const askAfterPause = (token: string, list: string) => reads.readAfterPause(token, list, read)
  /** Returns once this many reads have begun, and fails if more do. */
  const begins = async (reads: number) => {
    while (begun.length < reads) await delay(1)
    await settle()
    expect(begun).toHaveLength(reads)
  }
  return { begun, begins, ask, askAfterPause }
}

const list = (tag: string): LedgerList => ({ tag, lines: [], bodies: new Map() })
/** Waits long enough for reads that are due to begin. */
const settle = () => delay(5)

test('requests before a read begins share it; requests while it runs share the next', async () => {
  const { begun, begins, ask } = stage()
  const first = [ask('7'), ask('7'), ask('7')]
  await begins(1)
  const later = [ask('7'), ask('7')]
  await begins(1)
  begun[0]!.resolve(list('a'))
  expect(new Set(await Promise.all(first))).toEqual(new Set([list('a')]))
  await begins(2)
  begun[1]!.resolve(list('b'))
  expect(new Set(await Promise.all(later))).toEqual(new Set([list('b')]))
})

test('reading one list does not delay another', async () => {
  const { begins, ask } = stage()
  void ask('7')
  void ask('8')
  await begins(2)
})

test('a failed read is not given to later requests', async () => {
  const { begun, begins, ask } = stage()
  const failing = ask('7')
  await begins(1)
  begun[0]!.reject(new Error('away'))
  await expect(failing).rejects.toThrow('away')
  const next = ask('7')
  await begins(2)
  begun[1]!.resolve(list('a'))
  expect(await next).toEqual(list('a'))
})

test('a token reads once in each pause, without delaying other tokens', async () => {
  const { begun, begins, askAfterPause } = stage()
  void askAfterPause('1', '7')
  await begins(1)
  begun[0]!.resolve(list('a'))
  void askAfterPause('1', '7')
  await begins(1)
  void askAfterPause('2', '7')
  await begins(2)
})

test('requests of a token share the read after its pause', async () => {
  const { begun, begins, askAfterPause } = stage(20)
  const first = askAfterPause('1', '7')
  await begins(1)
  begun[0]!.resolve(list('a'))
  await first
  const paused = [askAfterPause('1', '7'), askAfterPause('1', '7')]
  await begins(2)
  begun[1]!.resolve(list('b'))
  expect(new Set(await Promise.all(paused))).toEqual(new Set([list('b')]))
})
