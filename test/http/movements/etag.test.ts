/** What an ETag of movements depends on, and resumed exports; folder-routes.test.ts has the ETags of all routes. */
import { describe, expect, test } from 'vitest'
import { type Download, download, madUrl, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

const json = { Accept: 'application/json' }
const ndjson = { Accept: 'application/x-ndjson' }
const selected = { idExercice: '12', source: 'FEC' }

const ask = (query: Record<string, string>, headers: Record<string, string> = {}): Promise<Download> =>
  download(movementsUrl(stage.service.url, query), { ...stage.company, ...headers })

async function etag(query: Record<string, string> = selected, headers: Record<string, string> = {}) {
  return String((await ask(query, headers)).headers.etag)
}

const change = (sql: string) => stage.staff.client.query(sql)
const ofFolder = `schema_id = 100 and folder_id = 111`

describe('an ETag', () => {
  test('differs by media type, encoding and every part of the selection', async () => {
    const requests: Parameters<typeof etag>[] = [
      [selected, json],
      [selected, ndjson],
      [selected, { 'Accept-Encoding': 'gzip' }],
      [selected, { 'Accept-Encoding': 'zstd' }],
      [selected, { ...ndjson, 'Accept-Encoding': 'gzip' }],
      [{ ...selected, draft: '1' }],
      [{ ...selected, lettering: 'none' }],
      [{ ...selected, classAccount: '6' }],
      [{ ...selected, source: 'API' }],
      [{ ...selected, idExercice: '11' }],
      [{ startDate: '2024-07-01', endDate: '2025-06-30' }],
      [{ startDate: '2024-07-02', endDate: '2025-06-30' }],
      [{ startDate: '2024-07-01', endDate: '2025-06-29' }],
      [{ startDate: '2024-07-01', endDate: '2025-06-30', dateFilter: 'platform' }],
    ]
    const tags: string[] = []
    for (const parameters of requests) tags.push(await etag(...parameters))
    expect(new Set(tags).size).toBe(tags.length)
  })

  test('is the same for a selection written in another way, and for another caller of the folder', async () => {
    const tag = await etag({ ...selected, classAccount: '60,401' })
    expect(await etag({ ...selected, idExercice: '012', classAccount: '401%,60,60' })).toBe(tag)
    const asFirm = (society: string) => etag(selected, { ...stage.firm, 'society-id': society })
    expect(await asFirm('111')).toBe(await etag(selected))
    expect(await asFirm('112')).not.toBe(await etag(selected))
    const period = { startDate: '2024-07-01', endDate: '2025-06-30' }
    expect(await etag({ ...period, dateFilter: 'document' })).toBe(await etag(period))
  })

  test.each([
    [
      'an account is renamed',
      `update grandlivre.accounts set name = name || '!' where ${ofFolder} and id = 110`,
    ],
    [
      'an unused account is added',
      `insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
        values (100, 111, 4711, '4711', 'Neu')`,
    ],
    [
      'a draft is validated',
      `update grandlivre.entries set validated_at = date where ${ofFolder} and id = 3`,
    ],
    [
      'a movement of another exercice changes',
      `update grandlivre.movements set description = 'x'
        where ${ofFolder} and exercice_id = 11 and lettering_state = 'none'`,
    ],
    ['an entry is deleted', `delete from grandlivre.entries where ${ofFolder} and id = 12`],
    ['a section is renamed', `update grandlivre.sections set name = 'x' where ${ofFolder} and id = 71`],
    ['the folder is renamed', `update grandlivre.folders set name = 'x' where id = 111`],
  ])('changes when %s', async (_what, sql) => {
    const before = await etag()
    await change(sql)
    const after = await etag()
    expect(after).not.toBe(before)
    expect(await etag()).toBe(after)
    expect((await ask(selected, { 'If-None-Match': before })).status).toBe(200)
  })

  test('changes when an entry of the folder is added, but not with changes in other folders', async () => {
    const before = await etag()
    const other = { schemaId: '100', folderId: '112' }
    await addEntry(stage.staff.client, other, { id: '500001' }, [{ id: '500001' }])
    await change(`update grandlivre.accounts set name = 'x' where schema_id = 200`)
    await change(`update grandlivre.third_parties set disconnected_reason = null`)
    await ask({ idExercice: '11' })
    expect(await etag()).toBe(before)
    await addEntry(stage.staff.client, { ...other, folderId: '111' }, { id: '500001' }, [{ id: '500001' }])
    expect(await etag()).not.toBe(before)
  })

  test('does not change with a transaction that rolls back', async () => {
    const before = await etag()
    await change('begin')
    await change(`update grandlivre.accounts set name = 'never' where ${ofFolder} and id = 101`)
    expect(await etag()).toBe(before)
    await change('rollback')
    expect(await etag()).toBe(before)
  })
})

describe('a resumed export', () => {
  const year = { idExercice: '12' }

  test.each(['movements', 'entries'])('continues NDJSON byte for byte after any of the %s', async (path) => {
    const askForRest = (query: Record<string, string>, headers: Record<string, string>) =>
      download(madUrl(stage.service.url, path, { ...year, ...query }), {
        ...stage.company,
        ...ndjson,
        ...headers,
      })
    const whole = await askForRest({}, {})
    const lines = whole.text.split(/(?<=\n)/)
    expect(lines.length).toBeGreaterThan(30)
    for (const [i, line] of lines.entries()) {
      const after: string = JSON.parse(line).producerId
      const rest = await askForRest({ after }, { 'If-Match': String(whole.headers.etag) })
      expect(rest.status).toBe(200)
      expect(rest.text, after).toBe(lines.slice(i + 1).join(''))
      expect(rest.trailers['x-row-count']).toBe(String(lines.length - i - 1))
      expect(rest.headers.etag).not.toBe(whole.headers.etag)
    }
    const other = await askForRest({}, { 'If-Match': await etag({ ...year, draft: '' }) })
    expect(other.status).toBe(412)
  })

  test('keeps its filters, and can continue after a movement that they exclude', async () => {
    const all: { producerId: string; account: { number: string } }[] = (await ask(year)).json
    const filtered = { ...year, classAccount: '4' }
    const ids = all.map((movement) => movement.producerId)
    for (const after of ids.filter((_, i) => i % 9 === 4)) {
      const expected = all
        .slice(ids.indexOf(after) + 1)
        .filter(({ account }) => account.number.startsWith('4'))
      expect((await ask({ ...filtered, after })).json).toEqual(expected)
    }
    const period = { startDate: '2024-07-01', endDate: '2025-06-30', lettering: 'partial' }
    const partial = (await ask(period)).json
    expect((await ask({ ...period, after: partial[1].producerId })).json).toEqual(partial.slice(2))
  })

  test('can continue after a movement of an entry outside its selection', async () => {
    const elsewhere = (await ask({ idExercice: '11' })).json.at(-1)
    const own: { entry: { producerId: string } }[] = (await ask(year)).json
    const rest = (await ask({ ...year, after: elsewhere.producerId })).json
    expect(rest).toEqual(
      own.filter(({ entry }) => Number(entry.producerId) > Number(elsewhere.entry.producerId)),
    )
  })

  test('accepts the ETag of any representation of its selection, and no other ETag', async () => {
    const after: string = (await ask(year)).json[3].producerId
    const resume = async (tag: string, query = {}) => {
      const answer = await ask({ ...year, after, ...query }, { ...ndjson, 'If-Match': tag })
      return [answer.status, answer.status === 200 ? null : answer.json.error.code]
    }
    for (const headers of [
      json,
      ndjson,
      { 'Accept-Encoding': 'zstd' },
      { ...ndjson, 'Accept-Encoding': 'gzip' },
    ])
      expect(await resume(await etag(year, headers))).toEqual([200, null])
    const tag = await etag(year)
    expect(await resume(`"other", ${tag}`)).toEqual([200, null])
    expect(await resume('*')).toEqual([200, null])
    expect(await resume(await etag({ ...year, after }))).toEqual([200, null])
    const refused = [412, 'ERR-PRECONDITION-FAILED']
    expect(await resume('"other"')).toEqual(refused)
    expect(await resume(tag, { lettering: 'none' })).toEqual(refused)
    expect(await resume(await etag({ idExercice: '11' }))).toEqual(refused)
    expect(await resume(await etag(year, { ...stage.firm, 'society-id': '112' }))).toEqual(refused)
  })

  test('is refused if the ledger has changed meanwhile, and otherwise continues', async () => {
    const whole = await ask(year, ndjson)
    const after: string = JSON.parse(whole.text.split('\n')[5]!).producerId
    const headers = { ...ndjson, 'If-Match': String(whole.headers.etag) }
    await change(`update grandlivre.accounts set name = 'x' where schema_id = 100 and folder_id = 112`)
    expect((await ask({ ...year, after }, headers)).status).toBe(200)
    await change(`update grandlivre.journals set name = name || '.' where ${ofFolder} and id = 31`)
    const refused = await ask({ ...year, after }, headers)
    expect([refused.status, refused.json.error.code]).toEqual([412, 'ERR-PRECONDITION-FAILED'])
    expect((await ask({ ...year, after })).status).toBe(200)
  })

  test('cannot continue after a movement of another folder', async () => {
    const only = { schemaId: '100', folderId: folders.sameFirm.folderId }
    await addEntry(stage.staff.client, only, { id: '600001' }, [{ id: '600001' }])
    const { status, json: body } = await ask({ ...year, after: '600001' })
    expect([status, body.error.details.issues[0].parameter]).toEqual([400, 'after'])
  })
})
