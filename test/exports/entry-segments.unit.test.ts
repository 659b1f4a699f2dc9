import { expect, test } from 'vitest'
import { type ExerciceSpan, entrySegments } from '../../src/exports/read/movements.sql.ts'

const span = (exerciceId: string, least: number, greatest: number, dense = true): ExerciceSpan => ({
  exerciceId,
  least: String(least),
  greatest: String(greatest),
  dense,
})
const cut = (...spans: ExerciceSpan[]) =>
  entrySegments(spans).map(
    ({ exerciceIds, least, greatest }) => `${exerciceIds.join('+')}: ${least} to ${greatest}`,
  )

test('fiscal years whose ids do not overlap are read one after another by id, whatever their order in time', () => {
  expect(cut(span('1', 500, 900), span('2', 10, 499), span('3', 1000, 1000))).toEqual([
    '2: 10 to 499',
    '1: 500 to 900',
    '3: 1000 to 1000',
  ])
  expect(cut()).toEqual([])
})

test('fiscal years are read together only where their ids interleave', () => {
  expect(cut(span('1', 1, 100), span('2', 90, 200), span('3', 95, 95))).toEqual([
    '1: 1 to 89',
    '1+2: 90 to 94',
    '1+2+3: 95 to 95',
    '1+2: 96 to 100',
    '2: 101 to 200',
  ])
  expect(cut(span('1', 1, 100), span('2', 1, 100))).toEqual(['1+2: 1 to 100'])
})

test('ids too large for a double are not rounded', () => {
  const spans = ['9007199254740990', '9007199254740991'].map((id) => ({
    ...span(id, 0, 0),
    least: id,
    greatest: id,
  }))
  expect(entrySegments(spans).map(({ least, greatest }) => [least, greatest])).toEqual([
    ['9007199254740990', '9007199254740990'],
    ['9007199254740991', '9007199254740991'],
  ])
})

test('a segment is dense if all of its fiscal years are dense', () => {
  const segments = entrySegments([span('1', 1, 100), span('2', 90, 200, false)])
  expect(segments.map(({ dense }) => dense)).toEqual([true, false, false])
})
