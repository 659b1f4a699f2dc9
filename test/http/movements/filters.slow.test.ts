/** Which movements and entries an export contains: every filter and every pair, against independent SQL conditions. */
import { describe, expect, test } from 'vitest'
import { download, madUrl, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

/** Query parameters and their condition in SQL, on m (movements), e (entries) and a (accounts). */
interface Filter {
  query: Record<string, string | string[]>
  where: string
}

// The day in Paris. This converts the column; the service converts the bounds of a period.
const platformDay = `(e.created_at at time zone 'Europe/Paris')::date`
const period = (startDate: string, endDate: string, dateFilter?: string, column = 'e.date'): Filter => ({
  query: { startDate, endDate, ...(dateFilter ? { dateFilter } : {}) },
  where: `${column} between '${startDate}' and '${endDate}'`,
})

const selections: Filter[] = [
  { query: { idExercice: '11' }, where: 'e.exercice_id = 11' },
  { query: { idExercice: '0012' }, where: 'e.exercice_id = 12' },
  // Spans two exercices.
  period('2024-03-15', '2024-10-20'),
  period('2025-04-01', '2025-06-30', 'document'),
  // Nearly all ids between the first and the last entry of this period belong to it, unlike in the other periods.
  period('2024-07-01', '2025-06-30'),
  period('2024-01-01', '2024-12-31', 'accounting', 'e.accounted_at'),
  period('2024-10-20', '2025-04-01', 'platform', platformDay),
]
const sources: Filter[] = ['FEC', 'API'].map((source) => ({
  query: { source },
  where: `e.source = '${source}'`,
}))
const accountClasses: Filter[] = [
  { query: { classAccount: '60' }, where: `a.number like '60%'` },
  { query: { classAccount: '401%' }, where: `a.number like '401%'` },
  { query: { classAccount: '401b' }, where: `a.number = '401BETA'` },
  { query: { classAccount: ['60,411', ' 7 ,60%', '512'] }, where: `a.number ~ '^(60|411|7|512)'` },
  { query: { classAccount: '99' }, where: 'false' },
]
const letterings: Filter[] = ['none', 'partial', 'complete'].map((lettering) => ({
  query: { lettering },
  where: `m.lettering_state = '${lettering}'`,
}))
const journals: Filter[] = [
  { query: { journalIds: '31' }, where: 'e.journal_id = 31' },
  { query: { journalIds: ['33,0031', '45', '31'] }, where: 'e.journal_id in (31, 33, 45)' },
]
const drafts: Filter[] = [{ query: { draft: '' }, where: 'e.validated_at is null' }]
const validated: Filter = { query: {}, where: 'e.validated_at is not null' }

type Route = 'movements' | 'entries'

const idsOf: Record<Route, string> = {
  movements: `select m.id from grandlivre.movements m join grandlivre.accounts a on a.schema_id = 100 and a.folder_id = 111
      and a.id = m.account_id join grandlivre.entries e on e.schema_id = 100 and e.folder_id = 111 and e.id = m.entry_id
    where m.schema_id = 100 and m.folder_id = 111 and §where order by e.id, m.id`,
  entries: `select e.id from grandlivre.entries e where e.schema_id = 100 and e.folder_id = 111 and §where order by e.id`,
}

/** Compares an export with the ids that SQL selects. @returns the number of its items */
async function expectExport(route: Route, filters: Filter[]): Promise<number> {
  const all = filters.some((filter) => drafts.includes(filter)) ? filters : [...filters, validated]
  const query = Object.assign({}, ...all.map((filter) => filter.query))
  const conditions = all.map(({ where }) => `(${where})`).join(' and ')
  const { rows } = await stage.staff.client.query(idsOf[route].replace('§where', conditions))
  const url = madUrl(stage.service.url, route, query)
  const answer = await download(url, stage.company)
  expect(answer.status, url).toBe(200)
  const ids = answer.json.map(({ producerId }: { producerId: string }) => producerId)
  expect(ids, url).toEqual(rows.map(({ id }) => id))
  expect(answer.trailers['x-row-count'], url).toBe(String(rows.length))
  return rows.length
}

/** Every filter alone, and every pair of different kinds. */
function filterSets(kinds: Filter[][]): Filter[][] {
  const alone = kinds.flat().map((filter) => [filter])
  const pairs = kinds.flatMap((kind, i) =>
    kind.flatMap((filter) => kinds.slice(i + 1).flatMap((others) => others.map((other) => [filter, other]))),
  )
  return [[], ...alone, ...pairs]
}

test.each([
  ['movements', [sources, accountClasses, letterings, drafts]],
  ['entries', [sources, journals, drafts]],
] as [Route, Filter[][]][])(
  '%s of any selection equal those of SQL with every filter and every pair of filters',
  async (route, kinds) => {
    const sizes: number[] = []
    for (const selection of selections)
      for (const filters of filterSets(kinds)) sizes.push(await expectExport(route, [selection, ...filters]))
    // Comparing empty results would prove nothing.
    expect(sizes.filter((size) => size > 0).length / sizes.length).toBeGreaterThan(0.3)
  },
)

test('movements equal those of SQL with all filters together', async () => {
  const account = { query: { classAccount: '4' }, where: `a.number like '4%'` }
  for (const draft of [[], drafts])
    for (const lettering of letterings)
      await expectExport('movements', [selections[5]!, sources[0]!, account, lettering, ...draft])
})

test('any value of draft except false and 0 selects drafts, in any letter case', async () => {
  const tagOf = async (draft: string[]) =>
    (await download(movementsUrl(stage.service.url, { idExercice: '12', draft }), stage.company)).headers.etag
  const [validatedOnly, draftsOnly] = [await tagOf([]), await tagOf(['true'])]
  expect(draftsOnly).not.toBe(validatedOnly)
  for (const value of ['', '1', 'no', 'TRUE']) expect(await tagOf([value])).toBe(draftsOnly)
  for (const value of ['false', 'False', '0']) expect(await tagOf([value])).toBe(validatedOnly)
})

test('the percent sign after the first digits of an account need not be encoded', async () => {
  const body = async (roots: string) => {
    const url = `${movementsUrl(stage.service.url, { idExercice: '12' })}&${roots}`
    return (await download(url, stage.company)).text
  }
  const expected = await body('classAccount=60&classAccount=411')
  expect(JSON.parse(expected)).not.toEqual([])
  for (const roots of [
    'classAccount=60%,411%',
    'classAccount=60%&classAccount=411%',
    'classAccount=60%25%2C411%',
  ])
    expect(await body(roots), roots).toBe(expected)
})

describe('a platform date', () => {
  const day = async (startDate: string, endDate = startDate): Promise<string[]> => {
    const query = { startDate, endDate, dateFilter: 'platform', classAccount: '607' }
    const answer = await download(movementsUrl(stage.service.url, query), stage.company)
    return answer.json.map((movement: { description: string }) => movement.description)
  }

  test.each([
    ['in winter', '2030-01-10', '2030-01-09T23:00:00Z', '2030-01-10T22:59:59Z'],
    ['in summer', '2030-07-10', '2030-07-09T22:00:00Z', '2030-07-10T21:59:59Z'],
    ['of 23 hours, in spring', '2030-03-31', '2030-03-30T23:00:00Z', '2030-03-31T21:59:59Z'],
    ['of 25 hours, in autumn', '2030-10-27', '2030-10-26T22:00:00Z', '2030-10-27T22:59:59Z'],
    ['on a leap day', '2028-02-29', '2028-02-28T23:00:00Z', '2028-02-29T22:59:59Z'],
  ])('%s is read as a day in Paris, to the second', async (_what, date, first, last) => {
    const before = new Date(Date.parse(first) - 1000).toISOString()
    const after = new Date(Date.parse(last) + 1000).toISOString()
    const base = 100_000 + Math.floor(Date.parse(first) / 1e6)
    for (const [i, createdAt] of [before, first, last, after].entries())
      await addEntry(stage.staff.client, folders.first, { id: String(base + i), createdAt }, [
        { id: String(base + i), accountId: '110', description: createdAt },
      ])
    expect(await day(date)).toEqual([first, last])
  })

  test('is read as a day in the configured time zone', async () => {
    const service = await startTestService(stage.database, { timeZone: 'Pacific/Auckland' })
    const [first, last] = ['2031-01-09T11:00:00.000Z', '2031-01-10T10:59:59.000Z']
    const moments = ['2031-01-09T10:59:59.000Z', first, last, '2031-01-10T11:00:00.000Z']
    try {
      for (const [i, createdAt] of moments.entries())
        await addEntry(stage.staff.client, folders.first, { id: String(200_000 + i), createdAt }, [
          { id: String(200_000 + i), description: createdAt },
        ])
      const query = { startDate: '2031-01-10', endDate: '2031-01-10', dateFilter: 'platform' }
      const there = await download(movementsUrl(service.url, query), stage.company)
      const here = await download(movementsUrl(stage.service.url, query), stage.company)
      const found = there.json.map(({ description }: { description: string }) => description)
      expect(found).toEqual([first, last])
      expect(there.headers.etag, 'the selections differ').not.toBe(here.headers.etag)
    } finally {
      await service.stop()
    }
  })
})

describe('a period', () => {
  const status = async (startDate: string, endDate: string) =>
    (await download(movementsUrl(stage.service.url, { startDate, endDate }), stage.company, 'HEAD')).status

  test('must be shorter than twelve months, leap days included', async () => {
    for (const [start, longest, tooLong] of [
      ['2024-01-01', '2024-12-31', '2025-01-01'],
      ['2023-07-15', '2024-07-14', '2024-07-15'],
      ['2024-02-28', '2025-02-27', '2025-02-28'],
      ['2024-02-29', '2025-02-27', '2025-02-28'],
      ['2023-02-28', '2024-02-27', '2024-02-28'],
      ['2023-03-01', '2024-02-29', '2024-03-01'],
      ['9998-12-31', '9999-12-30', '9999-12-31'],
    ] as const) {
      expect([await status(start, longest), await status(start, tooLong)], start).toEqual([200, 400])
    }
    expect(await status('9999-02-01', '9999-12-31')).toBe(200)
  })

  test('may be a single day, or contain no movement', async () => {
    for (const route of ['movements', 'entries'] as const) {
      await expectExport(route, [period('2024-02-29', '2024-02-29')])
      await expectExport(route, [period('1999-01-01', '1999-02-01')])
      await expectExport(route, [period('1999-01-01', '1999-02-01', 'platform', platformDay), drafts[0]!])
    }
  })
})
