/** The collections of a folder, and the folders of a token; folder-routes.test.ts has what the routes have in common. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { exercices } from '../../support/ledgers/ledger.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { madCollectionNames } from '../../support/plain/plain-mad.ts'
import { folderReference, setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

beforeAll(async () => {
  await addToFolder(stage.staff.client, folders.first)
  await addToFolder(stage.staff.client, folders.otherTenant)
  await createFolder(stage.staff.client, { ...emptyFolder, id: emptyFolder.folderId, name: 'Empty' })
})

/** Belongs to firm 110, like the filled folders 111 and 112. */
const emptyFolder = { schemaId: '100', firmId: '110', folderId: '113' }

type Query = Record<string, string>

const ask = (name: string, query: Query = {}, headers: Query = {}) =>
  download(madUrl(stage.service.url, name, query), { ...stage.company, ...headers })

test('a streamed export writes one line to the log, with what was sent', async () => {
  const { text } = await ask('journals', {}, { 'x-request-id': 'one-line' })
  const lines = () => stage.service.lines.filter((line) => line.includes('one-line'))
  await until(() => lines().length > 0)
  const sent = { rows: JSON.parse(text).length, bytes: Buffer.byteLength(text) }
  expect(lines().map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ event: 'request.ended', status: 200, ...sent }),
  ])
})

test('files of a folder without a reference, or with a blank one, are named after its id', async () => {
  const headers = { ...stage.firm, 'society-id': folders.sameFirm.folderId }
  for (const reference of ["''", 'null']) {
    await stage.staff.client.query(
      `update grandlivre.folders set reference = ${reference} where id = ${folders.sameFirm.folderId}`,
    )
    const names = Object.entries({ accounts: {}, entries: { idExercice: '12' }, entry: { id: '30' } }).map(
      async ([name, query]: [string, Query]) =>
        (await download(madUrl(stage.service.url, name, query), headers, 'HEAD')).headers[
          'content-disposition'
        ],
    )
    expect(await Promise.all(names)).toEqual(
      ['accounts', 'entries_2024-07-01_2025-06-30', 'entry_30'].map(
        (name) => `attachment; filename="112_${name}.json"`,
      ),
    )
  }
})

test('the routes of collections and entries return the same bytes as the full export', async () => {
  const { body } = await trigger(stage.service.url, stage.company)
  const { url } = await ended(stage.service.url, stage.company, body.id)
  const file = await (await fetch(url!)).text()
  const parts: string[] = []
  for (const name of madCollectionNames) parts.push(`"${name}":${(await ask(name)).text}`)
  const entries: string[] = []
  for (const { id: idExercice } of exercices) {
    const ofYear: string[] = []
    for (const draft of [{}, { draft: '' }]) {
      const { text } = await ask('entries', { idExercice, ...draft }, { Accept: 'application/x-ndjson' })
      ofYear.push(...text.trimEnd().split('\n'))
    }
    const idOf = (line: string) => Number(JSON.parse(line).producerId)
    entries.push(...ofYear.toSorted((one, other) => idOf(one) - idOf(other)))
  }
  parts.push(`"entries":[${entries.join(',')}]`)
  expect(file.slice(file.indexOf('"data":'))).toBe(`"data":{${parts.join(',')}}}`)
})

test('the firm of a folder has no ETag, because no ledger changes with it; its new name shows at once', async () => {
  const former = await ask('accountingFirm', {}, { 'If-None-Match': '*' })
  expect([former.status, former.headers.etag, former.headers['x-ledger-cursor']]).toEqual([
    200,
    undefined,
    undefined,
  ])
  await stage.staff.client.query(
    `update grandlivre.firms set name = 'Renamed', siret = '12345678900011' where schema_id = 100 and id = 110`,
  )
  const { json } = await ask('accountingFirm')
  expect(json).toEqual({ ...former.json, name: 'Renamed', siret: '12345678900011' })
})

test('the closing day of a fiscal year is a day in the time zone of the service', async () => {
  const { json } = await ask('exercices')
  const closed = json.filter(({ state }: { state: string }) => state === 'closed')
  // The exercice was closed on 30 September at 22:30 UTC.
  expect(closed.map(({ period }: { period: { closed: object } }) => period.closed)).toEqual([
    { at: '2024-10-01', by: { producerId: '7', firstName: expect.any(String), lastName: null } },
  ])
})

describe('the list of folders', () => {
  const society = (headers: Query, query = '') =>
    download(`${stage.service.url}/api/v1/society${query}`, headers)

  test('has the folders of the firm for a firm token', async () => {
    const answer = await society(stage.firm)
    const text = JSON.stringify([
      {
        id: '111',
        name: JSON.parse((await ask('accountingFolder')).text).name,
        reference: folderReference,
        SIRET: '12345678901234',
      },
      { id: '112', name: 'Folder 112', reference: null, SIRET: null },
      { id: '113', name: 'Empty', reference: null, SIRET: null },
    ])
    expect([answer.text, answer.trailers]).toEqual([
      text,
      { 'x-row-count': '3', 'x-content-sha256': answer.sha256 },
    ])
    expect(answer.headers.etag).toBeUndefined()
  })

  test('has no folder of another firm or tenant', async () => {
    const secret = stage.firm['X-Third-Party-Secret']!
    for (const [opened, ids] of [
      [folders.otherFirm, ['121']],
      [folders.otherTenant, ['211']],
    ] as const) {
      const token = await stage.staff.token('PARTNER', 'firm', opened)
      const { json } = await society(credentials(token, secret))
      expect(json.map(({ id }: { id: string }) => id)).toEqual(ids)
    }
  })

  test('has only its own folder for a company token, whatever others the firm has', async () => {
    const [first, , empty] = (await society(stage.firm)).json
    expect((await society(stage.company)).json).toEqual([first])
    const lines = await society({ ...stage.company, Accept: 'application/x-ndjson' })
    expect(lines.text).toBe(`${JSON.stringify(first)}\n`)
    const ofEmpty = await stage.staff.token('PARTNER', 'api', { ...folders.first, folderId: empty.id })
    const headers = credentials(ofEmpty, stage.firm['X-Third-Party-Secret']!)
    expect((await society(headers)).json).toEqual([empty])
    expect((await society({ ...stage.company, 'society-id': '112' })).status).toBe(403)
    expect((await society(stage.company)).headers.etag).toBeUndefined()
  })

  test('takes no parameters', async () => {
    expect((await society(stage.firm, '?version=1.0.0')).status).toBe(400)
  })
})
