/** The parameter `entries`: ranges of entry ids of a selection. */
import { expect, test } from 'vitest'
import { type Download, download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string | string[]>

const ndjson = { Accept: 'application/x-ndjson' }

function ask(path: string, query: Query, headers: Record<string, string> = ndjson): Promise<Download> {
  return download(madUrl(stage.service.url, path, query), { ...stage.company, ...headers })
}

const selections: [path: string, query: Query][] = [
  ['movements', { idExercice: '12' }],
  ['movements', { idExercice: '12', draft: '1' }],
  ['movements', { idExercice: '12', classAccount: '60,401', lettering: 'none' }],
  ['movements', { startDate: '2024-01-01', endDate: '2024-12-31' }],
  ['movements', { startDate: '2024-09-01', endDate: '2025-01-31', dateFilter: 'platform', source: 'E' }],
  ['entries', { idExercice: '12' }],
  ['entries', { startDate: '2024-01-01', endDate: '2024-12-31', journalIds: '31,34,37,40,43,44' }],
]

function linesOf(text: string): { line: string; entryId: number; id: string }[] {
  return (text.match(/[^\n]*\n/g) ?? []).map((line) => {
    const { producerId, entry } = JSON.parse(line)
    return { line, entryId: Number(entry?.producerId ?? producerId), id: producerId }
  })
}

test.each(selections)(
  'ranges of entries select exactly their lines of %s %j, in the order of the whole',
  async (path, query) => {
    const whole = linesOf((await ask(path, query)).text)
    expect(whole.length).toBeGreaterThan(3)
    const ids = whole.map(({ entryId }) => entryId)
    const [first, middle, last] = [ids[0]!, ids[Math.floor(ids.length / 2)]!, ids.at(-1)!]
    const cases: [entries: string | string[], ranges: [number, number][]][] = [
      [`${middle}-${middle}`, [[middle, middle]]],
      [`${first}-${middle}`, [[first, middle]]],
      // In any order, overlapping, with leading zeros, repeated and separated by commas.
      [
        [`0${middle}-${last}`, `${first}-${first}, ${middle}-${middle}`],
        [
          [first, first],
          [middle, last],
        ],
      ],
      [`0-${first - 1},${last + 1}-9999999999999999`, []],
      ['0-9007199254740991', [[0, last]]],
      ['1-9999999999999999', [[0, last]]],
      [
        Array.from({ length: 100 }, (_, i) => `${first + 7 * i}-${first + 7 * i}`),
        Array.from({ length: 100 }, (_, i) => [first + 7 * i, first + 7 * i]),
      ],
    ]
    for (const [entries, ranges] of cases) {
      const isIn = ({ entryId }: { entryId: number }) =>
        ranges.some(([from, to]) => from <= entryId && entryId <= to)
      const expected = whole.filter(isIn)
      const answer = await ask(path, { ...query, entries })
      expect(answer.text, String(entries)).toBe(expected.map(({ line }) => line).join(''))
      expect(answer.trailers).toEqual({
        'x-row-count': String(expected.length),
        'x-content-sha256': answer.sha256,
      })
      const json = await ask(path, { ...query, entries }, {})
      expect(json.json).toEqual(expected.map(({ line }) => JSON.parse(line)))
      const after = expected[Math.floor(expected.length / 3)]
      if (after)
        expect((await ask(path, { ...query, entries, after: after.id })).text).toBe(
          expected
            .slice(expected.indexOf(after) + 1)
            .map(({ line }) => line)
            .join(''),
        )
    }
  },
)

test('ranges of entries are part of the ETag in any notation, and If-Match ignores them', async () => {
  const year = { idExercice: '12' }
  const tagOf = async (query: Query) => (await ask('movements', { ...year, ...query })).headers.etag!
  const tag = await tagOf({ entries: '100-200,300-400' })
  expect(await tagOf({ entries: ['300-0400', '150-200', '100-160'] })).toBe(tag)
  const others = [
    {},
    { entries: '100-200' },
    { entries: '100-200,300-401' },
    { entries: '100-200,300-400', after: '8970' },
  ]
  const tags = [tag]
  for (const query of others) tags.push(await tagOf(query))
  expect(new Set(tags).size).toBe(5)
  const whole = (await ask('movements', year, {})).headers.etag!
  expect((await ask('movements', { ...year, entries: '100-200' }, { 'If-Match': whole })).status).toBe(200)
  expect(
    (await ask('movements', { ...year, entries: '1-2' }, { ...ndjson, 'If-None-Match': tag })).status,
  ).toBe(200)
  const held = { ...year, entries: '100-200,300-400' }
  expect((await ask('movements', held, { ...ndjson, 'If-None-Match': tag })).status).toBe(304)
})

test.each([
  ['no value', ''],
  ['no range', ' , '],
  ['a single id', '12'],
  ['an open end', '12-'],
  ['a wrong order', '13-12'],
  ['a wrong order of many digits', '9007199254740991-9007199254740990'],
  ['letters', 'a-b'],
  ['17 digits', `1-${'1'.repeat(17)}`],
  ['a negative id', '-1-2'],
  ['three ids', '1-2-3'],
  ['one of several', '1-2,5-4'],
  ['101 ranges', Array.from({ length: 101 }, (_, i) => `${i}-${i}`).join()],
])('the parameter entries is refused with %s', async (_what, entries) => {
  for (const path of ['movements', 'entries']) {
    const { status, json } = await ask(path, { idExercice: '12', entries })
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    expect(json.error.details.issues.map(({ parameter }: { parameter: string }) => parameter)).toEqual([
      'entries',
    ])
  }
})
