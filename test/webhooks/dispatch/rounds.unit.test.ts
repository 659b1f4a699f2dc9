/** Whose subscriptions are searched, and when, without a database. */
import { beforeEach, expect, test } from 'vitest'
import { Rounds, type Search } from '../../../src/webhooks/dispatch/rounds.ts'

const pauseMs = 50
const noneBusy = new Set<string>()

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

test('no search runs until there is news, then all third parties with news are searched', () => {
  expect(rounds.searches(0, noneBusy)).toEqual([])
  expect(rounds.dueAt(noneBusy)).toBe(Number.POSITIVE_INFINITY)
  rounds.notify('1')
  rounds.notify('2')
  expect(rounds.dueAt(noneBusy)).toBeLessThanOrEqual(0)
  expect(rounds.searches(0, noneBusy)).toEqual([others(['1', '2'])])
  rounds.notify('1')
  rounds.notify(null)
  expect(rounds.searches(0, noneBusy)).toEqual([others(null)])
})

test('the search of a large third party continues where it stopped, after a pause, while others are searched', () => {
  rounds.notify('1')
  finish(rounds.searches(0, noneBusy), { x: '101' })
  expect([rounds.searches(0, noneBusy), rounds.dueAt(noneBusy)]).toEqual([[], pauseMs])
  rounds.notify('2')
  expect(rounds.searches(10, noneBusy)).toEqual([others(['2'], 'x')])
  const second = rounds.searches(pauseMs, noneBusy)
  expect(second).toEqual([own(['1'], { x: '101' })])
  finish(second, { x: '201' }, pauseMs)
  expect(rounds.searches(pauseMs, noneBusy)).toEqual([])
  const third = rounds.searches(2 * pauseMs, noneBusy)
  expect(third).toEqual([own(['1'], { x: '201' })])
  finish(third)
  // News during the round starts another round.
  const fourth = rounds.searches(2 * pauseMs, noneBusy)
  expect(fourth).toEqual([own(['2'], { x: '0' })])
  finish(fourth)
  rounds.notify('3')
  expect(rounds.searches(2 * pauseMs, noneBusy)).toEqual([others(['3'])])
})

test('news that arrives during a search is searched afterwards, for every third party', () => {
  rounds.notify('1')
  const first = rounds.searches(0, noneBusy)
  rounds.notify('2')
  rounds.notifyOne('x', '3')
  rounds.notifyOne('y', '4')
  finish(first, { x: '101' })
  expect(rounds.searches(0, noneBusy)).toEqual([others(['2'], 'x', 'y'), own(['2', '4'], { y: '0' })])
  finish(rounds.searches(pauseMs, noneBusy))
  expect(rounds.searches(pauseMs, noneBusy)).toEqual([own(['2', '3'], { x: '0' })])
})

test('a third party with enough waiting work is not searched until it has less, and then misses nothing', () => {
  const busy = new Set(['x'])
  rounds.notify('1')
  finish(rounds.searches(0, busy))
  rounds.notify('2')
  const second = rounds.searches(0, busy)
  expect(second).toEqual([others(['2'], 'x')])
  finish(second)
  expect([rounds.searches(0, busy), rounds.dueAt(busy)]).toEqual([[], Number.POSITIVE_INFINITY])
  const third = rounds.searches(0, noneBusy)
  expect(third).toEqual([own(['1'], { x: '0' })])
  finish(third)
  expect(rounds.searches(0, noneBusy)).toEqual([own(['2'], { x: '0' })])
})

test('several third parties with their own rounds are searched together', () => {
  rounds.notifyOne('x', '1')
  rounds.notifyOne('y', '2')
  expect(rounds.searches(0, noneBusy)).toEqual([own(['1', '2'], { x: '0', y: '0' })])
  rounds.notifyOne('z', null)
  rounds.restart()
  expect(rounds.searches(0, noneBusy)).toEqual([others(null)])
})
