/** The routes of a folder's collections and entries, and of a token's folders. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { type Download, download } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { exercices } from '../../support/ledgers/ledger.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import {
  collectionNames,
  isSingle,
  madCollectionNames,
  readPlainCollection,
  readPlainEntries,
} from '../../support/plain/plain-mad.ts'
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

type Query = Record<string, string | string[]>

function urlOf(name: string, query: Query = {}): string {
  const url = new URL(`/api/v1/mad/${name}`, stage.service.url)
  for (const [key, value] of Object.entries({ version: '1.0.0', ...query }))
    for (const single of [value].flat()) url.searchParams.append(key, single)
  return url.href
}

const ask = (name: string, query: Query = {}, headers: Record<string, string> = {}, method = 'GET') =>
  download(urlOf(name, query), { ...stage.company, ...headers }, method)

/** The current day of the service, which decides how it names the exercices. */
const today = () => new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Paris' }).format()
const plain = (name: string, folder: { schemaId: string; folderId: string } = folders.first) =>
  readPlainCollection(stage.staff.client, folder, name, today())

function expectWhole(answer: Download, text: string, rows: number): void {
  expect(answer.status).toBe(200)
  expect(answer.text).toBe(text)
  expect(answer.trailers).toEqual({ 'x-row-count': String(rows), 'x-content-sha256': answer.sha256 })
}

test('a streamed export has one line in the log, with what was sent', async () => {
  const { text } = await ask('journals', {}, { 'x-request-id': 'one-line' })
  const lines = () => stage.service.lines.filter((line) => line.includes('one-line'))
  await until(() => lines().length > 0)
  const sent = { rows: JSON.parse(text).length, bytes: Buffer.byteLength(text) }
  expect(lines().map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ event: 'request.ended', status: 200, ...sent }),
  ])
})

test('a folder without a reference is called by its id in the names of files, and so is one whose reference is blank', async () => {
  const headers = { ...stage.firm, 'society-id': folders.sameFirm.folderId }
  for (const reference of ["''", 'null']) {
    await stage.staff.client.query(
      `update grandlivre.folders set reference = ${reference} where id = ${folders.sameFirm.folderId}`,
    )
    const names = ['accounts', 'entries?idExercice=12', 'entry?id=30'].map(async (name) => {
      const url = urlOf(name.split('?')[0]!, Object.fromEntries(new URLSearchParams(name.split('?')[1])))
      return (await download(url, headers, 'HEAD')).headers['content-disposition']
    })
    expect(await Promise.all(names)).toEqual(
      ['accounts', 'entries_2024-07-01_2025-06-30', 'entry_30'].map(
        (name) => `attachment; filename="112_${name}.json"`,
      ),
    )
  }
})

test('the routes of collections and of entries return, byte for byte, what the full export contains', async () => {
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

describe.each(collectionNames)('the route of %s', (name) => {
  const body = (items: unknown[]) => JSON.stringify(isSingle(name) ? items[0] : items)

  test('returns what SQL reads from the folder, in every media type and encoding', async () => {
    const items = await plain(name)
    expect(items.length).toBeGreaterThan(isSingle(name) ? 0 : 1)
    const lines = items.map((item) => `${JSON.stringify(item)}\n`).join('')
    for (const encoding of ['identity', 'gzip', 'zstd']) {
      const headers = { 'Accept-Encoding': encoding }
      const answer = await ask(name, {}, headers)
      expectWhole(answer, body(items), items.length)
      expect(answer.headers['content-encoding']).toBe(encoding === 'identity' ? undefined : encoding)
      expectWhole(await ask(name, {}, { ...headers, Accept: 'application/x-ndjson' }), lines, items.length)
    }
  })

  test('serves a firm each of its folders, and no other folder', async () => {
    const other = await plain(name, folders.sameFirm)
    expectWhole(await ask(name, { accountingFolderId: '112' }, stage.firm), body(other), other.length)
    const empty = await plain(name, emptyFolder)
    const answer = await ask(name, {}, { ...stage.firm, 'society-id': '113' })
    expectWhole(answer, body(empty), empty.length)
    if (!isSingle(name)) expect(answer.text).toBe('[]')
    for (const foreign of ['121', '211', '999']) {
      const { status, json } = await ask(name, {}, { ...stage.firm, 'society-id': foreign })
      expect([status, json.error.code]).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    }
    const { status, json } = await ask(name, {}, { 'society-id': '112' })
    expect([status, json.error.code]).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
  })

  const lasting = 'has an ETag that lasts until the ledger changes'
  test.skipIf(name === 'accountingFirm')(lasting, async () => {
    const first = await ask(name)
    const etag = String(first.headers.etag)
    expect(first.headers['cache-control']).toBe('private, no-cache')
    const again = await ask(name, {}, { 'If-None-Match': etag })
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, etag])
    expect((await ask(name, {}, { 'If-None-Match': etag, 'Accept-Encoding': 'gzip' })).status).toBe(200)
    await stage.staff.client.query(`update grandlivre.payments set code = code || 'x' where folder_id = 112`)
    expect((await ask(name, {}, { 'If-None-Match': etag })).status).toBe(304)
    await stage.staff.client.query(
      `update grandlivre.folders set capital = capital + 1 where schema_id = 100 and id = 111`,
    )
    const changed = await ask(name, {}, { 'If-None-Match': etag })
    expect(changed.status).toBe(200)
    expect(changed.headers.etag).not.toBe(etag)
    expect((await ask(name, {}, { 'If-Match': etag })).status).toBe(412)
  })

  test('answers HEAD with the headers only, and refuses unknown parameters, media types and methods', async () => {
    const { status, bytes, headers } = await ask(name, {}, {}, 'HEAD')
    expect([status, bytes.length]).toEqual([200, 0])
    const disposition = String(headers['content-disposition'])
    expect(decodeURIComponent(disposition.split("UTF-8''")[1]!)).toBe(`${folderReference}_${name}.json`)
    for (const query of [{ journalIds: '31' }, { version: '2' }, { idExercice: '11' }] as Query[]) {
      const refused = await ask(name, query)
      expect([refused.status, refused.json.error.details.issues[0].parameter]).toEqual([
        400,
        Object.keys(query)[0],
      ])
    }
    expect((await ask(name, {}, { Accept: 'text/csv' })).status).toBe(406)
    expect((await ask(name, {}, {}, 'POST')).headers.allow).toBe('GET, HEAD')
  })
})

test('the firm of a folder has no ETag, because no ledger changes with it: its new name shows at once', async () => {
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
  // Closed at half past ten in the evening of the day before, UTC.
  expect(closed.map(({ period }: { period: { closed: object } }) => period.closed)).toEqual([
    { at: '2024-10-01', by: { producerId: '7', firstName: expect.any(String), lastName: null } },
  ])
})

const platformDay = `(e.created_at at time zone 'Europe/Paris')::date`
// biome-ignore format: a table
const selections: [query: Query, where: string][] = [
  [{ idExercice: '12' }, 'e.exercice_id = 12'],
  [{ startDate: '2024-03-15', endDate: '2024-10-20' }, `e.date between '2024-03-15' and '2024-10-20'`],
  [{ startDate: '2024-01-01', endDate: '2024-12-31', dateFilter: 'accounting' }, `e.accounted_at between '2024-01-01' and '2024-12-31'`],
  [{ startDate: '2024-10-20', endDate: '2025-04-01', dateFilter: 'platform' }, `${platformDay} between '2024-10-20' and '2025-04-01'`],
]
const filters: [query: Query, where: string][] = [
  [{}, 'true'],
  [{ source: 'E' }, `e.source = 'E'`],
  [{ journalIds: '31' }, 'e.journal_id = 31'],
  [{ journalIds: ['33,0031', '45', '31'] }, 'e.journal_id in (31, 33, 45)'],
  [{ journalIds: '32', source: 'API' }, `e.journal_id = 32 and e.source = 'API'`],
]
const cases = selections.flatMap((selection) =>
  filters.flatMap((filter) =>
    [false, true].map((draft): [Query, string] => [
      { ...selection[0], ...filter[0], ...(draft ? { draft: '' } : {}) },
      `${selection[1]} and ${filter[1]} and e.validated_at is ${draft ? 'null' : 'not null'}`,
    ]),
  ),
)

describe('entries', () => {
  test('match every selection and filter, including drafts and entries without movements', async () => {
    let found = 0
    for (const [i, [query, where]] of cases.entries()) {
      const entries = await readPlainEntries(stage.staff.client, folders.first, where, 'e.id')
      const lines = i % 2 === 1
      const answer = await ask('entries', query, lines ? { Accept: 'application/x-ndjson' } : {})
      const text = lines
        ? entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
        : JSON.stringify(entries)
      expect(answer.text, JSON.stringify(query)).toBe(text)
      expectWhole(answer, text, entries.length)
      if (entries.length > 0) found++
    }
    expect(found / cases.length).toBeGreaterThan(0.5)
    const { text } = await ask('entries', { idExercice: '12', journalIds: '31' })
    expect(text).toContain('"movements":[]')
  })

  test('resume after a given entry while the ledger stays unchanged', async () => {
    const query = { idExercice: '12' }
    const lines = { Accept: 'application/x-ndjson' }
    const whole = await ask('entries', query, lines)
    const ids = whole.text.match(/^\{"producerId":"\d+/gm)!.map((text) => text.match(/\d+/)![0])
    const rows = whole.text.split(/(?<=\n)/)
    for (const at of [0, 1, 7, ids.length - 2, ids.length - 1]) {
      const headers = { ...lines, 'If-Match': String(whole.headers.etag) }
      const rest = await ask('entries', { ...query, after: ids[at]! }, headers)
      expect(rest.text).toBe(rows.slice(at + 1).join(''))
      expect(rest.headers.etag).not.toBe(whole.headers.etag)
    }
    const unknown = await ask('entries', { ...query, after: '999999' })
    expect([unknown.status, unknown.json.error.details.issues[0].parameter]).toEqual([400, 'after'])
    const movements = await ask('movements', query, { 'If-Match': String(whole.headers.etag) })
    expect(movements.status).toBe(412)
  })
})

describe('entries', () => {
  test.each([
    [{}, 400, 'ERR-VALIDATION'],
    [{ idExercice: '12', startDate: '2024-01-01', endDate: '2024-02-01' }, 400, 'ERR-VALIDATION'],
    [{ startDate: '2024-01-01' }, 400, 'ERR-VALIDATION'],
    [{ startDate: '2024-01-01', endDate: '2025-01-01' }, 400, 'ERR-VALIDATION'],
    [{ idExercice: '12', classAccount: '6' }, 400, 'ERR-VALIDATION'],
    [{ idExercice: '12', lettering: 'none' }, 400, 'ERR-VALIDATION'],
    [{ idExercice: '12', journalIds: 'AC' }, 400, 'ERR-VALIDATION'],
    [{ idExercice: '12', journalIds: ',' }, 400, 'ERR-VALIDATION'],
    [{ idExercice: '99' }, 404, 'ERR-EXERCICE-NOT-FOUND'],
    [{ idExercice: '12', journalIds: ['31', '99'] }, 404, 'ERR-JOURNAL-NOT-FOUND'],
    [{ idExercice: '12', journalIds: '9999999999999999' }, 404, 'ERR-JOURNAL-NOT-FOUND'],
  ] as [Query, number, string][])('are refused for %j with %i %s', async (query, status, code) => {
    const answer = await ask('entries', query)
    expect([answer.status, answer.json.error.code]).toEqual([status, code])
  })

  test('of a journal that only another folder has are refused', async () => {
    await stage.staff.client.query(
      `insert into grandlivre.journals (schema_id, folder_id, id, code, name, type) values (100, 112, 7777, 'X', 'X', 'OD')`,
    )
    const { status, json } = await ask('entries', { idExercice: '12', journalIds: '7777' })
    expect([status, json.error.code]).toEqual([404, 'ERR-JOURNAL-NOT-FOUND'])
    expect(json.error.message).toContain('7777')
  })

  test('of unknown journals are refused with the ids of those journals', async () => {
    const { json } = await ask('entries', { idExercice: '12', journalIds: '31,099,9999999999999999' })
    expect(json.error.message).toBe('Not journals of this folder: 99, 9999999999999999')
  })

  test('break off if the database connection is lost, and never look complete', async () => {
    const { client } = stage.staff
    await client.query(
      `update grandlivre.entries set comment = repeat('x', 200000) where schema_id = 100 and folder_id = 111`,
    )
    const response = await fetch(urlOf('entries', { idExercice: '12' }), { headers: stage.company })
    expect(response.status).toBe(200)
    const reader = response.body!.getReader()
    await reader.read()
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'grandlivre export' and datname = current_database()`,
    )
    const rest = async () => {
      while (!(await reader.read()).done);
    }
    await expect(rest()).rejects.toThrow()
    await until(() => stage.service.lines.some((line) => line.includes('"stream.broken"')))
  })
})

describe('the folders of a token', () => {
  const society = (headers: Record<string, string>, query = '') =>
    download(`${stage.service.url}/api/v1/society${query}`, headers)

  test('are those of the firm for a firm token', async () => {
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
    expectWhole(answer, text, 3)
    expect(answer.headers.etag).toBeUndefined()
  })

  test('are not listed for other firms or tenants', async () => {
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

  test('are for a company token its own folder alone, whatever others the firm has', async () => {
    const [first, , empty] = (await society(stage.firm)).json
    expectWhole(await society(stage.company), JSON.stringify([first]), 1)
    const lines = await society({ ...stage.company, Accept: 'application/x-ndjson' })
    expectWhole(lines, `${JSON.stringify(first)}\n`, 1)
    const ofEmpty = await stage.staff.token('PARTNER', 'api', { ...folders.first, folderId: empty.id })
    const headers = credentials(ofEmpty, stage.firm['X-Third-Party-Secret']!)
    expect((await society(headers)).json).toEqual([empty])
    expect((await society({ ...stage.company, 'society-id': '112' })).status).toBe(403)
    expect((await society(stage.company)).headers.etag).toBeUndefined()
  })

  test('accept no parameters', async () => {
    expect((await society(stage.firm, '?version=1.0.0')).status).toBe(400)
  })
})

test('the OpenAPI document describes the items of every collection', async () => {
  const { json } = await download(`${stage.service.url}/api/v1/openapi.json`, {})
  for (const name of [...collectionNames, 'entries'])
    expect(
      json.paths[`/api/v1/mad/${name}`].get.responses['200'].content['application/json'].schema,
    ).toBeDefined()
  const schemas =
    'AccountingFolder Payment Bank Journal Account Exercice AnalyticalAxe Entry Society Vat AccountingFirm'.split(
      ' ',
    )
  expect(Object.keys(json.components.schemas)).toEqual(expect.arrayContaining(schemas))
})
