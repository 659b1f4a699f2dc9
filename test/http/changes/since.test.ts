/** Answers to `since`, through the whole service. ledger/changes/histories.slow.test.ts proves them for any change. */
import { describe, expect, test } from 'vitest'
import { applyDelta, readDelta } from '../../support/changes/apply-delta.ts'
import { type Download, download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string>

const ndjson: Query = { Accept: 'application/x-ndjson' }

/** @param path of the route, below /mad */
function ask(path: string, query: Query, headers: Query = ndjson, method = 'GET'): Promise<Download> {
  return download(madUrl(stage.service.url, path, query), { ...stage.company, ...headers }, method)
}

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const ofFolder = 'schema_id = 100 and folder_id = 111'

const year = { idExercice: '12' }
const selections: [path: string, query: Query][] = [
  ['movements', year],
  ['movements', { idExercice: '11' }],
  ['movements', { startDate: '2024-01-01', endDate: '2024-12-31' }],
  ['movements', { ...year, lettering: 'partial', classAccount: '4', draft: '1' }],
  ['movements', { startDate: '2024-09-01', endDate: '2025-01-31', dateFilter: 'platform', source: 'E' }],
  ['entries', year],
  ['entries', { startDate: '2024-01-01', endDate: '2024-12-31', draft: '1' }],
]

/** Reads all selections. */
async function copies(): Promise<Download[]> {
  const all = []
  for (const [path, query] of selections) all.push(await ask(path, query))
  return all
}

test('a delta has an entry that moved to another exercice, and the first movement of an entry', async () => {
  const before = await copies()
  await change(`delete from entries where ${ofFolder} and id = 606`)
  const { schemaId, folderId } = folders.first
  const folder = { schemaId, folderId }
  await addEntry(
    stage.staff.client,
    folder,
    { id: '606', exerciceId: '11', date: '2024-02-01', accountedAt: '2024-02-01' },
    [{ id: '800001' }, { id: '800002', accountId: '110' }],
  )
  await addEntry(stage.staff.client, folder, { id: '800003' }, [])
  const after = await copies()
  for (const [i, [path, query]] of selections.entries()) {
    const since = String(before[i]!.headers['x-ledger-cursor'])
    const delta = await ask(path, { ...query, since })
    expect(applyDelta(before[i]!.text, delta.text), JSON.stringify(query)).toBe(after[i]!.text)
    const { lines, cursor } = readDelta(delta.text)
    expect(delta).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/x-ndjson', 'x-ledger-cursor': cursor },
      trailers: { 'x-row-count': String(lines.length), 'x-content-sha256': delta.sha256 },
    })
  }
})

async function cursorNow(): Promise<string> {
  return String((await ask('movements', { ...year, entries: '0-0' })).headers['x-ledger-cursor'])
}

describe('a ledger without changes', () => {
  const accepted: Record<string, string>[] = [
    { Accept: '*/*' },
    { 'Accept-Encoding': 'zstd' },
    { 'Accept-Encoding': 'gzip' },
  ]

  test('is answered with one line, whatever the selection, encoding and media type', async () => {
    const since = await cursorNow()
    const line = `{"since":"${since}","cursor":"${since}","entries":[]}\n`
    for (const [path, query] of selections)
      for (const headers of accepted) {
        const answer = await ask(path, { ...query, since }, headers)
        expect(answer.text).toBe(line)
        expect(answer.trailers).toEqual({ 'x-row-count': '0', 'x-content-sha256': answer.sha256 })
        expect(answer.headers).toMatchObject({
          'content-type': 'application/x-ndjson',
          'x-ledger-cursor': since,
          trailer: 'X-Row-Count, X-Content-SHA256',
          'content-disposition': expect.stringMatching(/_\d{4}-\d\d-\d\d\.ndjson/),
        })
        expect(answer.headers['content-encoding']).toBe(headers['Accept-Encoding'])
      }
  })

  test('is answered without reading movements', async () => {
    const since = await cursorNow()
    await change('revoke select on movements from grandlivre_service')
    try {
      expect((await ask('movements', year)).status).toBe(500)
      expect(readDelta((await ask('movements', { ...year, since })).text).entries).toEqual([])
    } finally {
      await change('grant select on movements to grandlivre_service')
    }
  })

  test('is answered with a newer cursor and no line if its version changed', async () => {
    const since = await cursorNow()
    await change(`update banks set rib = rib; update exercices set closed_at = null where ${ofFolder}`)
    const { cursor, entries, lines } = readDelta((await ask('movements', { ...year, since })).text)
    expect(cursor).not.toBe(since)
    expect([entries, lines]).toEqual([[], []])
  })
})

test('few changes are sent as exact ranges; changes of more than a tenth as one range of everything', async () => {
  const since = await cursorNow()
  const ids: string[] = (await ask('entries', year)).text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).producerId)
  expect(ids.length).toBeGreaterThan(30)
  await change(`update entries set comment = comment where ${ofFolder} and id in (${ids[4]}, ${ids[9]})`)
  expect(readDelta((await ask('entries', { ...year, since })).text).entries).toEqual([
    [ids[4], ids[4]],
    [ids[9], ids[9]],
  ])
  await change(`update entries set comment = comment where ${ofFolder} and id in (${ids.slice(12, 18)})`)
  const much = readDelta((await ask('entries', { ...year, since })).text)
  expect(much.entries).toEqual([['0', '9007199254740991']])
  expect(much.lines).toHaveLength(ids.length)
  // No draft has changed, so the ranges contain none.
  const drafts = readDelta((await ask('entries', { ...year, draft: '1', since })).text)
  expect([drafts.entries.length, drafts.lines]).toEqual([8, []])
})

describe('a delta', () => {
  test('has no ETag, and is never answered with 304', async () => {
    const since = await cursorNow()
    const whole = await ask('movements', year)
    await change(`update entries set comment = comment where ${ofFolder} and id = 39`)
    const etags = `${whole.headers.etag}, ${(await ask('movements', year)).headers.etag}, *`
    const now = await cursorNow()
    for (const path of ['movements', 'entries'])
      for (const query of [{ since }, { since: now }, { since: now, wait: '1' }] as Query[])
        for (const method of query['wait'] && path === 'entries' ? ['GET'] : ['GET', 'HEAD']) {
          const answer = await ask(path, { ...year, ...query }, { ...ndjson, 'If-None-Match': etags }, method)
          const { status, headers } = answer
          expect([status, headers.etag, headers['x-ledger-cursor']]).toEqual([200, undefined, now])
          expect(headers['content-type']).toBe('application/x-ndjson')
          if (method === 'HEAD') expect(answer.bytes).toHaveLength(0)
        }
  })

  test('accepts the ETag of its selection in If-Match', async () => {
    const { headers } = await ask('movements', year, { Accept: 'application/json' })
    const since = String(headers['x-ledger-cursor'])
    const ifMatch = { ...ndjson, 'If-Match': String(headers.etag) }
    expect((await ask('movements', { ...year, since }, ifMatch)).status).toBe(200)
    await change(`update entries set comment = comment where ${ofFolder} and id = 39`)
    expect((await ask('movements', { ...year, since }, ifMatch)).status).toBe(412)
  })
})
