/** The names and durations of fiscal years in the file of a full export. */

import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { collectionTag, dayIn } from '../../src/exports/render/collections.ts'
import { exerciceItems } from '../../src/formats/items/exercice.ts'

describe('fiscal years', () => {
  const year = (start: string, end: string) => ({
    id: '1',
    start,
    end,
    lettering: 'MONO' as const,
    closedOn: null,
    closedById: null,
    closedByFirstName: null,
    closedByLastName: null,
  })
  const years = [
    year('2023-07-01', '2024-06-30'),
    year('2024-07-01', '2024-12-31'),
    year('2025-01-01', '2026-06-15'),
    year('2027-01-01', '2027-01-31'),
  ]
  const itemsOn = (day: string) =>
    JSON.parse(JSON.stringify(exerciceItems(years, day))) as { name: string; period: { duration: number } }[]

  test.each([
    ['2023-06-30', 'N+1 N+2 N+3 N+4'],
    ['2023-07-01', 'N N+1 N+2 N+3'],
    ['2024-12-31', 'N-1 N N+1 N+2'],
    ['2025-01-01', 'N-2 N-1 N N+1'],
    ['2026-12-31', 'N-2 N-1 N N+1'],
    ['2030-01-01', 'N-3 N-2 N-1 N'],
  ])('on %s are named %s', (day, names) => {
    expect(
      itemsOn(day)
        .map(({ name }) => name)
        .join(' '),
    ).toBe(names)
  })

  test('that overlap are named relative to the one that contains today', () => {
    const overlapping = [year('2024-01-01', '2025-12-31'), year('2025-02-01', '2025-03-31')]
    const names = exerciceItems(overlapping, '2025-07-01') as { name: string }[]
    expect(names.map(({ name }) => name)).toEqual(['N', 'N+1'])
  })

  test('count a partial month in their length', () => {
    expect(itemsOn('2025-01-01').map(({ period }) => period.duration)).toEqual([12, 6, 18, 1])
  })

  test('have a different tag for each day and time zone, never one of an earlier version that named closing times', () => {
    const owner = {
      schemaId: '1',
      folderId: '2',
      today: '2026-01-01',
      timeZone: 'Europe/Paris',
      withEmployees: true,
    }
    const former = ['exercices', 1, '1', '2', '7', '2026-01-01']
    const tags = [
      createHash('sha256').update(JSON.stringify(former)).digest('base64url').slice(0, 22),
      collectionTag('exercices', 2, owner, '7'),
      collectionTag('exercices', 2, { ...owner, today: '2026-01-02' }, '7'),
      collectionTag('exercices', 2, { ...owner, timeZone: 'UTC' }, '7'),
    ]
    expect(new Set(tags).size).toBe(4)
  })

  test('change their relative names at midnight in the configured time zone', () => {
    const instant = Date.parse('2025-12-31T23:30:00Z')
    expect([
      dayIn('Europe/Paris', instant),
      dayIn('UTC', instant),
      dayIn('America/New_York', instant),
    ]).toEqual(['2026-01-01', '2025-12-31', '2025-12-31'])
  })
})
