/** Which subscriptions a caller sees, and which callers see none. */
import { describe, expect, test } from 'vitest'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { request } from '../../support/service.ts'
import { codeOf, issuesOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

describe('a caller sees its own subscriptions and no others', () => {
  test('limited by level, folder, firm, tenant and third party', async () => {
    const { company, sibling, firm, otherFirm, otherTenant, stranger } = routes
    const { staff, webhook, patch, make, idsOf, thirdPartyId } = routes
    const callers = { company, sibling, firm, otherFirm, otherTenant, stranger }
    const created: Record<string, number> = {}
    for (const [name, headers] of Object.entries(callers)) created[name] = await make(headers)
    const { rows } = await staff.client.query(
      `insert into grandlivre.subscriptions
         (id, schema_id, level, third_party_id, post_url, on_events, folder_ids, start_position)
       select nextval('grandlivre.ids'), schema_id, 'staff', $1, 'https://staff.test/', '{document}', folder_ids, 0
       from (values (100, '{}'::bigint[]), (100, '{111}'), (null, '{}')) as t (schema_id, folder_ids) returning id`,
      [thirdPartyId],
    )
    for (const [name, headers] of Object.entries(callers)) {
      expect([name, await idsOf('', headers)]).toEqual([name, [created[name]]])
      expect([name, await idsOf('/event/document', headers)]).toEqual([name, [created[name]]])
      const others = [...Object.values(created), ...rows.map(({ id }) => Number(id))].filter(
        (id) => id !== created[name],
      )
      for (const id of others) {
        const single = webhook(`/${id}`)
        for (const answer of [
          await request(single, headers),
          await request(single, headers, 'DELETE'),
          await patch(headers, id, [{ op: 'replace', path: '/postUrl', value: 'https://hooks.test/taken' }]),
        ])
          expect([name, codeOf(answer)]).toEqual([name, [404, 'ERR-WEBHOOK-NOT-FOUND']])
      }
    }
    const ids = ['1', '0', 'event', 'x', '-1', '9'.repeat(19), '9'.repeat(30), '%00', `${created['firm']}.0`]
    for (const nothing of ids)
      expect([nothing, codeOf(await request(webhook(`/${nothing}`), firm))]).toEqual([
        nothing,
        [404, 'ERR-WEBHOOK-NOT-FOUND'],
      ])
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(9)
  })

  test('and can filter them by kind of event, in any folder or in one', async () => {
    const { company, firm, staff, webhook, make, idsOf } = routes
    const whole = await make(firm, { onEvents: ['document', 'portfolio'] })
    const tied = await make(firm, { onEvents: ['document'], accountingFolderId: ['112'] })
    const off = await make(firm, { onEvents: ['document'] })
    await staff.client.query(
      `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'x' where id = $1`,
      [off],
    )
    expect(await idsOf('/event/document', firm)).toEqual([whole, tied])
    expect(await idsOf('/event/portfolio', firm)).toEqual([whole])
    expect(await idsOf('/event/exercice', firm)).toEqual([])
    expect(await idsOf('/event/document/111', firm)).toEqual([whole])
    expect(await idsOf('/event/document/112', firm)).toEqual([whole, tied])
    expect(codeOf(await request(webhook('/event/document/121'), firm))).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect(codeOf(await request(webhook('/event/document/abc'), firm))).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    const own = await make(company)
    expect(await idsOf('/event/document', company)).toEqual([own])
    expect(await idsOf('/event/document/111', company)).toEqual([own])
    expect(codeOf(await request(webhook('/event/document/112'), company))).toEqual([
      403,
      'ERR-FORBIDDEN-ACCESS',
    ])
    const unknown = await request(webhook('/event/nothing'), firm)
    expect(issuesOf(unknown)).toEqual({ name: expect.stringContaining('must be one of connector,') })
  })

  test('and a customer with access to the firm sees none', async () => {
    const { company, firm, staff, service, webhook, post, patch } = routes
    const secret = await staff.thirdParty('CUSTOMER', 'customer')
    const asFirm = credentials(await staff.token('CUSTOMER', 'firm', folders.first), secret)
    const asCompany = credentials(await staff.token('CUSTOMER', 'api', folders.first), secret)
    const answers = [
      await request(webhook(), asFirm),
      await request(webhook('/1'), asFirm),
      await request(webhook('/event/document'), asFirm),
      await request(webhook('/event/document/111'), asFirm),
      await request(webhook('/1'), asFirm, 'DELETE'),
      await request(webhook('/1/ping'), asFirm, 'POST'),
      await request(webhook('/1/deliveries'), asFirm),
      await request(webhook('/1/replay'), asFirm, 'POST'),
      await request(webhook('/1/rotate-secret'), asFirm, 'POST'),
      await post(asFirm, { postUrl, onEvents: ['document'] }),
      await patch(asFirm, 1, []),
    ]
    for (const answer of answers) expect(codeOf(answer)).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    const openTo = async (headers: Record<string, string>) =>
      (await request(`${service.url}/api/v1/key/info`, headers)).body
        .filter(({ path }: { path: string }) => path.startsWith('/api/v1/webhook'))
        .map(({ path, method }: { path: string; method: string }) => `${method} ${path}`)
    const all = [
      'post /api/v1/webhook',
      'get /api/v1/webhook',
      'get /api/v1/webhook/{id}',
      'get /api/v1/webhook/{id}/events',
      'get /api/v1/webhook/event/{name}',
      'get /api/v1/webhook/event/{name}/{accountingFolderId}',
      'post /api/v1/webhook/{id}/ping',
      'get /api/v1/webhook/{id}/deliveries',
      'post /api/v1/webhook/{id}/replay',
      'post /api/v1/webhook/{id}/rotate-secret',
      'put /api/v1/webhook/{id}',
      'delete /api/v1/webhook/{id}',
    ]
    expect(await openTo(asFirm)).toEqual([])
    for (const headers of [asCompany, company, firm])
      expect((await openTo(headers)).toSorted()).toEqual(all.toSorted())
    expect((await post(asCompany, { postUrl, onEvents: ['document'] })).status).toBe(201)
  })
})

describe('the webhook routes', () => {
  test('answer 405 with the methods that they allow', async () => {
    const { firm, webhook } = routes
    for (const [path, allowed] of [
      ['', 'POST, GET, HEAD'],
      ['/7', 'GET, HEAD, PATCH, PUT, DELETE'],
      ['/7/deliveries', 'GET, HEAD'],
      ['/7/replay', 'POST'],
      ['/7/ping', 'POST'],
      ['/7/rotate-secret', 'POST'],
      ['/event/document', 'GET, HEAD'],
      ['/event/document/111', 'GET, HEAD'],
    ] as const) {
      const answer = await request(webhook(path), firm, 'OPTIONS')
      expect([path, codeOf(answer), answer.headers.get('allow')]).toEqual([
        path,
        [405, 'ERR-METHOD-NOT-ALLOWED'],
        allowed,
      ])
    }
    expect(codeOf(await request(webhook('/7/8'), firm))).toEqual([404, 'ERR-NOT-FOUND'])
    expect(codeOf(await request(webhook(), {}, 'POST'))).toEqual([401, 'ERR-INVALID-AUTH-HEADER'])
  })

  test('accept ids of up to 16 digits', async () => {
    const { firm, webhook, make } = routes
    const id = String(await make(firm))
    const answers = async (path: string) => codeOf(await request(webhook(path), firm))
    expect(await answers(`/${id.padStart(16, '0')}`)).toEqual([200, undefined])
    expect(await answers(`/event/document/${'111'.padStart(16, '0')}`)).toEqual([200, undefined])
    for (const none of ['0', '9007199254740992', id.padStart(17, '0')])
      expect(await answers(`/${none}`)).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
    for (const none of ['0', '9007199254740992', '111'.padStart(17, '0')])
      expect(await answers(`/event/document/${none}`)).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
  })
})
