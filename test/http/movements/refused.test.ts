/**
 * Which selections the routes of a year or a period refuse, reporting all errors at once. document-agreement.slow.test.ts has the
 * values of single parameters, folder-routes.test.ts what all routes refuse.
 */
import { describe, expect, test } from 'vitest'
import { download, madUrl, outcomeOf } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string | string[] | undefined>

const paths = ['movements', 'movements/blocks', 'entries', 'balance']

const ask = async (query: Query, headers: Record<string, string> = {}, path = 'movements') =>
  download(madUrl(stage.service.url, path, query), {
    ...stage.company,
    ...headers,
  })

const outcome = async (...request: Parameters<typeof ask>) => outcomeOf(await ask(...request))

const year = { idExercice: '12' }
const july = { startDate: '2024-07-01', endDate: '2024-07-31' }
const unknownYear = [404, 'ERR-EXERCICE-NOT-FOUND']
const unknownJournal = [404, 'ERR-JOURNAL-NOT-FOUND']

/** A route that does not know a parameter reports it under its own name, too. */
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
  ['a day that does not exist', { startDate: '2023-02-29', endDate: '2023-03-01' }, ['startDate']],
  ['a month that does not exist', { startDate: '2023-01-01', endDate: '2023-13-01' }, ['endDate']],
  ['a date filter with an exercice', { ...year, dateFilter: 'document' }, ['dateFilter']],
  ['a bad root among good ones', { ...year, classAccount: ['60,61', "6'"] }, ['classAccount']],
  ['no root at all', { ...year, classAccount: ' , ' }, ['classAccount']],
  ['a journal by its code', { ...year, journalIds: 'AC' }, ['journalIds']],
  ['no journal at all', { ...year, journalIds: ',' }, ['journalIds']],
  ['an unknown movement or entry', { ...year, after: '123456789' }, ['after']],
  ['a movement or entry that no folder can have', { ...year, after: '9'.repeat(16) }, ['after']],
  ['parameters of another route', { ...year, format: 'JSON', columns: 'all' }, ['columns', 'format']],
  [
    'many errors',
    { version: '1', startDate: '2024-02-30', source: 'x', classAccount: '-', after: 'x', z: '1' },
    ['after', 'classAccount', 'endDate', 'source', 'startDate', 'version', 'z'],
  ],
]

describe('a request gets all errors of its parameters at once', () => {
  test.each(refusals)('%s', async (_what, query, parameters) => {
    for (const path of paths) {
      const { status, json } = await ask(query, {}, path)
      expect([path, status, json.error.code]).toEqual([path, 400, 'ERR-VALIDATION'])
      const issues: { parameter: string; message: string }[] = json.error.details.issues
      expect(new Set(issues.map(({ parameter }) => parameter)), path).toEqual(new Set(parameters))
      for (const { message } of issues) expect(message).toMatch(/^[a-z].{5,}/)
    }
  })

  test('includes a parameter that is given twice, with or without a value', async () => {
    const values = {
      ...july,
      ...year,
      version: '1.0.0',
      dateFilter: 'document',
      source: 'FEC',
      after: '9000',
    }
    for (const [name, value] of Object.entries({ ...values, lettering: 'none', draft: '', since: 'x' })) {
      const selection = name.endsWith('Date') || name === 'dateFilter' ? july : year
      for (const given of [value, ''])
        expect(
          (await ask({ ...selection, [name]: [value, given] })).json.error.details.issues,
        ).toContainEqual({ parameter: name, message: 'may be given only once' })
    }
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

  test('counts as present if it is draft', async () => {
    const drafts = await ask({ ...year, draft: '' })
    expect(drafts.headers.etag).toBe((await ask({ ...year, draft: 'true' })).headers.etag)
    expect(drafts.headers.etag).not.toBe((await ask(year)).headers.etag)
  })
})

test('an exercice that the folder does not have gets 404, even if another folder has it', async () => {
  const theirs = [folders.sameFirm, folders.otherFirm, folders.otherTenant]
  for (const [i, { schemaId, folderId }] of theirs.entries())
    await stage.staff.client.query(
      `insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
       values ($1, $2, $3, '2020-01-01', '2020-12-31')`,
      [schemaId, folderId, 700 + i],
    )
  for (const path of paths)
    for (const idExercice of ['1', '0', '9'.repeat(16), '700', '701', '702'])
      expect(await outcome({ idExercice }, {}, path)).toEqual(unknownYear)
  expect(await outcome({ idExercice: '1' }, { 'If-None-Match': '*' })).toEqual(unknownYear)
  expect(await outcome({ idExercice: '1', source: 'x' }), 'is looked up last').toEqual([
    400,
    'ERR-VALIDATION',
    'source',
  ])
})

test('journals that the folder does not have get 404 with their ids, even if another folder has them', async () => {
  await stage.staff.client.query(
    `insert into grandlivre.journals (schema_id, folder_id, id, code, name, type) values (100, 112, 7777, 'X', 'X', 'OD')`,
  )
  for (const [journalIds, named] of [
    [['31', '99'], '99'],
    ['7777', '7777'],
    ['31,099,9999999999999999', '99, 9999999999999999'],
  ] as const) {
    const query = { ...year, journalIds: [journalIds].flat() }
    expect(await outcome(query, {}, 'entries')).toEqual(unknownJournal)
    expect((await ask(query, {}, 'entries')).json.error.message).toBe(`Not journals of this folder: ${named}`)
  }
})

test('an error has the documented form, and no header of an export', async () => {
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
