/** Changed bytes need a new revision: otherwise ETags of the former bytes would still match. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { formatRevisions } from '../../../src/formats/mad/revisions.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'

type Name = keyof typeof formatRevisions

const names = Object.keys(formatRevisions) as Name[]
const recorded: Record<Name, Record<string, string>> = JSON.parse(
  readFixture('format-revisions.json').toString('utf8'),
)

/** The part of each in the full export, whose bytes golden-files.test.ts compares with the service's. */
function partsOfFixtures(): Record<Name, string> {
  const file = readFixture('ledger.mad.json').toString('utf8').replaceAll('\n', '')
  const starts = names
    .filter((name) => !['movements', 'balance'].includes(name))
    .map((name) => ({ name, start: file.indexOf(`"${name}":`) + name.length + 3 }))
    .toSorted((one, other) => one.start - other.start)
  const parts = starts.map(({ name, start }, i) => {
    const next = starts[i + 1]
    const end = next ? file.lastIndexOf(',', next.start) : file.length - '}}'.length
    return [name, file.slice(start, end)]
  })
  const fixture = (name: string) => readFixture(name).toString('utf8')
  return {
    ...Object.fromEntries(parts),
    movements: fixture('movements.ndjson'),
    balance: fixture('balance.ndjson'),
  }
}

test('the parts cut out of the fixture equal those of its JSON', () => {
  const { data } = JSON.parse(readFixture('ledger.mad.json').toString('utf8'))
  const { movements, balance: _, ...parts } = partsOfFixtures()
  expect(Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, JSON.parse(part)]))).toEqual(
    data,
  )
  expect(movements.trimEnd().split('\n').length).toBe(
    data.entries.flatMap((entry: { movements: unknown[] }) => entry.movements).length,
  )
})

test.each(names)('the revision of %s is recorded with its bytes', (name) => {
  const revision = formatRevisions[name]
  const bytes = createHash('sha256').update(partsOfFixtures()[name]).digest('hex')
  const advice = `raise the revision of ${name} in src/formats/mad/revisions.ts and record its bytes under it`
  expect(recorded[name][revision], advice).toBe(bytes)
  expect(
    Object.keys(recorded[name])
      .map(Number)
      .toSorted((a, b) => a - b)
      .at(-1),
    advice,
  ).toBe(revision)
})
