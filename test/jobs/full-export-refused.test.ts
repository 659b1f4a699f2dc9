/** What the trigger and the status of a full export refuse, and with which answer. */
import { describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { statusUrl, trigger } from '../support/full-export.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { type Answer, request } from '../support/service.ts'
import { setTwoServices } from '../support/stages/two-services.ts'

const { sameFirm, otherFirm } = folders

const stage = forTests(setTwoServices)

async function expectInvalid(answer: Promise<Answer>, parameters: string[]): Promise<void> {
  const { status, body } = await answer
  const named = (body.error.details.issues ?? []).map((issue: { parameter: string }) => issue.parameter)
  expect([status, body.error.code, named.sort()]).toEqual([400, 'ERR-VALIDATION', parameters])
}

const refusals: [string, Record<string, string>, string[]][] = [
  ['no format', { format: '' }, ['format']],
  ['an unknown format', { format: 'XML' }, ['format']],
  ['idExercice with JSON', { idExercice: '12' }, ['idExercice']],
  ['a period with JSON', { startDate: '2024-01-01', endDate: '2024-12-31' }, ['endDate', 'startDate']],
  ['journals with JSON', { journalIds: '31,32' }, ['journalIds']],
  ['journals without a value', { format: 'TRA', journalIds: '' }, ['journalIds']],
  ['an unknown parameter', { draft: '1' }, ['draft']],
  ['TRA with a year and a date', { format: 'TRA', idExercice: '12', endDate: '2024-12-31' }, ['endDate']],
  ['TRA with half a period', { format: 'tra', startDate: '2024-01-01' }, ['endDate']],
  [
    'TRA with a reversed period',
    { format: 'TRA', startDate: '2024-01-02', endDate: '2024-01-01' },
    ['endDate'],
  ],
  [
    'TRA for more than 24 months',
    { format: 'TRA', startDate: '2023-01-01', endDate: '2025-01-01' },
    ['endDate'],
  ],
  [
    'a day that does not exist',
    { format: 'TRA', startDate: '2023-02-30', endDate: '2024-12-31' },
    ['startDate'],
  ],
  ['an unknown compression', { compression: 'br' }, ['compression']],
  ['two compressions', { compression: 'gzip,zstd' }, ['compression']],
  ['an encoding for JSON', { encoding: 'utf-8' }, ['encoding']],
  ['columns for TRA', { format: 'TRA', columns: 'extended' }, ['columns']],
  ['journals that are not ids', { format: 'TRA', journalIds: 'HA' }, ['journalIds']],
]

describe('an export request', () => {
  test.each(refusals)('is refused with %s', async (_, query, parameters) => {
    await expectInvalid(trigger(stage.url, stage.company, query), parameters)
  })

  test.each([
    ['?version=1.0.0&format=JSON&format=JSON', ['format']],
    ['?version=1.0.0&format=JSON&compression=gzip&compression=gzip', ['compression']],
    ['', ['format', 'version']],
    ['/status', ['exportId']],
    ['/status?exportId=', ['exportId']],
    ['/status?exportId=a&exportId=b', ['exportId']],
  ])('is refused if a parameter is given twice or missing: /all%s', async (path, parameters) => {
    await expectInvalid(request(`${stage.url}/api/v1/mad/all${path}`, stage.company), parameters)
  })

  test('is refused for an unknown version or another method', async () => {
    const { body } = await request(`${stage.url}/api/v1/mad/all?version=2.0.0&format=JSON`, stage.company)
    expect(body.error.code).toBe('ERR-UNSUPPORTED-VERSION')
    const posted = await request(statusUrl(stage.url, 'a'), stage.company, 'POST')
    expect(posted.headers.get('allow')).toBe('GET, HEAD')
  })

  test('is accepted with parameters without a value, which count as absent', async () => {
    const empty = { accountingFolderId: '', idExercice: '', startDate: '', endDate: '', compression: '' }
    const job = await trigger(stage.url, stage.company, empty)
    expect([job.status, job.body.id]).toEqual([200, (await trigger(stage.url, stage.company)).body.id])
    const status = await request(`${statusUrl(stage.url, job.body.id)}&version=`, stage.company)
    expect(status.status).toBe(200)
  })

  test('with the method HEAD is refused and starts no export', async () => {
    await stage.passAnHour()
    const count = () => stage.sql('select count(*) from grandlivre.exports')
    const before = await count()
    const address = `${stage.url}/api/v1/mad/all?version=1.0.0&format=JSON`
    const head = await request(address, stage.company, 'HEAD')
    expect([head.status, head.headers.get('allow'), head.body]).toEqual([405, 'GET', ''])
    expect((await request(address, stage.company, 'POST')).headers.get('allow')).toBe('GET')
    expect(await count()).toEqual(before)
    const { id } = await stage.exported()
    expect((await request(statusUrl(stage.url, id), stage.company, 'HEAD')).status).toBe(200)
  })

  test('is refused for a caller without a token, and for a folder of another firm', async () => {
    expect((await trigger(stage.url, {})).status).toBe(401)
    expect((await trigger(stage.url, stage.firm)).status).toBe(400)
    expect((await trigger(stage.url, stage.asFirm(otherFirm.folderId))).status).toBe(404)
    expect((await trigger(stage.url, { ...stage.company, 'society-id': sameFirm.folderId })).status).toBe(403)
  })

  test('for the status of an export of another folder or tenant gets the same answer as for an unknown export', async () => {
    const { id } = await stage.exported()
    const status = (exportId: string, headers = stage.company) =>
      request(statusUrl(stage.url, exportId), headers)
    const malformed = [
      id.toUpperCase(),
      id.slice(0, -1),
      `${id}0`,
      `${id}\n`,
      id.slice(7),
      "export_' or 1=1",
      '\u0000',
    ]
    const answers = await Promise.all([
      status(id, stage.asFirm(sameFirm.folderId)),
      status(id, await stage.strangers()),
      ...[`export_${'0'.repeat(32)}`, ...malformed].map((each) => status(each)),
    ])
    for (const { status: code, body } of answers)
      expect([code, body.error.code, body.error.message]).toEqual([
        404,
        'ERR-EXPORT-NOT-FOUND',
        'No such export in this folder',
      ])
  })
})
