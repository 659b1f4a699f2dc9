import { beforeAll, describe, expect, test } from 'vitest'
import { setMaintenance, type TokenGroup } from '../../src/auth/callers.sql.ts'
import { sha256 } from '../../src/auth/secrets.ts'
import { setConnection } from '../../src/auth/third-parties.sql.ts'
import { revokeToken } from '../../src/auth/tokens.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders, type IssuedToken } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { type Answer, request, startTestService } from '../support/service.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const service = forTests(() => startTestService(database))
let secret: string
let otherSecret: string
let company: IssuedToken
let firm: IssuedToken
let foreign: IssuedToken

beforeAll(async () => {
  secret = await staff.thirdParty('ONE')
  otherSecret = await staff.thirdParty('TWO')
  company = await staff.token('ONE', 'api', folders.first)
  firm = await staff.token('ONE', 'firm', folders.first)
  foreign = await staff.token('ONE', 'firm', folders.otherTenant)
})

const keyInfo = '/api/v1/key/info'
/** A route of a folder. Exercice 1 does not exist, so a caller who gets its 404 has passed every check. */
const movements = '/api/v1/mad/movements?version=1.0.0&idExercice=1'

function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return request(service.url + path, headers)
}

/** Status and code of an error, after checking its body and headers. */
function failure(answer: Answer, path: string): [number, string] {
  expect(Object.keys(answer.body)).toEqual(['error'])
  const { code, message, details } = answer.body.error
  expect(message).toEqual(expect.any(String))
  expect(details).toMatchObject({ url: path, method: 'GET', requestId: answer.headers.get('x-request-id') })
  expect(new Date(details.requestedAt).toISOString()).toBe(details.requestedAt)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  return [answer.status, code]
}

describe('a caller is refused with a distinct code', () => {
  const refused = async (headers: Record<string, string>, path = keyInfo) => {
    const answer = await get(path, headers)
    expect(answer.headers.get('www-authenticate')).toBe(answer.status === 401 ? 'Bearer' : null)
    return failure(answer, path)
  }

  test.each<[string, () => Record<string, string>, code: string]>([
    ['without any credentials', () => ({}), 'ERR-INVALID-AUTH-HEADER'],
    ['without Authorization', () => ({ 'X-Third-Party-Secret': secret }), 'ERR-INVALID-AUTH-HEADER'],
    [
      'with another scheme',
      () => ({ ...credentials(company, secret), Authorization: 'Basic dTpw' }),
      'ERR-INVALID-AUTH-HEADER',
    ],
    ['without the secret', () => ({ Authorization: `Bearer ${company.token}` }), 'ERR-SECRET-HEADER-NOT-SET'],
    ['with an unknown secret', () => credentials(company, `${secret}x`), 'ERR-INVALID-SECRET'],
    ['with an unknown token', () => credentials('glv_api_unknown', secret), 'ERR-API-TOKEN-NOT-FOUND'],
    ['with an unknown firm token', () => credentials('glv_firm_unknown', secret), 'ERR-FIRM-TOKEN-NOT-FOUND'],
    ["with another partner's secret", () => credentials(company, otherSecret), 'ERR-API-TOKEN-NOT-FOUND'],
    [
      "with a firm token and another partner's secret",
      () => credentials(firm, otherSecret),
      'ERR-FIRM-TOKEN-NOT-FOUND',
    ],
  ])('%s', async (_, headers, code) => {
    expect(await refused(headers())).toEqual([401, code])
  })

  test('with a revoked token, from the next request on', async () => {
    const revoked = await staff.token('ONE', 'api', folders.first)
    expect((await get(keyInfo, credentials(revoked, secret))).status).toBe(200)
    await revokeToken(staff.client, revoked.id)
    expect(await refused(credentials(revoked, secret))).toEqual([401, 'ERR-API-TOKEN-NOT-FOUND'])
  })

  test.each([
    ['api', 'ERR-API-TOKEN-NOT-FOUND'],
    ['firm', 'ERR-FIRM-TOKEN-NOT-FOUND'],
  ] as const)('with an expired token of level %s, on the clock of the database', async (level, code) => {
    const expiresAt = new Date(Date.now() + 86_400_000)
    const ending = await staff.token('ONE', level, folders.first, { expiresAt })
    expect((await get(keyInfo, credentials(ending, secret))).status).toBe(200)
    await staff.client.query('update grandlivre.tokens set expires_at = now() where id = $1', [ending.id])
    expect(await refused(credentials(ending, secret))).toEqual([401, code])
  })

  // The previous version knows no groups, and would open all routes to such a token.
  test('with a token that has groups, by a process of the previous version', async () => {
    const asked = async (groups: TokenGroup[] | null) => {
      const { token } = await staff.token('ONE', 'api', folders.first, { groups })
      const hashes = [sha256(secret), sha256(token)]
      const caller = await staff.client.query('select * from grandlivre.caller($1, $2)', hashes)
      const entered = await staff.client.query('select * from grandlivre.enter($1, $2, 1000)', hashes)
      return [caller, entered].map(({ rows }) => rows.map(({ token_id }) => token_id !== null))
    }
    expect(await asked(null)).toEqual([[true], [true]])
    expect(await asked(['movements'])).toEqual([[false], [false]])
  })

  test('while its third party is disconnected, with the reason and its rate limit', async () => {
    await setConnection(staff.client, 'ONE', 'contract ended')
    try {
      const answer = await get(keyInfo, credentials(company, secret))
      expect(failure(answer, keyInfo)).toEqual([403, 'ERR-THIRD-PARTY-DISCONNECTED'])
      expect(answer.body.error.message).toContain('contract ended')
      expect(answer.headers.get('x-rate-limit-total')).toBe('100000')
    } finally {
      await setConnection(staff.client, 'ONE', null)
    }
    expect((await get(keyInfo, credentials(company, secret))).status).toBe(200)
  })

  test('during maintenance, while probes still succeed', async () => {
    await setMaintenance(staff.client, true)
    try {
      const answer = await get(keyInfo, credentials(company, secret))
      expect(failure(answer, keyInfo)).toEqual([503, 'ERR-API-UNDER-MAINTENANCE'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      for (const probe of ['/healthz', '/readyz']) expect((await get(probe)).status).toBe(200)
    } finally {
      await setMaintenance(staff.client, false)
    }
    expect((await get(keyInfo, credentials(company, secret))).status).toBe(200)
  })

  test('before its parameters are checked', async () => {
    expect(await refused({}, '/api/v1/mad/movements?nonsense=1')).toEqual([401, 'ERR-INVALID-AUTH-HEADER'])
  })
})

describe('the folder of a request', () => {
  const reached = [404, 'ERR-EXERCICE-NOT-FOUND']
  const of = async (token: IssuedToken, headers: Record<string, string> = {}, query = '') =>
    failure(await get(movements + query, { ...credentials(token, secret), ...headers }), movements + query)

  test('is the folder of a company token, whether the request names it or not', async () => {
    expect(await of(company)).toEqual(reached)
    expect(await of(company, { 'society-id': '111' })).toEqual(reached)
    expect(await of(company, {}, '&accountingFolderId=111')).toEqual(reached)
    expect(await of(company, { 'society-id': '112' })).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
    expect(await of(company, {}, '&accountingFolderId=211')).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
  })

  test('must be named in requests with a firm token, and belong to its firm', async () => {
    expect(await of(firm)).toEqual([400, 'ERR-SOCIETY-ID-REQUIRED'])
    expect(await of(firm, { 'society-id': '111' })).toEqual(reached)
    expect(await of(firm, { 'society-id': '112' })).toEqual(reached)
    expect(await of(firm, {}, '&accountingFolderId=112')).toEqual(reached)
    expect(await of(firm, {}, '&accountingFolderId=')).toEqual([400, 'ERR-SOCIETY-ID-REQUIRED'])
    expect(await of(firm, { 'society-id': '112' }, '&accountingFolderId=')).toEqual(reached)
    expect(await of(company, {}, '&accountingFolderId=')).toEqual(reached)
  })

  test('is not found if it does not exist, or belongs to another firm or tenant', async () => {
    for (const id of ['121', '211', '999', '0', '9999999999999999', '11100000000000000', 'abc'])
      expect(await of(firm, { 'society-id': id })).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect(await of(firm, {}, '&accountingFolderId=211')).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect(await of(foreign, { 'society-id': '111' })).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    expect(await of(foreign, { 'society-id': '211' })).toEqual(reached)
  })

  test('may not differ between header and parameter; this is reported with all other problems', async () => {
    for (const token of [company, firm]) {
      const headers = { ...credentials(token, secret), 'society-id': '111' }
      const { status, body } = await get(`${movements}&accountingFolderId=112&foo=1`, headers)
      expect([status, body.error.code]).toEqual([400, 'ERR-VALIDATION'])
      expect(body.error.details.issues).toEqual([
        { parameter: 'accountingFolderId', message: 'must name the same folder as the header society-id' },
        { parameter: 'foo', message: 'is not a parameter of this route' },
      ])
      expect((await get(`${movements}&accountingFolderId=112`, headers)).status).toBe(400)
    }
  })

  test('is checked even on a route that needs no folder', async () => {
    const info = (token: IssuedToken, id: string) =>
      get(keyInfo, { ...credentials(token, secret), 'society-id': id })
    expect((await info(firm, '111')).status).toBe(200)
    expect((await info(firm, ' ')).status).toBe(200)
    expect((await info(firm, '211')).status).toBe(404)
    expect((await info(company, '112')).status).toBe(403)
  })
})

describe('key/info', () => {
  const routes = [
    { path: keyInfo, method: 'get' },
    { path: '/api/v1/mad/movements', method: 'get' },
  ]

  test('lists all routes that need a token, except PATCH, which its format cannot express', async () => {
    const { paths } = (await get('/api/v1/openapi.json')).body
    const protectedRoutes: { path: string; method: string }[] = []
    for (const path of Object.keys(paths))
      for (const method of Object.keys(paths[path])) {
        const { status } = await request(service.url + path, {}, method.toUpperCase())
        if (status === 401) protectedRoutes.push({ path, method })
      }
    expect(protectedRoutes).toEqual(expect.arrayContaining(routes))
    const patched = protectedRoutes.filter(({ method }) => method === 'patch')
    expect(patched).toEqual([{ path: '/api/v1/webhook/{id}', method: 'patch' }])
    const listable = protectedRoutes.filter((route) => !patched.includes(route))
    const sorted = (list: typeof protectedRoutes) =>
      list.toSorted((a, b) => (a.path + a.method < b.path + b.method ? -1 : 1))
    const listed = async (token: IssuedToken) => sorted((await get(keyInfo, credentials(token, secret))).body)
    expect(await listed(firm)).toEqual(sorted(listable))
    expect(await listed(company)).toEqual(sorted(listable))
  })

  test('describes the token with mode=extended', async () => {
    const thirdParty = await staff.client.query(`select id from grandlivre.third_parties where code = 'ONE'`)
    const target = { schemaId: 100, thirdPartyId: Number(thirdParty.rows[0].id) }
    const rest = {
      version: { current: 1, latest: 1, beta: false },
      canBeActivated: true,
      isActivated: true,
      groups: ['movements', 'exports', 'webhooks', 'resources', 'employees'],
      expiresAt: null,
      routes: expect.arrayContaining(routes),
    }
    expect((await get(`${keyInfo}?mode=extended`, credentials(company, secret))).body).toEqual({
      target: { type: 'api', ...target, societyId: 111 },
      ...rest,
    })
    expect((await get(`${keyInfo}?mode=extended`, credentials(firm, secret))).body).toEqual({
      target: { type: 'firm', ...target, societyId: 110 },
      ...rest,
    })
  })

  test('rejects any other mode', async () => {
    const path = `${keyInfo}?mode=full`
    expect(failure(await get(path, credentials(company, secret)), path)).toEqual([400, 'ERR-VALIDATION'])
  })
})

describe('activation', () => {
  const activated = async ({ id }: IssuedToken) => {
    const { rows } = await staff.client.query('select activated_at from grandlivre.tokens where id = $1', [
      id,
    ])
    return rows[0].activated_at as Date | null
  }

  test('happens once, at the first authenticated request, even a refused one', async () => {
    const token = await staff.token('ONE', 'api', folders.first)
    expect(await activated(token)).toBeNull()
    await get(keyInfo, credentials(token, otherSecret))
    expect(await activated(token)).toBeNull()
    await get(`${keyInfo}?mode=wrong`, credentials(token, secret))
    expect(await activated(token)).toBeInstanceOf(Date)
    await staff.client.query(`update grandlivre.tokens set activated_at = '2020-01-01' where id = $1`, [
      token.id,
    ])
    await get(keyInfo, credentials(token, secret))
    expect((await activated(token))?.getUTCFullYear()).toBeLessThan(2021)
  })

  test('waits while events of the schema are being written, without delaying any request', async () => {
    const token = await staff.token('ONE', 'api', folders.first)
    const neighbour = await staff.token('ONE', 'api', folders.otherTenant)
    await staff.client.query('begin; select grandlivre.lock_events(100)')
    try {
      // More requests than the service has connections.
      const first = Array.from({ length: 12 }, () => get(keyInfo, credentials(token, secret)))
      expect((await get(keyInfo, credentials(neighbour, secret))).status).toBe(200)
      for (const { status } of await Promise.all(first)) expect(status).toBe(200)
      expect(await activated(token)).toBeNull()
    } finally {
      await staff.client.query('rollback')
    }
    await get(keyInfo, credentials(token, secret))
    expect(await activated(token)).toBeInstanceOf(Date)
  })

  test('does not happen for a disconnected third party', async () => {
    const gone = await staff.thirdParty('GONE')
    const token = await staff.token('GONE', 'api', folders.first)
    await setConnection(staff.client, 'GONE', 'x')
    await get(keyInfo, credentials(token, gone))
    expect(await activated(token)).toBeNull()
  })
})

test('the log names tokens by id and holds no secret', () => {
  const all = service.lines.join('')
  expect(all).toContain(`"tokenId":"${company.id}"`)
  for (const secretText of [secret, otherSecret, company.token, firm.token, foreign.token])
    expect(all).not.toContain(secretText)
})

test('the database holds no token or secret in plain text', async () => {
  const { rows: tables } = await staff.client.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema in ('grandlivre', 'pgboss') and table_type = 'BASE TABLE'`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const { rows } = await staff.client.query<{ row: string }>(`select t::text as row from ${name} t`)
    texts.push(...rows.map(({ row }) => row))
  }
  const stored = texts.join('\n')
  // The database holds the last characters of each token.
  expect(stored).toContain(company.token.slice(-4))
  for (const text of [secret, company.token, firm.token]) {
    expect(stored).not.toContain(text)
    expect(stored).not.toContain(Buffer.from(text).toString('hex'))
  }
})
