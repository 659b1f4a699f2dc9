/** What the routes that stream a folder have in common: representations, methods, folders, parameters and ETags. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { download, madUrl, outcomeOf } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { collectionNames, isSingle } from '../../support/plain/plain-mad.ts'
import { folderReference, setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string>

const ofYear = ['movements', 'movements/blocks', 'entries', 'balance']
const routes: [name: string, query: Query][] = [
  ...ofYear.map((name): [string, Query] => [name, { idExercice: '12' }]),
  ['entry', { id: '48' }],
  ...collectionNames.map((name): [string, Query] => [name, {}]),
]
/** The firm has no ETag, because no ledger changes with it. */
const hasEtag = (name: string) => name !== 'accountingFirm'

const urlOf = (name: string, query: Query) => madUrl(stage.service.url, name, query)
const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)

beforeAll(async () => {
  const { schemaId, firmId } = folders.first
  await createFolder(stage.staff.client, { schemaId, firmId, id: '113', name: 'Empty' })
  await addToFolder(stage.staff.client, folders.first)
})

describe.each(routes)('the route of %s', (name, own) => {
  const ask = (query: Query = {}, headers: Query = {}, method = 'GET') =>
    download(urlOf(name, { ...own, ...query }), { ...stage.company, ...headers }, method)

  const outcome = async (...request: Parameters<typeof ask>) => outcomeOf(await ask(...request))

  test('returns the same items in JSON and NDJSON and in every encoding, under six ETags', async () => {
    const texts = new Set<string>()
    const etags = new Set<string | undefined>()
    for (const Accept of ['application/json', 'application/x-ndjson'])
      for (const encoding of ['identity', 'gzip', 'zstd']) {
        const { status, headers, trailers, text, sha256 } = await ask(
          {},
          { Accept, 'Accept-Encoding': encoding },
        )
        expect([status, headers['content-type'], headers['content-encoding'] ?? 'identity']).toEqual([
          200,
          Accept,
          encoding,
        ])
        expect(trailers['x-content-sha256']).toBe(sha256)
        texts.add(`${trailers['x-row-count']} ${text}`)
        etags.add(headers.etag)
      }
    const [, rows, lines] = /^(\d+) (.*)$/s.exec([...texts][1]!)!
    const items = lines!.split('\n').slice(0, -1)
    expect(items).toHaveLength(Number(rows))
    expect(items.length).toBeGreaterThan(0)
    const array = isSingle(name) || name === 'entry' ? items.join() : `[${items.join()}]`
    expect([...texts]).toEqual([`${rows} ${array}`, `${rows} ${lines}`])
    expect(etags.size).toBe(hasEtag(name) ? 6 : 1)
    for (const etag of etags) if (hasEtag(name)) expect(etag).toMatch(/^"[\w.-]+"$/)
  })

  test('answers HEAD as GET without a body, and refuses other methods and media types', async () => {
    const get = await ask()
    const head = await ask({}, {}, 'HEAD')
    expect([head.status, head.bytes.length]).toEqual([200, 0])
    // Digests that are not kept have no ETag before they are computed (changes/blocks.test.ts).
    const compared = ['content-type', 'content-disposition', 'vary', 'cache-control']
    for (const header of name === 'movements/blocks' ? compared : [...compared, 'etag'])
      expect(head.headers[header], header).toBe(get.headers[header])
    const part = { entry: '_48', balance: '_2024-07-01_2025-06-30' }[name]
    if (part || Object.keys(own).length === 0)
      expect(decodeURIComponent(String(get.headers['content-disposition']).split("UTF-8''")[1]!)).toBe(
        `${folderReference}_${name}${part ?? ''}.json`,
      )
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const refused = await ask({}, {}, method)
      expect([refused.status, refused.json.error.code]).toEqual([405, 'ERR-METHOD-NOT-ALLOWED'])
      expect(refused.headers.allow).toBe('GET, HEAD')
    }
    expect(await outcome({}, { Accept: 'text/csv' })).toEqual([406, 'ERR-NOT-ACCEPTABLE'])
    expect((await ask({ version: 'x' }, {}, 'HEAD')).bytes).toHaveLength(0)
  })

  test('needs a supported version, and refuses unknown parameters', async () => {
    expect(await outcome({ version: '' })).toEqual([400, 'ERR-VALIDATION', 'version'])
    expect(await outcome({ version: '1.1.0' })).toEqual([400, 'ERR-UNSUPPORTED-VERSION'])
    for (const parameter of ['format', 'clasAccount', 'classaccount', '__proto__'])
      expect(await outcome({ [parameter]: '1' })).toEqual([400, 'ERR-VALIDATION', parameter])
  })

  test('opens only folders of its caller, named by header or parameter', async () => {
    const asFirm = (society: string, query: Query = {}) =>
      download(urlOf(name, { ...own, ...query }), { ...stage.firm, 'society-id': society })
    const first = await ask()
    for (const society of ['111', '000111']) expect((await asFirm(society)).text).toBe(first.text)
    const second = await asFirm('112')
    expect(second.status).toBe(200)
    expect(second.text === first.text).toBe(name === 'accountingFirm')
    expect(first.text).not.toMatch(/sameFirm|otherFirm|otherTenant/)
    expect(second.text).not.toMatch(/\bfirst\b|otherFirm|otherTenant/)
    const byParameter = await download(urlOf(name, { ...own, accountingFolderId: '112' }), stage.firm)
    expect(byParameter.text).toBe(second.text)
    expect((await asFirm('112', { accountingFolderId: '111' })).json.error.details.issues).toMatchObject([
      { parameter: 'accountingFolderId' },
    ])
    const unnamed = await download(urlOf(name, own), stage.firm)
    expect([unnamed.status, unnamed.json.error.code]).toEqual([400, 'ERR-SOCIETY-ID-REQUIRED'])
    for (const foreign of ['121', '211', '987654', 'abc', '0', '9'.repeat(19), '-1']) {
      const { status, json } = await asFirm(foreign)
      expect([status, json.error.code], foreign).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    }
    for (const other of ['112', '121', '211']) {
      expect(await outcome({}, { 'society-id': other })).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
      expect(await outcome({ accountingFolderId: other })).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    }
    if (Object.keys(own).length === 0 && !isSingle(name)) expect((await asFirm('113')).text).toBe('[]')
  })

  test.skipIf(!hasEtag(name))('has an ETag that lasts until the ledger changes', async () => {
    const { headers } = await ask()
    const etag = String(headers.etag)
    expect(headers['cache-control']).toBe('private, no-cache')
    const vary = String(headers.vary).toLowerCase().split(/, */)
    expect(vary).toEqual(expect.arrayContaining(['accept', 'accept-encoding', 'authorization', 'society-id']))
    const again = await ask({}, { 'If-None-Match': `"other", ${etag}` })
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, etag])
    for (const header of ['vary', 'cache-control']) expect(again.headers[header]).toBe(headers[header])
    expect((await ask({}, { 'If-None-Match': etag, 'Accept-Encoding': 'gzip' })).status).toBe(200)
    await change(`update payments set code = code || 'x' where folder_id = 112`)
    expect((await ask({}, { 'If-None-Match': etag })).status).toBe(304)
    await change(`update folders set capital = capital + 1 where schema_id = 100 and id = 111`)
    const changed = await ask({}, { 'If-None-Match': etag })
    expect(changed.status).toBe(200)
    expect(changed.headers.etag).not.toBe(etag)
    expect((await ask({}, { 'If-Match': etag })).status).toBe(412)
  })
})

describe('an ETag', () => {
  test('is sent by exactly the routes that promise one', async () => {
    const { json: document } = await download(`${stage.service.url}/api/v1/openapi.json`, {})
    // biome-ignore lint/suspicious/noExplicitAny: a JSON document
    const listed = Object.entries<any>(document.paths).filter(([path, { get }]) => get && !path.includes('{'))
    const headers = { ...stage.firm, 'society-id': '111' }
    const exportId: string = (await download(urlOf('all', { format: 'JSON' }), headers)).json.id
    const values: Query = { version: '1.0.0', format: 'JSON', exportId, idExercice: '12', id: '30' }
    const sending: string[] = []
    for (const [path, { get }] of listed) {
      const url = new URL(path, stage.service.url)
      const parameters: string[] = (get.parameters ?? []).map(({ name }: { name: string }) => name)
      // The full export in JSON takes no exercice.
      for (const [name, value] of Object.entries(values))
        if (parameters.includes(name) && !(name === 'idExercice' && parameters.includes('format')))
          url.searchParams.set(name, value)
      const answer = await download(url.href, headers)
      expect(answer.status, path).toBe(200)
      if (answer.headers.etag) sending.push(path.replace('/api/v1/mad/', ''))
      expect(Boolean(answer.headers.etag), path).toBe(get.responses['200'].headers.ETag !== undefined)
    }
    const tagged = routes.map(([name]) => name).filter(hasEtag)
    expect(sending.toSorted()).toEqual([...tagged, 'ledgers'].toSorted())
  })

  test('changes on every route of a folder when a partner with entries in it is renamed, and in no other folder', async () => {
    await stage.staff.thirdParty('OTHER')
    await change(`update entries set third_party_id = (select id from third_parties where code = 'OTHER')
      where schema_id = 100 and folder_id = 112 and source = 'API'`)
    const tagged = routes.filter(([name]) => hasEtag(name))
    const seen = (folderId: string, headers: Query = {}) =>
      Promise.all(
        tagged.map(([name, query]) =>
          download(urlOf(name, query), { ...stage.firm, 'society-id': folderId, ...headers }),
        ),
      )
    const tags = async (folderId: string) => (await seen(folderId)).map(({ headers }) => headers.etag)
    const [first, second] = [await tags('111'), await tags('112')]
    await change(`update third_parties set name = 'Nouveau nom' where code = 'OTHER'`)
    expect(await tags('111')).toEqual(first)
    const renamed = await seen('112', { 'If-None-Match': second.join(', ') })
    expect(renamed.map(({ status }) => status)).toEqual(tagged.map(() => 200))
    const shown = tagged.filter((_, i) => renamed[i]!.text.includes('{"name":"Nouveau nom","code":"OTHER"}'))
    expect(shown.map(([name]) => name)).toEqual(['movements', 'entries', 'entry'])
    const after = await tags('112')
    await change(`update third_parties set code = 'PARTNER-2' where code = 'PARTNER'`)
    expect(await tags('112')).toEqual(after)
    for (const [i, tag] of (await tags('111')).entries()) expect(tag, tagged[i]![0]).not.toBe(first[i])
    await change(`update third_parties set code = 'PARTNER' where code = 'PARTNER-2'`)
  })
})
