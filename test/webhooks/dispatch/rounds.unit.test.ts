/** Whose subscriptions are searched when, without a database. */
import { beforeEach, expect, test } from 'vitest'
import { Rounds, type Search } from '../../../src/webhooks/dispatch/rounds.ts'

const pauseMs = 50
const nobody = new Set<string>()

let rounds: Rounds
beforeEach(() => {
  rounds = new Rounds(pauseMs)
})

/** @param cutOff by third party */
function finish(searches: Search[], cutOff: Record<string, string> = {}, now = 0): void {
  for (const search of searches) {
    const its = Object.entries(cutOff).filter(([id]) => search.whom === 'others' || search.rounds.has(id))
    rounds.searched(search, new Map(its), now)
  }
}

const others = (schemaIds: string[] | null, ...except: string[]): Search => ({
  schemaIds,
  rounds: new Map(except.map((id) => [id, '0'])),
  whom: 'others',
})

const own = (schemaIds: string[] | null, from: Record<string, string>): Search => ({
  schemaIds,
  rounds: new Map(Object.entries(from)),
  whom: 'own',
})

test('nothing is searched until something is new, then all that is', () => {
  expect(rounds.searches(0, nobody)).toEqual([])
  expect(rounds.dueAt(nobody)).toBe(Number.POSITIVE_INFINITY)
  rounds.notify('1')
  rounds.notify('2')
  expect(rounds.dueAt(nobody)).toBeLessThanOrEqual(0)
  expect(rounds.searches(0, nobody)).toEqual([others(['1', '2'])])
  rounds.notify('1')
  rounds.notify(null)
  expect(rounds.searches(0, nobody)).toEqual([others(null)])
})

test('one that has more than a search examines goes on where it was, after a pause, beside all others', () => {
  rounds.notify('1')
  finish(rounds.searches(0, nobody), { x: '101' })
  expect([rounds.searches(0, nobody), rounds.dueAt(nobody)]).toEqual([[], pauseMs])
  rounds.notify('2')
  expect(rounds.searches(10, nobody)).toEqual([others(['2'], 'x')])
  const second = rounds.searches(pauseMs, nobody)
  expect(second).toEqual([own(['1'], { x: '101' })])
  finish(second, { x: '201' }, pauseMs)
  expect(rounds.searches(pauseMs, nobody)).toEqual([])
  const third = rounds.searches(2 * pauseMs, nobody)
  expect(third).toEqual([own(['1'], { x: '201' })])
  finish(third)
  // What was new meanwhile begins another round.
  const fourth = rounds.searches(2 * pauseMs, nobody)
  expect(fourth).toEqual([own(['2'], { x: '0' })])
  finish(fourth)
  rounds.notify('3')
  expect(rounds.searches(2 * pauseMs, nobody)).toEqual([others(['3'])])
})

test('news during a search is searched afterwards, for all', () => {
  rounds.notify('1')
  const first = rounds.searches(0, nobody)
  rounds.notify('2')
  rounds.notifyOne('x', '3')
  rounds.notifyOne('y', '4')
  finish(first, { x: '101' })
  expect(rounds.searches(0, nobody)).toEqual([others(['2'], 'x', 'y'), own(['2', '4'], { y: '0' })])
  finish(rounds.searches(pauseMs, nobody))
  expect(rounds.searches(pauseMs, nobody)).toEqual([own(['2', '3'], { x: '0' })])
})

test('one that has enough waiting is left alone until it has not, and then misses nothing', () => {
  const busy = new Set(['x'])
  rounds.notify('1')
  finish(rounds.searches(0, busy))
  rounds.notify('2')
  const second = rounds.searches(0, busy)
  expect(second).toEqual([others(['2'], 'x')])
  finish(second)
  expect([rounds.searches(0, busy), rounds.dueAt(busy)]).toEqual([[], Number.POSITIVE_INFINITY])
  const third = rounds.searches(0, nobody)
  expect(third).toEqual([own(['1'], { x: '0' })])
  finish(third)
  expect(rounds.searches(0, nobody)).toEqual([own(['2'], { x: '0' })])
})

test('several on rounds of their own are searched together', () => {
  rounds.notifyOne('x', '1')
  rounds.notifyOne('y', '2')
  expect(rounds.searches(0, nobody)).toEqual([own(['1', '2'], { x: '0', y: '0' })])
  rounds.notifyOne('z', null)
  rounds.restart()
  expect(rounds.searches(0, nobody)).toEqual([others(null)])
})
