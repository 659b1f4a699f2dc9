/** Each route and each group of tokens (docs/spec/interface.md#groups-of-a-token). */
import { beforeAll, expect, test } from 'vitest'
import { type TokenGroup, tokenGroups } from '../../src/auth/callers.sql.ts'
import { routes } from '../../src/http/app.ts'
import type { Route } from '../../src/http/route.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const service = forTests(() => startTestService(database))
let secret: string

beforeAll(async () => {
  secret = await staff.thirdParty('ONE')
})

/** The table of the specification. */
const neededBy: [paths: RegExp, groups: TokenGroup[]][] = [
  [/^\/api\/v1\/(key\/info|society)$/, []],
  [/^\/api\/v1\/mad\/ledgers/, ['movements', 'resources']],
  [/^\/api\/v1\/mad\/all/, ['exports']],
  [/^\/api\/v1\/mad\/(movements|entries|entry|balance)/, ['movements']],
  [
    /^\/api\/v1\/mad\/(accountingFolder|accountingFirm|payments|vats|banks|journals|accounts|exercices|analytics)$/,
    ['resources'],
  ],
  [/^\/api\/v1\/webhook/, ['webhooks']],
]
const closed = routes.filter(({ scope }) => scope !== 'open')
const needs = ({ path }: Route) => neededBy.find(([paths]) => paths.test(path))?.[1]

async function headersFor(level: 'api' | 'firm', groups: TokenGroup[] | null) {
  const token = await staff.token('ONE', level, folders.first, { groups })
  return { ...credentials(token, secret), 'society-id': '111' }
}

test('every route that needs a token declares the groups that the specification names', () => {
  expect(closed.length).toBeGreaterThan(25)
  expect(closed.map(({ path, groups }) => [path, groups])).toEqual(
    closed.map((route) => [route.path, needs(route)]),
  )
})

const all = [...tokenGroups]
test.each<[TokenGroup[] | null]>([
  ...all.map((group): [TokenGroup[]] => [[group]]),
  ...all.map((group): [TokenGroup[]] => [all.filter((each) => each !== group)]),
  [all],
  [null],
])('a token for %j is refused on routes of other groups, by their names', async (groups) => {
  const headers = await headersFor('api', groups)
  const info = await request(`${service.url}/api/v1/key/info?mode=extended`, headers)
  const open: string[] = []
  for (const route of closed) {
    const { method, path } = route
    const address = service.url + path.replaceAll(/\{\w+\}/g, '1')
    const { status, body } = await request(address, headers, method.toUpperCase())
    const missing = groups === null ? [] : needs(route)!.filter((group) => !groups.includes(group))
    const isForbidden = body?.error?.code === 'ERR-FORBIDDEN-ROUTE'
    expect([path, isForbidden]).toEqual([path, missing.length > 0])
    if (isForbidden) {
      const kind = missing.length > 1 ? 'groups' : 'group'
      expect([status, body.error.message]).toEqual([
        403,
        `This token was issued without the ${kind} ${missing.join(' and ')}, which this route needs`,
      ])
    } else if (method !== 'patch') open.push(`${method} ${path}`)
  }
  const listed = info.body.routes.map(
    ({ method, path }: { method: string; path: string }) => `${method} ${path}`,
  )
  expect(listed).toEqual(open)
})

test('the document of the API says which groups each route needs', async () => {
  const { paths } = (await request(`${service.url}/api/v1/openapi.json`)).body
  for (const route of closed) {
    const groups = needs(route)!.map((group) => `\`${group}\``)
    const said =
      groups.length === 0 ? 'Open to every token.' : `Needs a token of the group ${groups.join(' and ')}.`
    expect(paths[route.path][route.method].description).toContain(said)
  }
})

test('a token with only the group employees can use no route that needs another group', async () => {
  const firm = await headersFor('firm', ['employees'])
  expect((await request(`${service.url}/api/v1/society`, firm)).status).toBe(200)
  expect((await request(`${service.url}/api/v1/mad/accounts?version=1.0.0`, firm)).status).toBe(403)
})

test.each([[[]], [['nonsense']], [['movements', 'nonsense']]])(
  'the database refuses a token for %j',
  async (groups) => {
    await expect(
      staff.token('ONE', 'api', folders.first, { groups: groups as TokenGroup[] }),
    ).rejects.toThrow('tokens_groups_check')
  },
)
