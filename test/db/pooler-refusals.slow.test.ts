/**
 * Refusals of PgBouncer itself, in its own words. Operators get cause and remedy, at the start and in the log. Callers
 * get 503 with Retry-After.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabaseOfService } from '../../src/db/database.ts'
import { DatabaseAway } from '../../src/db/outage.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { ensurePooledLogin, withLogin } from '../support/pooled/pooled-run.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import {
  freePort,
  isPgBouncerInstalled,
  type PgBouncerOptions,
  startPgBouncer,
} from '../support/servers/pgbouncer.ts'
import { type Answer, request, startTestService } from '../support/service.ts'
import { keyInfo } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

interface Refusal {
  what: string
  /** The message of PgBouncer. */
  says: RegExp
  /** The remedy that the operator reads after the message. */
  remedy: string
  /** Whether waiting cannot help, so that the service does not start. */
  isLasting: boolean
  options: Partial<PgBouncerOptions>
  /** Its auth_file has another login. */
  hasOtherLogin?: true
  /** The statement with which a client of the test takes what the pooler has. */
  taken?: string
}

const refusals: Refusal[] = [
  {
    what: 'a database that it does not know',
    says: /no such database: test_/,
    remedy: 'add it to [databases] of PgBouncer',
    isLasting: true,
    options: { knownDatabase: 'other' },
  },
  {
    what: 'a login that it does not know',
    says: /no such user|authentication failed/,
    remedy: 'compare the address with auth_file or auth_query of PgBouncer',
    isLasting: true,
    options: {},
    hasOtherLogin: true,
  },
  {
    what: 'more clients than max_client_conn',
    says: /no more connections allowed \(max_client_conn\)/,
    remedy: 'raise max_client_conn of PgBouncer',
    isLasting: false,
    options: { clients: 1 },
    taken: 'select',
  },
  {
    what: 'a client that has waited for query_wait_timeout',
    says: /query_wait_timeout/,
    remedy: 'raise default_pool_size of PgBouncer',
    isLasting: false,
    options: { sessions: 1, waitSeconds: 1 },
    taken: 'begin',
  },
  {
    // Older versions keep clients waiting. Newer versions refuse them.
    what: 'clients, or is silent, while it does not reach the server',
    says: /connection timeout|timeout expired|server login has been failing/,
    remedy: 'check that it reaches the server',
    isLasting: false,
    options: { serverPort: 1 },
  },
]

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
let headers: Record<string, string>
let port: number
let stopPooler: () => Promise<void>

beforeAll(async () => {
  const secret = await staff.thirdParty('ONE')
  headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
  await ensurePooledLogin(database.ownerUrl)
  port = await freePort()
  await startPooler()
})
afterAll(() => stopPooler?.())

const service = forTests(() =>
  startTestService({ ownerUrl: pooledUrl() }, { directDatabaseUrl: database.ownerUrl }),
)

const pooledUrl = (): string => Object.assign(new URL(withLogin(database.ownerUrl)), { port }).href

async function startPooler(refusal?: Refusal): Promise<void> {
  await stopPooler?.()
  const login = refusal?.hasOtherLogin ? 'stranger' : undefined
  const url = new URL(withLogin(database.ownerUrl))
  const logins = [login === undefined ? url.href : Object.assign(url, { username: login }).href]
  const options = { poolMode: 'transaction', dropsOptions: false, port, ...refusal?.options } as const
  stopPooler = (await startPgBouncer(logins, options)).stop
}

/** A client of the test connects first. */
async function take(refusal: Refusal): Promise<pg.Client | undefined> {
  if (refusal.taken === undefined) return undefined
  // The connections of the service may take the place while they try again, so the client tries repeatedly. A
  // `pg.Client` can connect only once.
  let client = new pg.Client()
  await until(async () => {
    client = new pg.Client({ connectionString: pooledUrl() })
    client.on('error', () => {})
    return client.connect().then(
      () => true,
      () => false,
    )
  })
  await client.query(refusal.taken)
  return client
}

describe.skipIf(!isPgBouncerInstalled)('PgBouncer refuses', () => {
  test.each(refusals)('$what', async (refusal) => {
    const { says, remedy, isLasting } = refusal
    const ask = (): Promise<Answer> => request(service.url + keyInfo, headers)
    await until(async () => (await ask()).status === 200)
    await startPooler(refusal)
    const client = await take(refusal)
    const before = service.lines.length
    const failed = () =>
      service.lines
        .slice(before)
        .find((line) => line.includes('request.failed') && says.test(line) && line.includes(remedy))
    const answers: Answer[] = []
    await until(async () => {
      answers.push(await ask())
      return failed() !== undefined
    })
    for (const { status, headers, body } of answers) {
      expect([status, body.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(JSON.stringify(body)).not.toMatch(/pgbouncer|pooler|web|query_wait/i)
    }
    const settings = { dataDir: '', databaseUrl: pooledUrl(), directDatabaseUrl: database.ownerUrl }
    const start = await openDatabaseOfService(settings).catch((error: Error) => error)
    expect(String(start)).toMatch(/The server of DATABASE_URL refuses the connection: /)
    expect(String(start)).toMatch(says)
    expect(String(start)).toContain(remedy)
    expect(start instanceof DatabaseAway).toBe(!isLasting)
    await client?.end()
    await startPooler()
  })
})
