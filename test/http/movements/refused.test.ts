/** What the movements route refuses, with which status and code, reporting all errors at once. */
import { describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string | string[] | undefined>

const ask = async (query: Query, headers: Record<string, string> = {}, method = 'GET') =>
  download(movementsUrl(stage.service.url, query), { ...stage.company, ...headers }, method)

async function outcome(
  query: Query,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<unknown[]> {
  const { status, json } = await ask(query, headers, method)
  return [status, json.error.code]
}

const year = { idExercice: '12' }

const july = { startDate: '2024-07-01', endDate: '2024-07-31' }

const refusals: [what: string, query: Query, parameters: string[]][] = [
  ['no selection', {}, ['idExercice']],
  ['an exercice and a period', { ...year, ...july }, ['endDate', 'startDate']],
  ['an exercice and half a period', { ...year, endDate: '2024-07-31' }, ['endDate']],
  ['a start without an end', { startDate: '2024-07-01' }, ['endDate']],
  ['an end without a start', { endDate: '2024-07-31' }, ['startDate']],
  ['an end before the start', { startDate: '2024-07-02', endDate: '2024-07-01' }, ['endDate']],
  ['twelve months', { startDate: '2024-07-01', endDate: '2025-07-01' }, ['endDate']],
  ['many years', { startDate: '0001-01-01', endDate: '9999-12-31' }, ['endDate']],
  ['many years of the first century', { startDate: '0001-01-01', endDate: '0060-01-01' }, ['endDate']],
  ['twelve months from a leap day', { startDate: '2024-02-29', endDate: '2025-02-28' }, ['endDate']],
  ['a date filter with an exercice', { ...year, dateFilter: 'document' }, ['dateFilter']],
  ['an unknown date filter', { ...july, dateFilter: 'validation' }, ['dateFilter']],
  ['a day that does not exist', { startDate: '2023-02-29', endDate: '2023-03-01' }, ['startDate']],
  ['a month that does not exist', { startDate: '2023-01-01', endDate: '2023-13-01' }, ['endDate']],
  ['a date in another format', { startDate: '2024-7-1', endDate: '31/07/2024' }, ['endDate', 'startDate']],
  ['a date with a time', { ...july, endDate: '2024-07-31T00:00:00Z' }, ['endDate']],
  ['the year 0', { startDate: '0000-01-01', endDate: '0000-02-01' }, ['endDate', 'startDate']],
  ['an exercice that is not a number', { idExercice: 'N-1' }, ['idExercice']],
  ['an exercice of 17 digits', { idExercice: '12'.padStart(17, '0') }, ['idExercice']],
  ['a negative exercice', { idExercice: '-12' }, ['idExercice']],
  ['an empty exercice', { idExercice: '' }, ['idExercice']],
  ['an unknown source', { ...year, source: 'SAGE' }, ['source']],
  ['an empty version', { ...year, version: '' }, ['version']],
  ['a root with a dot', { ...year, classAccount: '60.1' }, ['classAccount']],
  ['a root that is a percent sign', { ...year, classAccount: '%' }, ['classAccount']],
  ['a root with a percent sign inside', { ...year, classAccount: '6%0' }, ['classAccount']],
  ['a root of 18 digits', { ...year, classAccount: '6'.repeat(18) }, ['classAccount']],
  ['a root with an accent', { ...year, classAccount: '401É' }, ['classAccount']],
  ['a bad root among good ones', { ...year, classAccount: ['60,61', "6'"] }, ['classAccount']],
  ['a root without a value', { ...year, classAccount: '' }, ['classAccount']],
  ['no root at all', { ...year, classAccount: ' , ' }, ['classAccount']],
  ['an unknown lettering', { ...year, lettering: 'some' }, ['lettering']],
  ['an unknown parameter', { ...year, classaccount: '60' }, ['classaccount']],
  ['parameters of another route', { ...year, format: 'JSON', journalIds: '1' }, ['format', 'journalIds']],
  ['a position that is not an id', { ...year, after: 'last' }, ['after']],
  ['an unknown movement', { ...year, after: '123456789' }, ['after']],
  ['a movement that no folder can have', { ...year, after: '9'.repeat(16) }, ['after']],
  ['an unreadable version', { ...year, version: 'v1' }, ['version']],
  ['no version', { ...year, version: undefined }, ['version']],
  ['a folder that is not an id', { ...year, accountingFolderId: 'mine' }, ['accountingFolderId']],
  [
    'many errors',
    {
      version: '1',
      startDate: '2024-02-30',
      source: 'x',
      classAccount: '-',
      lettering: 'x',
      after: 'x',
      dateFilter: 'x',
      z: '1',
    },
    ['after', 'classAccount', 'dateFilter', 'endDate', 'lettering', 'source', 'startDate', 'version', 'z'],
  ],
]

describe('a request gets all errors of its parameters at once', () => {
  test.each(refusals)('%s', async (_what, query, parameters) => {
    const { status, json } = await ask(query)
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    const { issues } = json.error.details
    expect(new Set(issues.map((issue: { parameter: string }) => issue.parameter))).toEqual(
      new Set(parameters),
    )
    for (const { message } of issues) expect(message).toMatch(/^[a-z].{5,}/)
  })

  test.each([
    'version',
    'idExercice',
    'startDate',
    'endDate',
    'dateFilter',
    'source',
    'lettering',
    'draft',
    'after',
  ])('%s given twice', async (name) => {
    const value = {
      ...july,
      ...year,
      version: '1.0.0',
      dateFilter: 'document',
      source: 'FEC',
      lettering: 'none',
    }
    const single = (value as Record<string, string>)[name] ?? '9000'
    const selection = name.endsWith('Date') || name === 'dateFilter' ? july : year
    const { status, json } = await ask({ ...selection, [name]: [single, single] })
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    expect(json.error.details.issues).toContainEqual({ parameter: name, message: 'may be given only once' })
  })

  test('a parameter given twice, once without a value', async () => {
    for (const values of [
      ['', '12'],
      ['12', ''],
      ['', ''],
    ])
      expect(await outcome({ idExercice: values })).toEqual([400, 'ERR-VALIDATION'])
  })

  test('an unsupported version', async () => {
    const { status, json } = await ask({ ...year, version: '1.1.0' })
    expect([status, json.error.code]).toEqual([400, 'ERR-UNSUPPORTED-VERSION'])
    expect(json.error.message).toContain('1.0.0')
  })
})

describe('an optional parameter without a value', () => {
  const empty = { accountingFolderId: '', startDate: '', endDate: '', dateFilter: '', source: '', after: '' }

  test('counts as absent', async () => {
    const { headers } = await ask(year)
    const same = await ask({ ...empty, lettering: '', ...year })
    expect([same.status, same.headers.etag]).toEqual([200, headers.etag])
    const period = await ask({ ...empty, ...july, idExercice: '' })
    expect([period.status, period.headers.etag]).toEqual([200, (await ask(july)).headers.etag])
    const { json } = await ask({ ...empty, idExercice: '' })
    expect(json.error.details.issues).toEqual([
      { parameter: 'idExercice', message: 'is required, or startDate and endDate together' },
    ])
  })

  test('counts as present for draft', async () => {
    const drafts = await ask({ ...year, draft: '' })
    expect(drafts.headers.etag).toBe((await ask({ ...year, draft: 'true' })).headers.etag)
    expect(drafts.headers.etag).not.toBe((await ask(year)).headers.etag)
  })
})

describe('an exercice', () => {
  test('that does not exist gives 404', async () => {
    for (const idExercice of ['1', '0', '9'.repeat(16)])
      expect(await outcome({ idExercice })).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
    expect(await outcome({ idExercice: '1' }, { 'If-None-Match': '*' })).toEqual([
      404,
      'ERR-EXERCICE-NOT-FOUND',
    ])
  })

  test('of another folder or tenant gives 404', async () => {
    const { client } = stage.staff
    const theirs = [folders.sameFirm, folders.otherFirm, folders.otherTenant]
    for (const [i, { schemaId, folderId }] of theirs.entries())
      await client.query(
        `insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
         values ($1, $2, $3, '2020-01-01', '2020-12-31')`,
        [schemaId, folderId, 700 + i],
      )
    for (const i of theirs.keys())
      expect(await outcome({ idExercice: String(700 + i) })).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
  })

  test('is looked up only once the parameters are valid', async () => {
    expect(await outcome({ idExercice: '1', source: 'x' })).toEqual([400, 'ERR-VALIDATION'])
  })
})

describe('a folder', () => {
  const { first, sameFirm, otherFirm, otherTenant } = folders

  test('must be named with a firm token, and belong to the firm', async () => {
    const { firm } = stage
    expect(await outcome(year, firm)).toEqual([400, 'ERR-SOCIETY-ID-REQUIRED'])
    for (const id of [otherFirm.folderId, otherTenant.folderId, '987654', 'abc', '0', '9'.repeat(19), '-1'])
      expect(await outcome(year, { ...firm, 'society-id': id }), id).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    for (const { folderId } of [otherFirm, otherTenant])
      expect(await outcome({ ...year, accountingFolderId: folderId }, firm)).toEqual([
        404,
        'ERR-FOLDER-NOT-FOUND',
      ])
    for (const id of [first.folderId, sameFirm.folderId, `000${first.folderId}`])
      expect((await ask(year, { ...firm, 'society-id': id })).status).toBe(200)
    expect((await ask({ ...year, accountingFolderId: sameFirm.folderId }, firm)).status).toBe(200)
  })

  test('must be the token’s own with a company token', async () => {
    for (const { folderId } of [sameFirm, otherFirm, otherTenant]) {
      expect(await outcome(year, { 'society-id': folderId })).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
      expect(await outcome({ ...year, accountingFolderId: folderId })).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    }
    expect((await ask({ ...year, accountingFolderId: first.folderId })).status).toBe(200)
    expect((await ask(year, { 'society-id': first.folderId })).status).toBe(200)
  })

  test('must be the same in the header and in the query', async () => {
    const header = { ...stage.firm, 'society-id': first.folderId }
    const { status, json } = await ask({ ...year, accountingFolderId: sameFirm.folderId }, header)
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    expect(json.error.details.issues).toMatchObject([{ parameter: 'accountingFolderId' }])
    expect((await ask({ ...year, accountingFolderId: first.folderId }, header)).status).toBe(200)
  })
})

describe('a media type', () => {
  test('that is not served gives 406', async () => {
    for (const accept of ['text/html', 'application/xml, text/*', 'application/json;q=0'])
      expect(await outcome(year, { Accept: accept }), accept).toEqual([406, 'ERR-NOT-ACCEPTABLE'])
  })

  test('is the one the client prefers', async () => {
    for (const [accept, type] of [
      ['*/*', 'application/json'],
      ['application/*', 'application/json'],
      ['application/x-ndjson', 'application/x-ndjson'],
      ['application/json;q=0.5, application/x-ndjson', 'application/x-ndjson'],
      ['text/html, application/json;q=0.1', 'application/json'],
    ] as const)
      expect((await ask(year, { Accept: accept }, 'HEAD')).headers['content-type'], accept).toBe(type)
  })
})

test('HEAD gets the headers of GET and no body; other methods get 405', async () => {
  const { date: _, 'x-rate-limit-remaining': __, ...head } = (await ask(year, {}, 'HEAD')).headers
  const get = await ask(year)
  expect((await ask(year, {}, 'HEAD')).bytes).toHaveLength(0)
  for (const name of ['etag', 'content-type', 'content-disposition', 'vary', 'cache-control'])
    expect(head[name], name).toBe(get.headers[name])
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    const refused = await ask(year, {}, method)
    expect([refused.status, refused.json.error.code]).toEqual([405, 'ERR-METHOD-NOT-ALLOWED'])
    expect(refused.headers.allow).toBe('GET, HEAD')
  }
  for (const query of [{ idExercice: '1' }, { idExercice: 'x' }]) {
    const { status, bytes } = await ask(query, {}, 'HEAD')
    expect([status, bytes.length]).toEqual([query.idExercice === '1' ? 404 : 400, 0])
  }
})

test('an error has the documented shape and no header of an export', async () => {
  const { headers, json } = await ask(
    { idExercice: '1' },
    { 'x-request-id': 'asked-1', 'Accept-Encoding': 'gzip' },
  )
  expect(json).toEqual({
    error: {
      code: 'ERR-EXERCICE-NOT-FOUND',
      message: expect.any(String),
      details: {
        url: '/api/v1/mad/movements?version=1.0.0&idExercice=1',
        method: 'GET',
        requestedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        requestId: 'asked-1',
      },
    },
  })
  for (const name of ['etag', 'trailer', 'content-disposition', 'content-encoding'])
    expect(headers[name]).toBeUndefined()
})
