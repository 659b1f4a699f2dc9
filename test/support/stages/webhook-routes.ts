/** The routes of subscriptions on the test's service, and callers of every kind. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import type { Config } from '../../../src/config.ts'
import { createTenants, credentials, folders, type Staff } from '../ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'
import { startNameServer } from '../servers/name-server.ts'
import { type Answer, request, startTestService, type TestService } from '../service.ts'

type Headers = Record<string, string>

export interface WebhookRoutes {
  database: TestDatabase
  staff: Staff
  service: TestService
  /** Tokens of one third party: company tokens of two folders, firm tokens of three firms in two tenants. */
  company: Headers
  sibling: Headers
  firm: Headers
  otherFirm: Headers
  otherTenant: Headers
  /** Another third party's firm token of the same firm. */
  stranger: Headers
  thirdPartyId: number
  /** @returns the URL of the routes, or of one below them */
  webhook(rest?: string): string
  /**
   * @param body serialized as JSON, unless it is text already
   * @param type content type, JSON by default
   */
  send(method: string, url: string, headers: Headers, body: unknown, type?: string): Promise<Answer>
  post(headers: Headers, body: unknown, type?: string): Promise<Answer>
  patch(headers: Headers, id: number, body: unknown, type?: string): Promise<Answer>
  /**
   * By default for the kind `document`, to `postUrl`.
   * @returns its id
   * @throws {Error} with the body, if the status is not 201
   */
  make(headers: Headers, fields?: object): Promise<number>
  idsOf(path: string, headers: Headers): Promise<number[]>
  // biome-ignore lint/suspicious/noExplicitAny: a row
  inDatabase(id: number): Promise<any>
  close(): Promise<void>
}

/** Public according to the name server of these tests; nothing is sent to it. */
export const postUrl = 'https://hooks.test/ledger'

export const codeOf = ({ status, body }: Answer) => [status, body.error?.code]

/** The message of each parameter with an issue. */
export const issuesOf = ({ body }: Answer) =>
  Object.fromEntries(
    body.error.details.issues.map((issue: { parameter: string; message: string }) => [
      issue.parameter,
      issue.message,
    ]),
  )

/**
 * For the tests of a file; each starts without subscriptions.
 * @param settings of the service that differ from those of every test
 * @returns set before the first test
 */
export function setWebhookRoutes(settings: Partial<Config> = {}): WebhookRoutes {
  const routes: Partial<WebhookRoutes> = {}
  beforeAll(async () => {
    Object.assign(routes, await startWebhookRoutes(settings))
  })
  afterEach(() => routes.staff?.client.query('delete from grandlivre.subscriptions'))
  afterAll(() => routes.close?.())
  return routes as WebhookRoutes
}

async function startWebhookRoutes(settings: Partial<Config>): Promise<WebhookRoutes> {
  const dns = await startNameServer({ 'hooks.test': ['8.8.8.8'], 'inside.test': ['10.0.0.7'] })
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const callers = await callersOf(staff)
  const service = await startTestService(database, settings)
  const info = await request(`${service.url}/api/v1/key/info?mode=extended`, callers.firm)
  const webhook = (rest = '') => `${service.url}/api/v1/webhook${rest}`
  const post = (headers: Headers, body: unknown, type?: string) =>
    send('POST', webhook(), headers, body, type)
  return {
    database,
    staff,
    service,
    ...callers,
    thirdPartyId: info.body.target.thirdPartyId,
    webhook,
    send,
    post,
    patch: (headers, id, body, type = 'application/json-patch+json') =>
      send('PATCH', webhook(`/${id}`), headers, body, type),
    make: async (headers, fields = {}) => {
      const { status, body } = await post(headers, { postUrl, onEvents: ['document'], ...fields })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body.id
    },
    idsOf: async (path, headers) =>
      (await request(webhook(path), headers)).body.map(({ id }: { id: number }) => id),
    inDatabase: async (id) =>
      (await staff.client.query('select * from grandlivre.subscriptions where id = $1', [id])).rows[0],
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
      await dns.close()
    },
  }
}

async function callersOf(staff: Staff) {
  const secret = await staff.thirdParty('ONE')
  const issue = async (level: 'api' | 'firm', opened: Parameters<Staff['token']>[2]) =>
    credentials(await staff.token('ONE', level, opened), secret)
  const strangersSecret = await staff.thirdParty('TWO')
  return {
    company: await issue('api', folders.first),
    sibling: await issue('api', folders.sameFirm),
    firm: await issue('firm', folders.first),
    otherFirm: await issue('firm', folders.otherFirm),
    otherTenant: await issue('firm', folders.otherTenant),
    stranger: credentials(await staff.token('TWO', 'firm', folders.first), strangersSecret),
  }
}

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
