/**
 * Answers to `since`, through the whole service: for every kind of change and many selections, the earlier copy changed
 * by the delta is byte for byte the later copy.
 */
import { describe, expect, test } from 'vitest'
import { applyDelta, readDelta } from '../../support/changes/apply-delta.ts'
import { type Download, download, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string>

const ndjson = { Accept: 'application/x-ndjson' }

/** @param path the last part of the route's */
function ask(path: string, query: Query, headers: Record<string, string> = ndjson): Promise<Download> {
  const url = movementsUrl(stage.service.url, query).replace('/movements', `/${path}`)
  return download(url, { ...stage.company, ...headers })
}

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const ofFolder = 'schema_id = 100 and folder_id = 111'

const year = { idExercice: '12' }
/** Exercice 12 is from 2024-07-01 to 2025-06-30. */
const period = { startDate: '2024-09-01', endDate: '2025-01-31' }
const calendarYear = { startDate: '2024-01-01', endDate: '2024-12-31' }

interface Group {
  selections: [path: string, query: Query][]
  /** One SQL text each; ids of entries in exercice 12 are 12 + 27 n. */
  changes: [what: string, sql: string][]
}

/** Each change with selections that it may move entries in or out of, or whose lines it alters. */
const groups: Group[] = [
  {
    selections: [
      ['movements', { ...year, draft: '1' }],
      ['movements', { ...year, source: 'API' }],
      ['movements', { ...period, dateFilter: 'accounting' }],
      ['movements', { ...period, dateFilter: 'platform', source: 'E' }],
      ['entries', { ...period, journalIds: '31,34,37,40', dateFilter: 'platform' }],
    ],
    changes: [
      ['a draft is validated', `update entries set validated_at = date where ${ofFolder} and id in (30, 93)`],
      [
        'a day of booking leaves it',
        `update entries set accounted_at = '2025-06-30' where ${ofFolder} and id = 228`,
      ],
      [
        'a day of the platform leaves it',
        `update entries set created_at = '2025-06-30' where ${ofFolder} and id = 255`,
      ],
      [
        'a source',
        `update entries set source = 'FEC', third_party_id = null where ${ofFolder} and id in (336, 39)`,
      ],
      ['a journal of drafts', `update entries set journal_id = 31 where ${ofFolder} and id in (282, 471)`],
      ['a journal', `update journals set code = 'NEU' where ${ofFolder} and id = 33`],
      ['a partner', `update third_parties set name = 'Neuer Name' where code = 'PARTNER'`],
      ['nothing that a line shows', `update exercices set closed_at = now() where ${ofFolder}`],
      ['another folder', `update entries set comment = 'x' where folder_id = 112`],
    ],
  },
  {
    selections: [
      ['movements', { ...year, classAccount: '60,401' }],
      ['movements', { ...year, classAccount: '7' }],
      ['movements', { ...year, lettering: 'none' }],
      ['movements', { ...year, lettering: 'partial', classAccount: '4' }],
      ['movements', { ...year, lettering: 'complete', draft: '1' }],
    ],
    changes: [
      ['a text of a movement', `update movements set description = 'x' where ${ofFolder} and entry_id = 120`],
      ['an amount', `update movements set debit = 7, credit = 0 where ${ofFolder} and entry_id = 147`],
      [
        'a movement moves to another entry',
        `update movements set entry_id = 336 where ${ofFolder} and entry_id = 363`,
      ],
      [
        'an account of movements',
        `update movements set account_id = 110 where ${ofFolder} and entry_id in (390, 417)`,
      ],
      [
        'a lettering',
        `update movements set lettering_state = 'complete', lettering_code = 'AA' where ${ofFolder} and entry_id in (444, 471)`,
      ],
      [
        'the end of a lettering',
        `update movements set lettering_state = 'none', lettering_code = null where ${ofFolder} and entry_id in (444, 498)`,
      ],
      ['an account name', `update accounts set name = 'Neu' where ${ofFolder} and id = 106`],
      [
        'an account leaves its class',
        `update accounts set number = '8' || number where ${ofFolder} and id in (101, 110)`,
      ],
      [
        'an account enters a class',
        `update accounts set number = '60' || number where ${ofFolder} and id = 106`,
      ],
      ['a mode of payment', `update payments set code = 'CHQ' where ${ofFolder} and id = 52`],
      ['its last movement is deleted', `delete from movements where ${ofFolder} and entry_id = 579`],
    ],
  },
  {
    selections: [
      ['movements', year],
      ['movements', { idExercice: '11' }],
      ['movements', calendarYear],
      ['entries', year],
      ['entries', { ...calendarYear, draft: '1' }],
    ],
    changes: [
      ['a comment', `update entries set comment = 'x' where ${ofFolder} and id in (39, 66)`],
      [
        'an entry awaits validation again',
        `update entries set validated_at = null where ${ofFolder} and id = 174`,
      ],
      ['a date leaves a period', `update entries set date = '2025-06-30' where ${ofFolder} and id = 201`],
      ['an axis', `update axes set name = 'Neu' where ${ofFolder} and id = 62`],
      ['a section', `update sections set code = 'NEU' where ${ofFolder} and id = 72`],
      ['a section goes to another axis', `update sections set axis_id = 61 where ${ofFolder} and id = 66`],
      [
        'a section is deleted',
        `update movements set shares = null where ${ofFolder} and 74 = any (shares); delete from sections where ${ofFolder} and id = 74`,
      ],
      ['an entry is deleted', `delete from entries where ${ofFolder} and id in (525, 552, 12)`],
      ['all entries', `update entries set comment = 'all' where ${ofFolder}`],
    ],
  },
]
const selections = groups.flatMap((group) => group.selections)

/** The selections as they stand. */
async function copies(of: Group['selections']): Promise<Download[]> {
  const all = []
  for (const [path, query] of of) all.push(await ask(path, query))
  return all
}

test('after every kind of change, the earlier copy and the delta give the later copy', async () => {
  const seen = { nothing: 0, ranges: 0, everything: 0, withoutLines: 0 }

  for (const { selections, changes } of groups) {
    let before = await copies(selections)
    for (const [what, sql] of changes) {
      await change(sql)
      const after = await copies(selections)
      for (const [i, [path, query]] of selections.entries()) {
        const name = `${what}: ${path} ${JSON.stringify(query)}`
        const since = String(before[i]!.headers['x-ledger-cursor'])
        const delta = await ask(path, { ...query, since })
        expect([delta.status, delta.headers['content-type']], name).toEqual([200, 'application/x-ndjson'])
        expect(applyDelta(before[i]!.text, delta.text), name).toBe(after[i]!.text)
        const { entries, lines, ...cursors } = readDelta(delta.text)
        expect(cursors, name).toEqual({ since, cursor: after[i]!.headers['x-ledger-cursor'] })
        expect(delta.headers['x-ledger-cursor'], name).toBe(cursors.cursor)
        expect(delta.trailers, name).toEqual({
          'x-row-count': String(lines.length),
          'x-content-sha256': delta.sha256,
        })
        if (entries.length === 0) seen.nothing++
        else if (entries[0]![1] === '9007199254740991') seen.everything++
        else if (lines.length === 0) seen.withoutLines++
        else seen.ranges++
      }
      before = after
    }
  }
  // Otherwise the comparison would prove little of one of the ways in which a delta is made.
  for (const [way, times] of Object.entries(seen)) expect(times, way).toBeGreaterThan(5)
})

test('an entry that comes again in another exercice, and the first movement of an entry', async () => {
  const { selections } = groups.at(-1)!
  const before = await copies(selections)
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
  const after = await copies(selections)
  for (const [i, [path, query]] of selections.entries()) {
    const delta = await ask(path, { ...query, since: String(before[i]!.headers['x-ledger-cursor']) })
    expect(applyDelta(before[i]!.text, delta.text), JSON.stringify(query)).toBe(after[i]!.text)
  }
})

async function cursorNow(): Promise<string> {
  return String((await ask('movements', year)).headers['x-ledger-cursor'])
}

describe('nothing changed', () => {
  test('is one line, whatever the selection, encoding and media type', async () => {
    const since = await cursorNow()
    const line = `{"since":"${since}","cursor":"${since}","entries":[]}\n`
    for (const [path, query] of selections)
      for (const headers of [
        ndjson,
        { Accept: '*/*' },
        { 'Accept-Encoding': 'zstd' },
        { 'Accept-Encoding': 'gzip' },
      ]) {
        const answer = await ask(path, { ...query, since }, headers as Record<string, string>)
        expect(answer.text).toBe(line)
        expect(answer.trailers).toEqual({ 'x-row-count': '0', 'x-content-sha256': answer.sha256 })
        expect(answer.headers).toMatchObject({
          'content-type': 'application/x-ndjson',
          'x-ledger-cursor': since,
          trailer: 'X-Row-Count, X-Content-SHA256',
          'content-disposition': expect.stringMatching(/_\d{4}-\d\d-\d\d\.ndjson/),
        })
        expect(answer.headers['content-encoding']).toBe(
          (headers as Record<string, string>)['Accept-Encoding'],
        )
      }
  })

  test('is answered though no export could read the ledger', async () => {
    const since = await cursorNow()
    await change('revoke select on movements from grandlivre_service')
    try {
      expect((await ask('movements', year)).status).toBe(500)
      expect(readDelta((await ask('movements', { ...year, since })).text).entries).toEqual([])
    } finally {
      await change('grant select on movements to grandlivre_service')
    }
  })

  test('in any line: the cursor moves alone', async () => {
    const since = await cursorNow()
    await change(`update banks set rib = rib; update exercices set closed_at = null where ${ofFolder}`)
    const { cursor, entries, lines } = readDelta((await ask('movements', { ...year, since })).text)
    expect(cursor).not.toBe(since)
    expect([entries, lines]).toEqual([[], []])
  })
})

test('few changes are exact ranges; more than a tenth is one range of everything', async () => {
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
  // For the drafts nothing changed: the ranges hold none of them.
  const drafts = readDelta((await ask('entries', { ...year, draft: '1', since })).text)
  expect([drafts.entries.length, drafts.lines]).toEqual([8, []])
})

describe('a delta', () => {
  test('has no ETag, and is never 304', async () => {
    const since = await cursorNow()
    const whole = await ask('movements', year)
    await change(`update entries set comment = comment where ${ofFolder} and id = 39`)
    const etags = `${whole.headers.etag}, ${(await ask('movements', year)).headers.etag}, *`
    for (const path of ['movements', 'entries'] as const)
      for (const query of [{ since }, { since: await cursorNow() }, { since: await cursorNow(), wait: '1' }])
        for (const method of ['GET', 'HEAD']) {
          const url = movementsUrl(stage.service.url, { ...year, ...query }).replace('movements', path)
          const sent = { ...stage.company, ...ndjson, 'If-None-Match': etags }
          const { status, headers } = await download(url, sent, method)
          expect([status, headers.etag, headers['x-ledger-cursor']]).toEqual([
            200,
            undefined,
            await cursorNow(),
          ])
        }
  })

  test('takes the ETag of its selection for If-Match', async () => {
    const { headers } = await ask('movements', year, { Accept: 'application/json' })
    const since = String(headers['x-ledger-cursor'])
    const ifMatch = { ...ndjson, 'If-Match': String(headers.etag) }
    expect((await ask('movements', { ...year, since }, ifMatch)).status).toBe(200)
    await change(`update entries set comment = comment where ${ofFolder} and id = 39`)
    expect((await ask('movements', { ...year, since }, ifMatch)).status).toBe(412)
  })
})

test('HEAD answers with the headers of the delta', async () => {
  const since = await cursorNow()
  const url = movementsUrl(stage.service.url, { ...year, since })
  const { status, bytes, headers } = await download(url, stage.company, 'HEAD')
  expect([status, bytes.length, headers['content-type']]).toEqual([200, 0, 'application/x-ndjson'])
})
