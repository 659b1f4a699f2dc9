/** Changed bytes need a new revision: otherwise ETags of the former bytes would still match. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { collections } from '../../../src/exports/render/collections.ts'
import { formatRevisions } from '../../../src/formats/file-formats.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'

const ofCollections = Object.entries(collections).flatMap(([name, { revision }]) =>
  revision === undefined ? [] : [[name, revision] as const],
)
const revisions: Record<string, number> = { ...formatRevisions, ...Object.fromEntries(ofCollections) }
const names = Object.keys(revisions)
const recorded: Record<string, Record<string, string>> = JSON.parse(
  readFixture('format-revisions.json').toString('utf8'),
)
const { data } = JSON.parse(readFixture('ledger.mad.json').toString('utf8'))

/**
 * For each collection: its part of the full export, or its own file. golden-files.test.ts compares these with the
 * service's bytes.
 */
function partsOfFixtures(): Record<string, string> {
  const file = readFixture('ledger.mad.json').toString('utf8').replaceAll('\n', '')
  const starts = names
    .filter((name) => name in data)
    .map((name) => ({ name, start: file.indexOf(`"${name}":`) + name.length + 3 }))
    .toSorted((one, other) => one.start - other.start)
  const parts = starts.map(({ name, start }, i) => {
    const next = starts[i + 1]
    const end = next ? file.lastIndexOf(',', next.start) : file.length - '}}'.length
    return [name, file.slice(start, end)]
  })
  const others = names
    .filter((name) => !(name in data))
    .map((name) => [name, readFixture(`${name}.ndjson`).toString('utf8')])
  return Object.fromEntries([...parts, ...others])
}

test('the parts cut from the fixture equal those that JSON.parse reads', () => {
  const parts = partsOfFixtures()
  const ofFile = Object.entries(parts).filter(([name]) => name in data)
  expect(Object.fromEntries(ofFile.map(([name, part]) => [name, JSON.parse(part)]))).toEqual(data)
  expect(parts['movements']!.trimEnd().split('\n').length).toBe(
    data.entries.flatMap((entry: { movements: unknown[] }) => entry.movements).length,
  )
})

test.each(names)('the current revision of %s is recorded with the bytes that it writes', (name) => {
  const revision = revisions[name]!
  const bytes = createHash('sha256').update(partsOfFixtures()[name]!).digest('hex')
  const place = name in collections ? 'src/exports/render/collections.ts' : 'src/formats/file-formats.ts'
  const advice = `raise the revision of ${name} in ${place} and record its bytes, ${bytes}, under it`
  expect(recorded[name]?.[revision], advice).toBe(bytes)
  expect(
    Object.keys(recorded[name]!)
      .map(Number)
      .toSorted((a, b) => a - b)
      .at(-1),
    advice,
  ).toBe(revision)
})
