/**
 * The connections of a process while it does everything at once: at most those that docs/operators/scaling.md lists.
 * Exports, full exports, requests that wait, deliveries, probes, pages of the console and small requests run side by side.
 */
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { createConsoleKey } from '../../src/auth/console-keys.sql.ts'
import { limits } from '../../src/config.ts'
import { createOwnerPool, inTransaction } from '../../src/db/pool.ts'
import { publish } from '../../src/events/publish.ts'
import { movementsUrl } from '../support/download.ts'
import { ended, trigger } from '../support/full-export.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { ensurePooledLogin, pooledLogin, withLogin, withoutPooler } from '../support/pooled/pooled-run.ts'
import { startReceiver } from '../support/receiver.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { request, startTestService } from '../support/service.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

// Runs without the pooler of the run: the test chooses both addresses.
withoutPooler()

const exportThreads = 2
const exportsPerThread = 8
const subscribers = 3

/** The most connections to the server itself, by application name. */
const direct: Record<string, number> = {
  'grandlivre request slots': 1,
  'grandlivre notifications': 1,
  [`grandlivre dispatcher ${hostname().slice(0, 30)}:${process.pid} ${packageJson.version}`]: 1,
  'grandlivre direct': 3,
  // One for the queue's statements, and one that listens for notifications.
  'grandlivre queue': 2,
}
const ofConsole = { 'grandlivre console': 2 }
/** The most connections through DATABASE_URL. */
const others = {
  grandlivre: 8,
  'grandlivre export': 2 * exportsPerThread * exportThreads,
  'grandlivre readiness': 3,
}
const total = (most: Record<string, number>): number => Object.values(most).reduce((sum, each) => sum + each)

async function operatedService(isPooled: boolean, stack: AsyncDisposableStack) {
  const database = await createTestDatabase()
  stack.defer(() => database.drop())
  const { ownerUrl } = database
  const staff = await createTenants(ownerUrl)
  stack.defer(() => staff.end())
  const secret = await staff.thirdParty('ONE')
  const { rows } = await staff.client.query('select id from grandlivre.third_parties')
  await fillLedger(staff.client, { ...folders.first, label: 'one', thirdPartyId: rows[0].id })
  const headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
  const receiver = await startReceiver(secret)
  stack.defer(() => receiver.close())
  const settings = {
    exportThreads,
    exportsPerThread,
    rateLimit: { requests: 1_000_000, windowMs: 10_000, concurrent: 200 },
    webhookAllowInsecure: true,
    console: { host: '127.0.0.1', port: 0 },
  }
  const pooledUrl = isPooled ? await startPooler(ownerUrl, stack) : undefined
  const service = pooledUrl
    ? await startTestService({ ownerUrl: pooledUrl }, { ...settings, directDatabaseUrl: ownerUrl })
    : await startTestService(database, settings)
  stack.defer(() => service.stop())
  const owner = createOwnerPool(ownerUrl, { max: 6, applicationName: 'test' })
  stack.defer(() => owner.end())
  const cookie = await signIn(service.consoleUrl!, (await createConsoleKey(staff.client, 'alice'))!)
  return { service, owner, headers, receiver, cookie }
}

type Operated = Awaited<ReturnType<typeof operatedService>>

async function startPooler(ownerUrl: string, stack: AsyncDisposableStack): Promise<string> {
  await ensurePooledLogin(ownerUrl)
  const login = withLogin(ownerUrl)
  const bouncer = await startPgBouncer([login], {
    poolMode: 'transaction',
    dropsOptions: false,
    sessions: 20,
  })
  stack.defer(() => bouncer.stop())
  return bouncer.through(login)
}

async function signIn(consoleUrl: string, key: string): Promise<string> {
  const { origin } = new URL(consoleUrl)
  const answer = await fetch(`${origin}/console/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Sec-Fetch-Site': 'same-origin' },
    body: new URLSearchParams({ key }),
  })
  return answer.headers.get('set-cookie')!.split(';')[0]!
}

/** Does each kind of work several times in a row, by several workers, all at the same time. */
async function work(stage: Operated): Promise<void> {
  const { service, headers } = stage
  const ask = async (path: string) => {
    const { status, body } = await request(service.url + path, headers)
    expect([200, status], JSON.stringify(body)).toEqual([200, 200])
  }
  await Promise.all([
    ...each(20, 12, () => ask('/api/v1/mad/accounts?version=1.0.0')),
    ...each(16, 30, () => ask('/api/v1/key/info')),
    ...each(2, 10, () => ask('/readyz')),
    ...each(1, 4, () => makeFullExport(stage)),
    ...each(6, 4, () => waitForChange(stage)),
    ...each(2, 15, () => readPage(stage)),
    deliver(stage, 60),
  ])
}

function each(workers: number, times: number, run: () => Promise<void>): Promise<void>[] {
  return Array.from({ length: workers }, async () => {
    for (let i = 0; i < times; i++) await run()
  })
}

async function makeFullExport({ service, owner, headers }: Operated): Promise<void> {
  await owner.query('update grandlivre.exports set latest = false where latest')
  const { body } = await trigger(service.url, headers)
  expect((await ended(service.url, headers, body.id)).status).toBe('DONE')
}

async function waitForChange({ service, owner, headers }: Operated): Promise<void> {
  const ndjson = { ...headers, Accept: 'application/x-ndjson' }
  const ask = (query: Record<string, string>) =>
    request(movementsUrl(service.url, { idExercice: '12', ...query }), ndjson)
  const since = (await ask({ entries: '0-0' })).headers.get('x-ledger-cursor')!
  const [{ status }] = await Promise.all([
    ask({ since, wait: '1' }),
    owner.query(`update grandlivre.entries set comment = comment || '.' where schema_id = 100 and id = 39`),
  ])
  expect(status).toBe(200)
}

async function readPage({ service, cookie }: Operated): Promise<void> {
  const { origin } = new URL(service.consoleUrl!)
  expect((await fetch(`${origin}/console/folders`, { headers: { Cookie: cookie } })).status).toBe(200)
}

async function deliver({ service, owner, headers, receiver }: Operated, times: number): Promise<void> {
  const paths = Array.from({ length: subscribers }, (_, i) => `/${i}`)
  for (const path of paths) {
    const response = await fetch(`${service.url}/api/v1/webhook`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ postUrl: receiver.url + path, onEvents: ['document'] }),
    })
    expect(response.status).toBe(201)
  }
  for (let i = 0; i < times; i++) {
    await inTransaction(owner, (client) =>
      publish(client, '100', [documentEvent(`n${i}`, folders.first.folderId)]),
    )
    await until(() => paths.every((path) => receiver.accepted(path).length > i))
  }
}

interface Sample {
  login: string
  name: string
  count: number
}

/**
 * Counts connections every few milliseconds until the work is done. @returns the most at once of each name, and of
 * those that `isDirect`
 */
async function watch(owner: pg.Pool, isDirect: (sample: Sample) => boolean, isOver: () => boolean) {
  const most: Record<string, number> = {}
  let mostDirect = 0
  while (!isOver()) {
    const { rows } = await owner.query<Sample>(
      `select usename as login, application_name as name, count(*)::int as count from pg_stat_activity
       where datname = current_database() and application_name like 'grandlivre%' group by 1, 2`,
    )
    for (const { name, count } of rows) most[name] = Math.max(most[name] ?? 0, count)
    mostDirect = Math.max(
      mostDirect,
      rows.filter(isDirect).reduce((sum, { count }) => sum + count, 0),
    )
    await delay(10)
  }
  return { most, mostDirect }
}

test.skipIf(!isPgBouncerInstalled)(
  'through a pooler, a process under load has at most eight direct sessions, and two more for the console',
  async () => {
    const { most, mostDirect } = await loaded(true, ({ login, name }) => {
      return login !== pooledLogin.name && name in direct
    })
    console.info('through a pooler, at most at once:', mostDirect, most)
    expect(mostDirect).toBeLessThanOrEqual(8)
    expect(mostDirect).toBeGreaterThan(5)
    expect(Object.keys(direct).filter((name) => most[name] === undefined)).toEqual([])
    for (const [name, allowed] of Object.entries({ ...direct, ...ofConsole }))
      expect(most[name], name).toBeLessThanOrEqual(allowed)
  },
)

test('without a pooler, a process under load has at most the sessions of each kind that the guide lists', async () => {
  const { most, mostDirect } = await loaded(false, () => true)
  console.info('directly, at most at once:', mostDirect, most)
  const allowed: Record<string, number> = { ...direct, ...ofConsole, ...others }
  expect(mostDirect).toBeLessThanOrEqual(total(allowed))
  for (const [name, count] of Object.entries(most))
    expect([name, count <= (allowed[name] ?? 0)]).toEqual([name, true])
  expect(total(direct)).toBe(8)
  expect([others.grandlivre, ofConsole['grandlivre console'], direct['grandlivre direct']]).toEqual([
    limits.serviceConnectionsMax,
    limits.consoleConnectionsMax,
    limits.directConnectionsMax,
  ])
})

async function loaded(isPooled: boolean, isDirect: (sample: Sample) => boolean) {
  await using stack = new AsyncDisposableStack()
  const stage = await operatedService(isPooled, stack)
  let isOver = false
  const working = work(stage).finally(() => {
    isOver = true
  })
  const [seen] = await Promise.all([watch(stage.owner, isDirect, () => isOver), working])
  return seen
}
