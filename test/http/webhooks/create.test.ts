/** Which subscriptions are created, and which are refused. */
import { describe, expect, test } from 'vitest'
import { request } from '../../support/service.ts'
import { codeOf, issuesOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

describe('a subscription is created', () => {
  test('by a company token for its folder', async () => {
    const { company, thirdPartyId, service, post, inDatabase } = routes
    const { status, headers, body } = await post(company, {
      postUrl,
      onEvents: ['document', 'connector', 'document'],
    })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(Number),
        postUrl,
        onEvents: ['document', 'connector'],
        accountingFolderId: ['111'],
        thirdPartyId,
        signingSecret: expect.stringMatching(/^whsec_/),
      },
    ])
    expect(headers.get('location')).toBe(`/api/v1/webhook/${body.id}`)
    const again = await request(service.url + headers.get('location'), company)
    const { signingSecret, ...read } = body
    expect([again.status, again.body]).toEqual([200, read])
    expect(await inDatabase(body.id)).toMatchObject({
      schema_id: '100',
      level: 'api',
      firm_id: '110',
      enabled: true,
    })
  })

  test('by a company token that names no folder except its own', async () => {
    const { company, post } = routes
    for (const own of [[], ['111'], [111], ['000111', '111']])
      expect(
        (await post(company, { postUrl, onEvents: ['document'], accountingFolderId: own })).body,
      ).toMatchObject({
        accountingFolderId: ['111'],
      })
    for (const other of [['112'], ['111', '112'], ['999999999999999']])
      expect(
        codeOf(await post(company, { postUrl, onEvents: ['document'], accountingFolderId: other })),
      ).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
  })

  test('by a firm token for folders of its firm, or for the whole schema', async () => {
    const { firm, staff, post } = routes
    for (const [named, tied] of [
      [undefined, []],
      [[], []],
      [
        ['112', 111, '0112'],
        ['112', '111'],
      ],
    ]) {
      const { status, body } = await post(firm, {
        postUrl,
        onEvents: ['document'],
        accountingFolderId: named,
      })
      expect([status, body.accountingFolderId]).toEqual([201, tied])
    }
    for (const other of [['121'], ['211'], ['111', '121'], ['0'], ['9999999999999999']])
      expect(
        codeOf(await post(firm, { postUrl, onEvents: ['document'], accountingFolderId: other })),
      ).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(3)
  })

  test('only if it is valid; otherwise all errors are reported at once', async () => {
    const { firm, staff, webhook, send, post } = routes
    const kinds = expect.stringContaining('connector, accountingFolder, exercice')
    const wrong: [unknown, Record<string, unknown>][] = [
      [
        {},
        { postUrl: expect.stringMatching(/^is required; null: nothing is posted/), onEvents: 'is required' },
      ],
      [
        { postUrl: 'http://hooks.test/', onEvents: [], accountingFolderId: '111', color: 'red' },
        {
          postUrl: 'must begin with https://',
          onEvents: 'must name 1 to 50 kinds of events',
          accountingFolderId: 'must be an array of ids',
          color: 'is not a known field',
        },
      ],
      [
        {
          postUrl: 7,
          onEvents: ['document', 'Document', 'nothing', 3],
          accountingFolderId: ['x', 1.5, -1, ''],
        },
        {
          postUrl: 'must be an address',
          'onEvents.1': kinds,
          'onEvents.2': expect.stringContaining('"nothing" is not a kind of event'),
          'onEvents.3': 'must be the name of a kind of event',
          'accountingFolderId.0': 'must be an id: 1 to 16 digits',
          'accountingFolderId.1': 'must be an id: 1 to 16 digits',
          'accountingFolderId.2': 'must be an id: 1 to 16 digits',
          'accountingFolderId.3': 'must be an id: 1 to 16 digits',
        },
      ],
      [{ postUrl, onEvents: 'document' }, { onEvents: 'must be an array of kinds of events' }],
      [
        { postUrl, onEvents: ['__proto__', 'toString'] },
        { 'onEvents.0': kinds, 'onEvents.1': kinds },
      ],
      [
        { postUrl, onEvents: ['document'], accountingFolderId: [2 ** 60] },
        { 'accountingFolderId.0': 'must be an id: 1 to 16 digits' },
      ],
      [[], { body: 'must be an object' }],
      ['null', { body: 'must be an object' }],
      ['{"postUrl":', { body: 'must be JSON in UTF-8' }],
      ['', { body: 'must be JSON in UTF-8' }],
    ]
    for (const [body, issues] of wrong) {
      const answer = await post(firm, body)
      expect([codeOf(answer), issuesOf(answer)]).toEqual([[400, 'ERR-VALIDATION'], issues])
      // Each error is reported once.
      expect(answer.body.error.details.issues).toHaveLength(Object.keys(issues).length)
    }
    const misspelt = await send('POST', webhook('?version=1.0.0'), firm, { postUrl, onEvents: ['document'] })
    expect(issuesOf(misspelt)).toEqual({ version: 'is not a parameter of this route' })
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(0)
  })

  test('but not for an address inside a private network, given by number or by name', async () => {
    const { firm, post } = routes
    const ofMachine = ['127.0.0.1', '0x7f.1', '2130706433', '[::1]', '[::ffff:10.0.0.1]', '[::]', 'localhost']
    const others = ['169.254.169.254', '100.64.0.1', '224.0.0.1', '10.1.1.1', 'inside.test']
    for (const host of [...ofMachine, ...others]) {
      const answer = await post(firm, { postUrl: `https://${host}/`, onEvents: ['document'] })
      expect([host, issuesOf(answer)]).toEqual([
        host,
        { postUrl: 'must not lead to a private or reserved address' },
      ])
    }
    for (const url of [
      'https://a:b@hooks.test/',
      'https://hooks.test:0/',
      `https://hooks.test/${'x'.repeat(2048)}`,
    ])
      expect(codeOf(await post(firm, { postUrl: url, onEvents: ['document'] }))).toEqual([
        400,
        'ERR-VALIDATION',
      ])
  })
})

test('a ping connects only to public addresses, even if its host name now resolves to another', async () => {
  const { company, staff, send, make, webhook } = routes
  for (const [target, error] of [
    ['https://inside.test/', 'inside.test resolves to a private or reserved address'],
    ['https://10.0.0.7/', 'must not lead to a private or reserved address'],
    ['http://hooks.test/', 'must begin with https://'],
  ] as const) {
    const id = await make(company)
    await staff.client.query('update grandlivre.subscriptions set post_url = $2 where id = $1', [id, target])
    const { status, body } = await send('POST', webhook(`/${id}/ping`), company, {})
    expect([status, body.status, body.fault]).toEqual([200, null, 'address-refused'])
    expect(body.error).toContain(error)
  }
})
