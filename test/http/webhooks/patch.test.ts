/** How a subscription is changed by a patch. */
import { describe, expect, test } from 'vitest'
import { request } from '../../support/service.ts'
import { codeOf, issuesOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

describe('a subscription is changed', () => {
  test('by a patch whose operations apply in their order', async () => {
    const { firm, thirdPartyId, webhook, patch, make } = routes
    const id = await make(firm)
    const steps = [
      { op: 'test', path: '/onEvents', value: ['document'] },
      { op: 'replace', path: '/postUrl', value: 'https://hooks.test/new' },
      { op: 'add', path: '/onEvents/0', value: 'connector' },
      { op: 'add', path: '/onEvents/-', value: 'portfolio' },
      { op: 'test', path: '/onEvents/2', value: 'portfolio' },
      { op: 'move', from: '/onEvents/2', path: '/onEvents/0' },
      { op: 'test', path: '/onEvents', value: ['portfolio', 'connector', 'document'] },
      { op: 'remove', path: '/onEvents/2' },
      { op: 'copy', from: '/onEvents/0', path: '/onEvents/-' },
      { op: 'add', path: '/accountingFolderId', value: [112, '111'] },
    ]
    const { status, body } = await patch(firm, id, steps)
    const now = {
      id,
      postUrl: 'https://hooks.test/new',
      onEvents: ['portfolio', 'connector'],
      accountingFolderId: ['112', '111'],
      thirdPartyId,
    }
    expect([status, body]).toEqual([200, now])
    expect((await request(webhook(`/${id}`), firm)).body).toEqual(now)
    const whole = await patch(firm, id, [{ op: 'remove', path: '/accountingFolderId' }], 'application/json')
    expect([whole.status, whole.body.accountingFolderId]).toEqual([200, []])
  })

  test('completely or not at all', async () => {
    const { firm, webhook, patch, make } = routes
    const id = await make(firm, { accountingFolderId: ['111'] })
    const before = (await request(webhook(`/${id}`), firm)).body
    const first = { op: 'replace', path: '/postUrl', value: 'https://hooks.test/half' }
    const refused: [unknown[], number, string][] = [
      [[{ op: 'test', path: '/postUrl', value: 'https://hooks.test/' }], 409, 'ERR-PATCH-TEST-FAILED'],
      [[{ op: 'test', path: '/onEvents', value: ['document', 'x'] }], 409, 'ERR-PATCH-TEST-FAILED'],
      [[{ op: 'test', path: '/onEvents/5', value: 'document' }], 409, 'ERR-PATCH-TEST-FAILED'],
      [[{ op: 'test', path: '/accountingFolderId', value: { deep: [] } }], 409, 'ERR-PATCH-TEST-FAILED'],
      [[{ op: 'remove', path: '/onEvents/1' }], 400, '1.path'],
      [[{ op: 'replace', path: '/onEvents/1', value: 'exercice' }], 400, '1.path'],
      [[{ op: 'add', path: '/onEvents/2', value: 'exercice' }], 400, '1.path'],
      [[{ op: 'copy', from: '/onEvents/0', path: '/onEvents/7' }], 400, '1.path'],
      [[{ op: 'move', from: '/onEvents/3', path: '/onEvents/0' }], 400, '1.from'],
      [[{ op: 'remove', path: '/postUrl' }], 400, 'postUrl'],
      [[{ op: 'remove', path: '/onEvents/0' }], 400, 'onEvents'],
      [[{ op: 'add', path: '/onEvents/-', value: 'nothing' }], 400, 'onEvents.1'],
      [[{ op: 'add', path: '/onEvents/-', value: 7 }], 400, 'onEvents.1'],
      [[{ op: 'replace', path: '/onEvents', value: 'document' }], 400, 'onEvents'],
      [[{ op: 'replace', path: '/postUrl', value: 'https://127.0.0.1/' }], 400, 'postUrl'],
      [[{ op: 'replace', path: '/postUrl', value: 'https://inside.test/' }], 400, 'postUrl'],
      [[{ op: 'add', path: '/accountingFolderId/-', value: '121' }], 404, 'ERR-FOLDER-NOT-FOUND'],
    ]
    for (const [steps, status, what] of refused) {
      const answer = await patch(firm, id, [first, ...steps])
      const reported = status === 400 ? Object.keys(issuesOf(answer)) : [answer.body.error.code]
      expect([steps, answer.status, reported]).toEqual([steps, status, [what]])
      expect((await request(webhook(`/${id}`), firm)).body).toEqual(before)
    }
  })

  test('only by a valid patch of its three fields', async () => {
    const { firm, patch, make } = routes
    const id = await make(firm)
    const wrong: [unknown, string][] = [
      [{}, 'body'],
      ['[', 'body'],
      [[{ op: 'replace', path: '/id', value: 1 }], '0.path'],
      [[{ op: 'replace', path: '', value: 'x' }], '0.path'],
      [[{ op: 'replace', path: 'postUrl', value: postUrl }], '0.path'],
      [[{ op: 'add', path: '/__proto__/x', value: 'x' }], '0.path'],
      [[{ op: 'add', path: '/onEvents/__proto__', value: 'x' }], '0.path'],
      [[{ op: 'add', path: '/onEvents/00', value: 'x' }], '0.path'],
      [[{ op: 'add', path: '/onEvents/0/x', value: 'x' }], '0.path'],
      [[{ op: 'replace', path: '/onEvents/-', value: 'exercice' }], '0.path'],
      [[{ op: 'remove', path: '/onEvents/-' }], '0.path'],
      [[{ op: 'copy', from: '/thirdPartyId', path: '/postUrl' }], '0.from'],
      [[{ op: 'copy', from: '/onEvents', path: '/onEvents/-' }], '0.path'],
      [[{ op: 'add', path: '/onEvents/-', value: ['x'] }], '0.value'],
      [[{ op: 'add', path: '/onEvents', value: { a: 1 } }], '0.value'],
      [[{ op: 'add', path: '/onEvents' }], '0.value'],
      [[{ op: 'test', path: '/onEvents' }], '0.value'],
      [[{ op: 'merge', path: '/onEvents', value: [] }], '0.op'],
      [[{ path: '/onEvents', value: [] }], '0.op'],
      [[null], '0'],
      [Array(101).fill({ op: 'test', path: '/postUrl', value: postUrl }), 'body'],
    ]
    for (const [body, parameter] of wrong) {
      const answer = await patch(firm, id, body)
      expect([body, codeOf(answer), Object.keys(issuesOf(answer))]).toEqual([
        body,
        [400, 'ERR-VALIDATION'],
        [parameter],
      ])
    }
    const empty = await patch(firm, id, [{ op: 'add' }, { op: 'move' }])
    const missing = ['0.path', '0.value', '1.from', '1.path']
    expect(issuesOf(empty)).toEqual(Object.fromEntries(missing.map((name) => [name, 'is required'])))
  })

  test('by a company token only within its folder', async () => {
    const { company, patch, make } = routes
    const id = await make(company)
    const to = (value: unknown) => patch(company, id, [{ op: 'replace', path: '/accountingFolderId', value }])
    expect(codeOf(await to(['112']))).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    expect((await to([])).body.accountingFolderId).toEqual(['111'])
  })

  test('by simultaneous patches, and none is lost', async () => {
    const { firm, patch, make, inDatabase } = routes
    const id = await make(firm)
    const added = ['connector', 'exercice', 'portfolio', 'visitedPage', 'thirdParty', 'adminMessage']
    const answers = await Promise.all(
      added.map((value) => patch(firm, id, [{ op: 'add', path: '/onEvents/-', value }])),
    )
    expect(answers.map(({ status }) => status)).toEqual(added.map(() => 200))
    expect((await inDatabase(id)).on_events.toSorted()).toEqual(['document', ...added].toSorted())
  })

  test('by two patches of its address while another adds a kind of event', async () => {
    const { firm, webhook, patch, make } = routes
    const id = await make(firm)
    const answers = await Promise.all([
      patch(firm, id, [{ op: 'replace', path: '/postUrl', value: 'https://hooks.test/a' }]),
      patch(firm, id, [{ op: 'add', path: '/onEvents/-', value: 'connector' }]),
      patch(firm, id, [{ op: 'replace', path: '/postUrl', value: 'https://hooks.test/a' }]),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await request(webhook(`/${id}`), firm)).body).toMatchObject({
      postUrl: 'https://hooks.test/a',
      onEvents: ['document', 'connector'],
    })
  })

  test('and enabled again by the patch, resuming where it stopped', async () => {
    const { firm, staff, patch, make, inDatabase } = routes
    const id = await make(firm)
    const disable = () =>
      staff.client.query(
        `update grandlivre.subscriptions
         set enabled = false, disabled_at = now(), disabled_reason = 'gone', failing_since = now() where id = $1`,
        [id],
      )
    await disable()
    expect((await patch(firm, id, [{ op: 'remove', path: '/onEvents' }])).status).toBe(400)
    expect(await inDatabase(id)).toMatchObject({ enabled: false, disabled_reason: 'gone' })
    await staff.client.query(
      `insert into grandlivre.events (schema_id, id, name, operation, scope, data)
       values (100, 70, 'document', 'CREATE', '{}', '{}')`,
    )
    await staff.client.query('insert into grandlivre.subscription_positions values (100, $1, 1)', [id])
    expect((await patch(firm, id, [])).status).toBe(200)
    expect(await inDatabase(id)).toMatchObject({
      enabled: true,
      disabled_at: null,
      disabled_reason: null,
      failing_since: null,
    })
    expect((await staff.client.query('select position from grandlivre.subscription_positions')).rows).toEqual(
      [{ position: '1' }],
    )
    await staff.client.query('delete from grandlivre.events')
  })
})
