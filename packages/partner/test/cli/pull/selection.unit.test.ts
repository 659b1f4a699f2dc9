import { describe, expect, test } from 'vitest'
import { type Exercice, matching, wantedMovements } from '../../../src/cli/pull/selection.ts'

const year = (producerId: string, start: string, end: string, name = 'N'): Exercice => ({
  producerId,
  name,
  period: { start, end, duration: 12, closed: null },
})
const exercices = [
  year('2026', '2022-07-01', '2023-06-30', 'N-2'),
  year('41', '2023-07-01', '2024-06-30', 'N-1'),
  year('42', '2024-07-01', '2025-12-31', 'N'),
]
const idsFor = (word: string) => matching(word, exercices).map(({ producerId }) => producerId)

describe('an exercice', () => {
  test.each([
    ['by its id', '41', ['41']],
    ['by the only year that it starts or ends in', '2025', ['42']],
    ['by its id, even where that looks like a year', '2026', ['2026']],
    ['by its name', 'n-1', ['41']],
    ['by a year that two exercices share', '2024', ['41', '42']],
    ['by a year without an exercice', '2021', []],
    ['by an unknown name', 'N+1', []],
  ])('is found %s: %s means %j', (_, word, ids) => {
    expect(idsFor(word)).toEqual(ids)
  })
})

test('options become a selection', () => {
  const ofYear = wantedMovements({ exercice: '2025', draft: true, 'class-account': ['60,61', '7'] })
  expect(ofYear(exercices[2])).toEqual({ exercice: '42', draft: true, classAccount: ['60', '61', '7'] })
  const period = { from: '2025-01-01', to: '2025-03-31', 'date-filter': 'platform' } as const
  expect(wantedMovements({ ...period, lettering: 'none', source: 'OCR' })(undefined)).toEqual({
    ...{ startDate: '2025-01-01', endDate: '2025-03-31', dateFilter: 'platform' },
    ...{ lettering: 'none', source: 'OCR' },
  })
})
