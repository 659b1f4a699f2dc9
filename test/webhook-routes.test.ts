import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { type NameServer, startNameServer } from './support/name-server.ts'
import { type Answer, request, startTestService, type TestService } from './support/service.ts'
import { createTenants, credentials, folders, type Staff } from './support/tenants.ts'

type Headers = Record<string, string>

let database: TestDatabase
let staff: Staff
let service: TestService
let dns: NameServer
/** Of one third party: company tokens of two folders, firm tokens of three firms in two tenants. */
let company: Headers
let sibling: Headers
let firm: Headers
let otherFirm: Headers
let otherTenant: Headers
/** Another third party's firm token of the same firm. */
let stranger: Headers
let thirdPartyId: number

beforeAll(async () => {
  dns = await startNameServer({ 'hooks.test': ['8.8.8.8'], 'inside.test': ['10.0.0.7'] })
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const issue = async (level: 'api' | 'firm', opened: Parameters<Staff['token']>[2]) =>
    credentials(await staff.token('ONE', level, opened), secret)
  company = await issue('api', folders.first)
  sibling = await issue('api', folders.sameFirm)
  firm = await issue('firm', folders.first)
  otherFirm = await issue('firm', folders.otherFirm)
  otherTenant = await issue('firm', folders.otherTenant)
  const strangersSecret = await staff.thirdParty('TWO')
  stranger = credentials(await staff.token('TWO', 'firm', folders.first), strangersSecret)
  service = await startTestService(database)
  thirdPartyId = (await request(`${service.url}/api/v1/key/info?mode=extended`, firm)).body.target
    .thirdPartyId
})

afterEach(() => staff.client.query('delete from grandlivre.subscriptions'))

afterAll(async () => {
  await service?.stop()
  await staff?.end()
  await database?.drop()
  await dns?.close()
})

const postUrl = 'https://hooks.test/ledger'
const webhook = (rest = '') => `${service.url}/api/v1/webhook${rest}`

async function send(
  method: string,
  url: string,
  headers: Headers,
  body: unknown,
  type?: string,
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, {
    method,
    headers: { ...headers, 'Content-Type': type ?? 'application/json' },
    body: text,
  })
  const answer = await response.text()
  return { status: response.status, headers: response.headers, body: answer === '' ? '' : JSON.parse(answer) }
}

const post = (headers: Headers, body: unknown, type?: string) => send('POST', webhook(), headers, body, type)
const patch = (headers: Headers, id: number, body: unknown, type = 'application/json-patch+json') =>
  send('PATCH', webhook(`/${id}`), headers, body, type)

async function make(headers: Headers, fields: object = {}): Promise<number> {
  const { status, body } = await post(headers, { postUrl, onEvents: ['document'], ...fields })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}

const codeOf = ({ status, body }: Answer) => [status, body.error?.code]
const issuesOf = ({ body }: Answer) =>
  Object.fromEntries(
    body.error.details.issues.map((issue: { parameter: string; message: string }) => [
      issue.parameter,
      issue.message,
    ]),
  )
const idsOf = async (path: string, headers: Headers) =>
  (await request(webhook(path), headers)).body.map(({ id }: { id: number }) => id)
const inDatabase = async (id: number) =>
  (await staff.client.query('select * from grandlivre.subscriptions where id = $1', [id])).rows[0]

describe('a subscription is made', () => {
  test('by a company token for its folder', async () => {
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
      },
    ])
    expect(headers.get('location')).toBe(`/api/v1/webhook/${body.id}`)
    const again = await request(service.url + headers.get('location'), company)
    expect([again.status, again.body]).toEqual([200, body])
    expect(await inDatabase(body.id)).toMatchObject({
      schema_id: '100',
      level: 'api',
      firm_id: '110',
      enabled: true,
    })
  })

  test('by a company token that names its folder, and none but its own', async () => {
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
    for (const other of [['121'], ['211'], ['111', '121'], ['0'], ['9999999999999999999']])
      expect(
        codeOf(await post(firm, { postUrl, onEvents: ['document'], accountingFolderId: other })),
      ).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(3)
  })

  test('not where anything is wrong with it, and all of it is told at once', async () => {
    const kinds = expect.stringContaining('connector, accountingFolder, exercice')
    const wrong: [unknown, Record<string, unknown>][] = [
      [{}, { postUrl: 'is required', onEvents: 'is required' }],
      [
        { postUrl: 'http://hooks.test/', onEvents: [], accountingFolderId: '111', color: 'red' },
        {
          postUrl: 'must begin with https://',
          onEvents: 'must name 1 to 50 kinds of events',
          accountingFolderId: 'must be an array of ids',
          color: 'is not known here',
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
          'onEvents.2': expect.stringContaining('"nothing" is no kind of event'),
          'onEvents.3': 'must be the name of a kind of event',
          'accountingFolderId.0': 'must be an id: 1 to 19 digits',
          'accountingFolderId.1': 'must be an id: 1 to 19 digits',
          'accountingFolderId.2': 'must be an id: 1 to 19 digits',
          'accountingFolderId.3': 'must be an id: 1 to 19 digits',
        },
      ],
      [{ postUrl, onEvents: 'document' }, { onEvents: 'must be an array of kinds of events' }],
      [
        { postUrl, onEvents: ['__proto__', 'toString'] },
        { 'onEvents.0': kinds, 'onEvents.1': kinds },
      ],
      [
        { postUrl, onEvents: ['document'], accountingFolderId: [2 ** 60] },
        { 'accountingFolderId.0': 'must be an id: 1 to 19 digits' },
      ],
      [[], { body: 'must be an object' }],
      ['null', { body: 'must be an object' }],
      ['{"postUrl":', { body: 'must be JSON in UTF-8' }],
      ['', { body: 'must be JSON in UTF-8' }],
    ]
    for (const [body, issues] of wrong) {
      const answer = await post(firm, body)
      expect([codeOf(answer), issuesOf(answer)]).toEqual([[400, 'ERR-VALIDATION'], issues])
    }
    const misspelt = await send('POST', webhook('?version=1.0.0'), firm, { postUrl, onEvents: ['document'] })
    expect(issuesOf(misspelt)).toEqual({ version: 'is not a parameter of this route' })
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(0)
  })

  test('not for an address inside a private network, by number or by name', async () => {
    const hosts = [
      '127.0.0.1',
      '0x7f.1',
      '2130706433',
      '[::1]',
      '[::ffff:10.0.0.1]',
      '[::]',
      '169.254.169.254',
    ]
    for (const host of [...hosts, '100.64.0.1', '224.0.0.1', '10.1.1.1', 'localhost', 'inside.test']) {
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

describe('a body', () => {
  const small = { postUrl, onEvents: ['document'] }

  test('is JSON and says so', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json-patch+json',
      'text/json',
    ])
      expect([type, codeOf(await post(firm, small, type))]).toEqual([
        type,
        [415, 'ERR-UNSUPPORTED-MEDIA-TYPE'],
      ])
    expect(codeOf(await post(firm, small, 'application/json; charset=iso-8859-1'))).toEqual([
      415,
      'ERR-UNSUPPORTED-MEDIA-TYPE',
    ])
    expect((await post(firm, small, 'Application/JSON;charset="UTF-8"')).status).toBe(201)
    const untyped = await fetch(webhook(), {
      method: 'POST',
      headers: firm,
      body: Buffer.from(JSON.stringify(small)),
    })
    expect(untyped.status).toBe(415)
    const compressed = await send('POST', webhook(), { ...firm, 'Content-Encoding': 'gzip' }, small)
    expect(compressed.status).toBe(415)
    const latin1 = await fetch(webhook(), {
      method: 'POST',
      headers: { ...firm, 'Content-Type': 'application/json' },
      body: Buffer.from(JSON.stringify({ ...small, postUrl: 'https://hooks.test/é' }), 'latin1'),
    })
    expect(latin1.status).toBe(400)
    const id = await make(firm)
    const patched = await patch(firm, id, [], 'text/plain')
    expect(patched.status).toBe(415)
    expect(patched.headers.get('accept-patch')).toBe('application/json-patch+json, application/json')
  })

  test('of 64 KiB is read, and not a byte more, whether its length is said or not', async () => {
    const filled = (bytes: number) => {
      const text = JSON.stringify(small)
      return `${text.slice(0, -1)}${' '.repeat(bytes - text.length)}}`
    }
    for (const [bytes, status] of [
      [65_536, 201],
      [65_537, 413],
    ] as const) {
      expect((await post(firm, filled(bytes))).status).toBe(status)
      const chunked = rawRequest(webhook(), {
        method: 'POST',
        headers: { ...firm, 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
        agent: false,
      })
      chunked.end(filled(bytes))
      const [response] = await once(chunked, 'response')
      const chunks = await response.toArray()
      expect(response.statusCode).toBe(status)
      if (status === 413)
        expect(JSON.parse(String(Buffer.concat(chunks))).error.code).toBe('ERR-PAYLOAD-TOO-LARGE')
    }
  })

  test('that never ends is answered, and its connection closed', async () => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.on('error', () => {})
    const head = [`POST /api/v1/webhook HTTP/1.1`, 'Host: here', 'Content-Type: application/json']
    const lines = [...head, ...Object.entries(firm).map(([name, value]) => `${name}: ${value}`)]
    socket.write(`${lines.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`
    const pour = setInterval(() => socket.writable && socket.write(chunk), 5)
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes
    })
    await once(socket, 'close')
    clearInterval(pour)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('ERR-PAYLOAD-TOO-LARGE')
  })
})

describe('a caller sees its own subscriptions and no others', () => {
  test('by level, folder, firm, tenant and third party', async () => {
    const callers = { company, sibling, firm, otherFirm, otherTenant, stranger }
    const made: Record<string, number> = {}
    for (const [name, headers] of Object.entries(callers)) made[name] = await make(headers)
    const { rows } = await staff.client.query(
      `insert into grandlivre.subscriptions
         (id, schema_id, level, third_party_id, post_url, on_events, folder_ids, start_position)
       select nextval('grandlivre.ids'), schema_id, 'staff', $1, 'https://staff.test/', '{document}', folder_ids, 0
       from (values (100, '{}'::bigint[]), (100, '{111}'), (null, '{}')) as t (schema_id, folder_ids) returning id`,
      [thirdPartyId],
    )
    for (const [name, headers] of Object.entries(callers)) {
      expect([name, await idsOf('', headers)]).toEqual([name, [made[name]]])
      expect([name, await idsOf('/event/document', headers)]).toEqual([name, [made[name]]])
      const others = [...Object.values(made), ...rows.map(({ id }) => Number(id))].filter(
        (id) => id !== made[name],
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
    for (const nothing of [
      '1',
      '0',
      'event',
      'x',
      '-1',
      '9'.repeat(19),
      '9'.repeat(30),
      '%00',
      `${made['firm']}.0`,
    ])
      expect([nothing, codeOf(await request(webhook(`/${nothing}`), firm))]).toEqual([
        nothing,
        [404, 'ERR-WEBHOOK-NOT-FOUND'],
      ])
    expect((await staff.client.query('select from grandlivre.subscriptions')).rowCount).toBe(9)
  })

  test('and which of them receive a kind of event, here or there', async () => {
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

  test('and no customer with firm access sees any', async () => {
    const secret = await staff.thirdParty('CUSTOMER', 'customer')
    const asFirm = credentials(await staff.token('CUSTOMER', 'firm', folders.first), secret)
    const asCompany = credentials(await staff.token('CUSTOMER', 'api', folders.first), secret)
    const answers = [
      await request(webhook(), asFirm),
      await request(webhook('/1'), asFirm),
      await request(webhook('/event/document'), asFirm),
      await request(webhook('/event/document/111'), asFirm),
      await request(webhook('/1'), asFirm, 'DELETE'),
      await post(asFirm, { postUrl, onEvents: ['document'] }),
      await patch(asFirm, 1, []),
    ]
    for (const answer of answers) expect(codeOf(answer)).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    const openTo = async (headers: Headers) =>
      (await request(`${service.url}/api/v1/key/info`, headers)).body
        .filter(({ path }: { path: string }) => path.startsWith('/api/v1/webhook'))
        .map(({ path, method }: { path: string; method: string }) => `${method} ${path}`)
    const all = [
      'post /api/v1/webhook',
      'get /api/v1/webhook',
      'get /api/v1/webhook/{id}',
      'get /api/v1/webhook/event/{name}',
      'get /api/v1/webhook/event/{name}/{accountingFolderId}',
      'delete /api/v1/webhook/{id}',
    ]
    expect(await openTo(asFirm)).toEqual([])
    for (const headers of [asCompany, company, firm])
      expect((await openTo(headers)).toSorted()).toEqual(all.toSorted())
    expect((await post(asCompany, { postUrl, onEvents: ['document'] })).status).toBe(201)
  })
})

describe('a subscription is changed', () => {
  test('by a patch, in the order of its operations', async () => {
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

  test('whole or not at all', async () => {
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
      const said = status === 400 ? Object.keys(issuesOf(answer)) : [answer.body.error.code]
      expect([steps, answer.status, said]).toEqual([steps, status, [what]])
      expect((await request(webhook(`/${id}`), firm)).body).toEqual(before)
    }
  })

  test('by nothing that is no patch on its three fields', async () => {
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

  test('by a company token within its folder', async () => {
    const id = await make(company)
    const to = (value: unknown) => patch(company, id, [{ op: 'replace', path: '/accountingFolderId', value }])
    expect(codeOf(await to(['112']))).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    expect((await to([])).body.accountingFolderId).toEqual(['111'])
  })

  test('by patches at the same moment, none of which is lost', async () => {
    const id = await make(firm)
    const added = [
      'connector',
      'exercice',
      'portfolio',
      'visitedPage',
      'thirdParty',
      'adminMessage',
      'taxReturnSent',
    ]
    const answers = await Promise.all(
      added.map((value) => patch(firm, id, [{ op: 'add', path: '/onEvents/-', value }])),
    )
    expect(answers.map(({ status }) => status)).toEqual(added.map(() => 200))
    expect((await inDatabase(id)).on_events.toSorted()).toEqual(['document', ...added].toSorted())
  })

  test('at a new address while another patch changes the rest', async () => {
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

  test('and with it enabled again, from the present on', async () => {
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
      start_position: '70',
    })
    expect((await staff.client.query('select from grandlivre.subscription_positions')).rowCount).toBe(0)
    await staff.client.query('delete from grandlivre.events')
  })
})

describe('the addresses of webhooks', () => {
  test('say with 405 what else they answer to', async () => {
    for (const [path, allowed] of [
      ['', 'POST, GET, HEAD'],
      ['/7', 'GET, HEAD, PATCH, DELETE'],
      ['/event/document', 'GET, HEAD'],
      ['/event/document/111', 'GET, HEAD'],
    ] as const) {
      const answer = await request(webhook(path), firm, 'PUT')
      expect([path, codeOf(answer), answer.headers.get('allow')]).toEqual([
        path,
        [405, 'ERR-METHOD-NOT-ALLOWED'],
        allowed,
      ])
    }
    expect(codeOf(await request(webhook('/7/8'), firm))).toEqual([404, 'ERR-NOT-FOUND'])
    expect(codeOf(await request(webhook(), {}, 'POST'))).toEqual([401, 'ERR-INVALID-AUTH-HEADER'])
  })

  test('are described with what they take and what is sent to subscribers', async () => {
    const { body } = await request(`${service.url}/api/v1/openapi.json`)
    const made = body.paths['/api/v1/webhook'].post
    expect(made.requestBody.content['application/json'].schema.required).toEqual(['postUrl', 'onEvents'])
    const { postUrl: address, onEvents } = made.requestBody.content['application/json'].schema.properties
    expect(address).toMatchObject({ format: 'uri', maxLength: 2048 })
    expect(onEvents.items.enum).toEqual(expect.arrayContaining(['connector', 'taxReturnSent']))
    expect(made.responses['201'].headers).toHaveProperty('Location')
    const changed = body.paths['/api/v1/webhook/{id}'].patch
    expect(Object.keys(changed.requestBody.content)).toEqual([
      'application/json-patch+json',
      'application/json',
    ])
    const operation = changed.requestBody.content['application/json-patch+json'].schema.items
    expect(operation.oneOf).toHaveLength(6)
    expect(changed.parameters.map(({ name }: { name: string }) => name)).toEqual(['id'])
    const sent = body.webhooks.notification.post
    expect(sent.requestBody.content['application/json'].schema.items).toEqual({
      $ref: '#/components/schemas/Notification',
    })
  })
})
