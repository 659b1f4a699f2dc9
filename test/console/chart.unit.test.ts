import { expect, test } from 'vitest'
import { chart, pathOf, roundUp } from '../../src/console/chart.ts'
import { Ring, samplesMax } from '../../src/console/history/ring.ts'
import { Rates } from '../../src/console/rates.ts'

test.each([
  [0, 1],
  [1, 1],
  [1.2, 2],
  [4.9, 5],
  [5.1, 10],
  [123_456, 200_000],
  [0.000_3, 0.000_5],
])('the axis of values up to %d ends at %d', (value, top) => {
  expect(roundUp(value)).toBeCloseTo(top, 10)
})

test('a curve has a gap where nothing was measured, and stays below its top', () => {
  expect(pathOf(Float64Array.of(0, 5, Number.NaN, 20), 10)).toBe('M0.0 100.0h0.1L120.0 50.0M360.0 0.0h0.1')
})

test('a chart says its highest and its latest value in words', async () => {
  const values = Float64Array.of(Number.NaN, 40, 30)
  const drawn = String(
    await chart({ title: 'Rows', show: (value) => `${value} rows`, curves: [{ label: 'all', values }] }),
  )
  expect(drawn).toContain('aria-label="Rows in the last hour: 40 rows at most"')
  expect(drawn).toContain('all <strong>30 rows</strong>')
})

test('a ring keeps the last hour and forgets what was before', () => {
  const ring = new Ring(['rows'])
  expect([...ring.values('rows')].every(Number.isNaN)).toBe(true)
  for (let i = 1; i <= samplesMax + 2; i += 1) ring.push({ rows: i })
  const values = ring.values('rows')
  expect([values.length, values[0], values.at(-1)]).toEqual([samplesMax, 3, samplesMax + 2])
})

test('a rate is that of the last seconds; first it is that since the beginning', () => {
  let now = 10_000
  const rates = new Rates(() => now)
  expect(rates.perSecond('export', 1_000, 0)).toBe(100)
  for (let seconds = 1; seconds <= 10; seconds += 1) {
    now += 1_000
    rates.perSecond('export', 1_000 + seconds * 500, 0)
  }
  expect(rates.perSecond('export', 6_000, 0)).toBe(500)
  expect(rates.perSecond('another', 0, now)).toBe(0)
})
