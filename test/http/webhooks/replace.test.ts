/** PUT, and PATCH with a merge patch: each is applied completely or not at all. */
import { describe, expect, test } from 'vitest'
import { request } from '../../support/service.ts'
import { codeOf, issuesOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()
const mergeType = 'application/merge-patch+json'
const newUrl = 'https://hooks.test/new'

const put = (headers: Record<string, string>, id: number, body: unknown, type?: string) =>
  routes.send('PUT', routes.webhook(`/${id}`), headers, body, type)
const disable = (id: number) =>
  routes.staff.client.query(
    `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'test' where id = $1`,
    [id],
  )
const read = async (id: number, headers = routes.firm) =>
  (await request(routes.webhook(`/${id}`), headers)).body

describe('PUT', () => {
  test('sets all fields, with the defaults of POST for missing ones, and enables the subscription', async () => {
    const { firm, make, inDatabase, thirdPartyId } = routes
    const id = await make(firm, { accountingFolderId: ['111'] })
    await disable(id)
    const whole = { postUrl: newUrl, onEvents: ['ledger', 'ledger'], accountingFolderId: [112] }
    const now = { id, postUrl: newUrl, onEvents: ['ledger'], accountingFolderId: ['112'], thirdPartyId }
    const { status, body } = await put(firm, id, whole)
    expect([status, body, await read(id)]).toEqual([200, now, now])
    expect((await inDatabase(id)).enabled).toBe(true)
    const without = await put(firm, id, { postUrl: null, onEvents: ['document'] })
    expect(without.body).toEqual({
      ...now,
      postUrl: null,
      onEvents: ['document'],
      accountingFolderId: [],
    })
  })

  test('restricts a company token to its folder', async () => {
    const { company, make } = routes
    const id = await make(company)
    expect((await put(company, id, { postUrl: newUrl, onEvents: ['ledger'] })).body).toMatchObject({
      onEvents: ['ledger'],
      accountingFolderId: ['111'],
    })
    const other = { postUrl, onEvents: ['ledger'], accountingFolderId: ['112'] }
    expect(codeOf(await put(company, id, other))).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
  })

  test('leaves the subscription unchanged if it is refused', async () => {
    const { firm, stranger, otherFirm, sibling, make } = routes
    const id = await make(firm, { accountingFolderId: ['111'] })
    const before = await read(id)
    const valid = { postUrl: newUrl, onEvents: ['ledger'] }
    const required = expect.stringMatching(/^is required/)
    const refused: [unknown, number, unknown][] = [
      [{}, 400, { postUrl: required, onEvents: required }],
      [[], 400, { body: 'must be an object' }],
      [{ ...valid, id }, 400, { id: 'is not a known field' }],
      [{ ...valid, accountingFolderId: null }, 400, { accountingFolderId: 'must be an array of ids' }],
      [{ ...valid, onEvents: ['nothing'] }, 400, { 'onEvents.0': expect.any(String) }],
      [{ ...valid, postUrl: 'https://inside.test/' }, 400, { postUrl: expect.any(String) }],
      [{ ...valid, accountingFolderId: ['121'] }, 404, 'ERR-FOLDER-NOT-FOUND'],
    ]
    for (const [body, status, what] of refused) {
      const answer = await put(firm, id, body)
      const said = status === 400 ? issuesOf(answer) : answer.body.error.code
      expect([body, answer.status, said]).toEqual([body, status, what])
      expect(await read(id)).toEqual(before)
    }
    for (const other of [stranger, otherFirm, sibling])
      expect(codeOf(await put(other, id, valid))).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
    expect(codeOf(await put(firm, id, valid, mergeType))).toEqual([415, 'ERR-UNSUPPORTED-MEDIA-TYPE'])
    expect(await read(id)).toEqual(before)
  })

  test('is among the routes that key/info lists', async () => {
    const listed = (await request(`${routes.service.url}/api/v1/key/info`, routes.company)).body
    expect(listed).toContainEqual({ path: '/api/v1/webhook/{id}', method: 'put' })
  })
})

describe('a merge patch', () => {
  test.each([mergeType, 'application/json'])('sets only the fields that it names, as %s', async (type) => {
    const { firm, patch, make, inDatabase } = routes
    const id = await make(firm, { accountingFolderId: ['111'] })
    const first = await read(id)
    const steps: [object, object][] = [
      [{ postUrl: null }, { postUrl: null }],
      [
        { postUrl: newUrl, onEvents: ['ledger'] },
        { postUrl: newUrl, onEvents: ['ledger'] },
      ],
      [{ accountingFolderId: [] }, { accountingFolderId: [] }],
    ]
    let expected = first
    for (const [body, changed] of steps) {
      expected = { ...expected, ...changed }
      const answer = await patch(firm, id, body, type)
      expect([answer.status, answer.body]).toEqual([200, expected])
    }
    await disable(id)
    expect([(await patch(firm, id, {}, type)).body, (await inDatabase(id)).enabled]).toEqual([expected, true])
  })

  test('is refused as a whole if one field is wrong or its body does not fit its media type', async () => {
    const { firm, patch, make } = routes
    const id = await make(firm, { accountingFolderId: ['111'] })
    const before = await read(id)
    const json = 'application/json'
    const jsonPatch = 'application/json-patch+json'
    const object = { body: 'must be an object' }
    const refused: [unknown, string, unknown][] = [
      [{ postUrl: newUrl, onEvents: null }, mergeType, { onEvents: 'must be an array of kinds of events' }],
      [
        { onEvents: ['ledger'], accountingFolderId: null },
        json,
        { accountingFolderId: 'must be an array of ids' },
      ],
      [{ postUrl: newUrl, position: 'latest' }, json, { position: 'is not a known field' }],
      [{ postUrl: newUrl, thirdPartyId: 1 }, mergeType, { thirdPartyId: 'is not a known field' }],
      [{ postUrl: 'https://127.0.0.1/' }, mergeType, { postUrl: expect.any(String) }],
      [[{ op: 'replace', path: '/postUrl', value: newUrl }], mergeType, object],
      [{ postUrl: newUrl }, jsonPatch, { body: 'must be an array of operations' }],
      ['"text"', json, object],
      ['null', json, object],
    ]
    for (const [body, type, issues] of refused) {
      const answer = await patch(firm, id, body, type)
      expect([body, codeOf(answer), issuesOf(answer)]).toEqual([body, [400, 'ERR-VALIDATION'], issues])
      expect(await read(id)).toEqual(before)
    }
  })
})
