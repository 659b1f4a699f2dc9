import { expect, test } from 'vitest'
import { chart, curvePath, roundUp } from '../../src/console/chart.ts'
import { recordHistory, samplesMax } from '../../src/console/history.ts'
import { ratesOf } from '../../src/console/rates.ts'
import { RunningStreams } from '../../src/http/stream/running-streams.ts'
import { RunningAttempts } from '../../src/jobs/running-attempts.ts'

test.each([
  [0, 1],
  [1, 1],
  [1.2, 2],
  [4.9, 5],
  [5.1, 10],
  [123_456, 200_000],
  [0.000_3, 0.000_5],
])('an axis for values up to %d ends at %d', (value, top) => {
  expect(roundUp(value)).toBeCloseTo(top, 10)
})

test('a curve has a gap where no value was measured, and stays below the top of the chart', () => {
  expect(curvePath([0, 5, Number.NaN, 20], 10)).toBe('M0.0 100.0h0.1L120.0 50.0M360.0 0.0h0.1')
})

test('a chart states its highest and its latest value in words', async () => {
  const values = [Number.NaN, 40, 30]
  const drawn = String(
    await chart({ title: 'Rows', show: (value) => `${value} rows`, curves: [{ label: 'all', values }] }),
  )
  expect(drawn).toContain('aria-label="Rows in the last hour: 40 rows at most"')
  expect(drawn).toContain('all <strong>30 rows</strong>')
})

test('the history keeps the samples of the last hour and drops older ones', async () => {
  let samples = 0
  const unknown = { latest: () => Promise.resolve(undefined) }
  const queue = { latest: () => Promise.resolve({ ageSeconds: ++samples }) }
  const standing = { queue, deliveries: unknown }
  const history = recordHistory({ streams: new RunningStreams(), attempts: new RunningAttempts(), standing })
  expect(history.values('queuedExport')).toEqual(Array(samplesMax).fill(Number.NaN))
  for (let i = 0; i < samplesMax + 2; i += 1) await history.sample()
  const values = history.values('queuedExport')
  expect([values.length, values[0], values.at(-1)]).toEqual([samplesMax, 3, samplesMax + 2])
  await history.close()
})

test('a rate covers the last seconds; the first rate covers the time since the start', () => {
  let now = 10_000
  const perSecond = ratesOf(() => now)
  expect(perSecond('export', 1_000, 0)).toBe(100)
  for (let seconds = 1; seconds <= 10; seconds += 1) {
    now += 1_000
    perSecond('export', 1_000 + seconds * 500, 0)
  }
  expect(perSecond('export', 6_000, 0)).toBe(500)
  expect(perSecond('another', 0, now)).toBe(0)
})
