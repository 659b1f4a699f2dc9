/** The routes of subscriptions on the test's service, and callers of every kind. */
import { afterEach } from 'vitest'
import type { Config } from '../../../src/config.ts'
import { forTests } from '../for-tests.ts'
import { createTenants, credentials, folders, type Staff } from '../ledgers/tenants.ts'
import { createTestDatabase } from '../servers/database.ts'
import { startNameServer } from '../servers/name-server.ts'
import { type Answer, request, startTestService } from '../service.ts'

type Headers = Record<string, string>

export type WebhookRoutes = Awaited<ReturnType<typeof startWebhookRoutes>>

/** An address that is public according to the name server of these tests. Nothing is sent to it. */
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
  const routes = forTests(() => startWebhookRoutes(settings))
  afterEach(() => routes.staff.client.query('delete from subscriptions'))
  return routes
}

async function startWebhookRoutes(settings: Partial<Config>) {
  const dns = await startNameServer({ 'hooks.test': ['8.8.8.8'], 'inside.test': ['10.0.0.7'] })
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const callers = await callersOf(staff)
  const service = await startTestService(database, settings)
  /** @returns the URL of the routes, or of one below them */
  const webhook = (rest = '') => `${service.url}/api/v1/webhook${rest}`
  const post = (headers: Headers, body: unknown, type?: string) =>
    send('POST', webhook(), headers, body, type)
  return {
    database,
    staff,
    service,
    ...callers,
    thirdPartyId: Number(await staff.thirdPartyId('ONE')),
    webhook,
    send,
    post,
    patch: (headers: Headers, id: number, body: unknown, type = 'application/json-patch+json') =>
      send('PATCH', webhook(`/${id}`), headers, body, type),
    /**
     * Makes a subscription, by default for the kind `document`, to `postUrl`.
     * @returns its id
     * @throws {Error} with the body, if the status is not 201
     */
    make: async (headers: Headers, fields: object = {}): Promise<number> => {
      const { status, body } = await post(headers, { postUrl, onEvents: ['document'], ...fields })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body.id
    },
    idsOf: async (path: string, headers: Headers): Promise<number[]> =>
      (await request(webhook(path), headers)).body.map(({ id }: { id: number }) => id),
    inDatabase: async (id: number) => (await staff.sql('select * from subscriptions where id = $1', [id]))[0],
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
  // Tokens of one third party: company tokens of two folders, firm tokens of three firms in two tenants.
  return {
    company: await issue('api', folders.first),
    sibling: await issue('api', folders.sameFirm),
    firm: await issue('firm', folders.first),
    otherFirm: await issue('firm', folders.otherFirm),
    otherTenant: await issue('firm', folders.otherTenant),
    /** Another third party's firm token of the same firm. */
    stranger: credentials(await staff.token('TWO', 'firm', folders.first), strangersSecret),
  }
}

/**
 * @param body serialized as JSON, unless it is text already
 * @param type content type, JSON by default
 */
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
