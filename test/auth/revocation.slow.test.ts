/**
 * Nothing that is committed after a revocation reaches a request that waits
 * (docs/spec/interface.md#tokens-and-secrets): no data, no cursor, and no answer that nothing has changed.
 *
 * The last three tests race a revocation with the answer of a request that a change has woken. `npm run
 * long -- revocations` tries each 200 times (REVOCATIONS), and requires that some answers came before and some after it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../src/auth/secrets.ts'
import { setConnection } from '../../src/auth/third-parties.sql.ts'
import { revokeToken } from '../../src/auth/tokens.sql.ts'
import { publish } from '../../src/events/publish.ts'
import { readDelta } from '../support/changes/apply-delta.ts'
import { setConsoleStage } from '../support/console/console-stage.ts'
import { type Download, download } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { lockWaits } from '../support/ledgers/lock-waits.ts'
import { credentials, folders } from '../support/ledgers/tenants.ts'
import { documents } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const tries = Number(process.env['REVOCATIONS'] ?? 24)

const stage = forTests(setConsoleStage)
/** One connection, so its commits come one after the other. */
const sql = (text: string, values?: unknown[]) => stage.staff.client.query(text, values)
beforeAll(() => sql('set search_path = grandlivre'))

interface Caller {
  code: string
  tokenId: string
  headers: Record<string, string>
  /** The cursor of the folder when the caller was made. */
  cursor: string
  subscriptionId: number
}

let made = 0

/** A third party with a token and a subscription that is read by number. */
async function newCaller(level: 'api' | 'firm' = 'api'): Promise<Caller> {
  const code = `CALLER${++made}`
  const secret = await stage.staff.thirdParty(code)
  const token = await stage.staff.token(code, level, folders.first)
  const headers = { ...credentials(token, secret), ...(level === 'firm' ? { 'society-id': '111' } : {}) }
  const subscription = await fetch(`${stage.service.url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ postUrl: null, onEvents: ['document'] }),
  })
  const { id: subscriptionId } = (await subscription.json()) as { id: number }
  return { code, tokenId: token.id, headers, cursor: await currentCursor(), subscriptionId }
}

async function currentCursor(): Promise<string> {
  const { rows } = await sql(
    `select ledger_cursor(f.schema_id, f.id, f.ledger_version, s.rendering) as cursor
     from folders f, service_state s where f.schema_id = 100 and f.id = 111`,
  )
  return rows[0].cursor
}

const mad = (what: string) => (caller: Caller, wait: number) =>
  `/api/v1/mad/${what}?version=1.0.0&idExercice=12&since=${caller.cursor}&wait=${wait}`
const waitingPaths = {
  movements: mad('movements'),
  entries: mad('entries'),
  events: ({ subscriptionId }: Caller, wait: number) =>
    `/api/v1/webhook/${subscriptionId}/events?wait=${wait}`,
}

/** Sends a request to each path, and returns once the service has admitted all of them. */
async function ask(caller: Caller, ...paths: string[]): Promise<{ all: Promise<Download[]> }> {
  const counted = async () =>
    (await sql('select requests from rate_windows where token_id = $1', [caller.tokenId])).rows[0].requests
  await sql('update rate_windows set requests = 0 where token_id = $1', [caller.tokenId])
  const headers = { ...caller.headers, Accept: '*/*' }
  const all = Promise.all(paths.map((path) => download(stage.service.url + path, headers)))
  while ((await counted()) < paths.length) await delay(2)
  return { all }
}

let changes = 0

/** Commits a change of the ledger with an event for the subscriptions. @returns what names both */
async function change(): Promise<{ cursor: string; event: string }> {
  const event = `event ${++changes}`
  await sql('begin')
  await sql(`update entries set comment = $1 where schema_id = 100 and folder_id = 111 and id = 39`, [event])
  await publish(stage.staff.client, '100', documents([event]))
  const cursor = await currentCursor()
  await sql('commit')
  return { cursor, event }
}

async function commit(act: () => Promise<unknown>): Promise<void> {
  await sql('begin')
  await act()
  await sql('commit')
}

const maintenance = (on: boolean) => sql('update service_state set under_maintenance = $1', [on])
const moveFolder = (firmId: string) => sql('update folders set firm_id = $1 where id = 111', [firmId])

const revocations: Record<
  string,
  [
    outcome: [status: number, code: string],
    revoke: (caller: Caller) => Promise<unknown>,
    undo?: () => unknown,
  ]
> = {
  'its token is revoked': [
    [401, 'ERR-FIRM-TOKEN-NOT-FOUND'],
    ({ tokenId }) => revokeToken(stage.staff.client, tokenId),
  ],
  'its token expires': [
    [401, 'ERR-FIRM-TOKEN-NOT-FOUND'],
    ({ tokenId }) => sql('update tokens set expires_at = now() where id = $1', [tokenId]),
  ],
  'its token has lost the groups of the route': [
    [403, 'ERR-FORBIDDEN-ROUTE'],
    ({ tokenId }) => sql(`update tokens set groups = '{exports}' where id = $1`, [tokenId]),
  ],
  'its partner is disconnected': [
    [403, 'ERR-THIRD-PARTY-DISCONNECTED'],
    ({ code }) => setConnection(stage.staff.client, code, 'unpaid'),
  ],
  'its secret is retired': [
    [401, 'ERR-INVALID-SECRET'],
    ({ code }) =>
      sql(
        `delete from third_party_secrets
         where third_party_id = (select id from third_parties where code = $1)`,
        [code],
      ),
  ],
  'maintenance begins': [
    [503, 'ERR-API-UNDER-MAINTENANCE'],
    () => maintenance(true),
    () => maintenance(false),
  ],
}

const refusalIn = ({ status, json, headers }: Download) => [
  status,
  json.error.code,
  headers['etag'],
  headers['x-ledger-cursor'],
  headers['x-latest-sequence'],
]

describe.each(Object.entries(revocations))('a request that waits while %s', (_, [outcome, revoke, undo]) => {
  test.each(Object.entries(waitingPaths))('gets no %s', async (_, path) => {
    const caller = await newCaller('firm')
    const answers = await ask(caller, path(caller, 30))
    await commit(() => revoke(caller))
    await change()
    const [answer] = await answers.all
    await undo?.()
    expect(refusalIn(answer!)).toEqual([...outcome, undefined, undefined, undefined])
  })
})

test('a request that waits past a revocation is refused, and not answered as unchanged', async () => {
  const caller = await newCaller('firm')
  const answers = await ask(caller, ...Object.values(waitingPaths).map((path) => path(caller, 1)))
  await sql('update tokens set revoked_at = now() where id = $1', [caller.tokenId])
  for (const answer of await answers.all)
    expect(refusalIn(answer)).toEqual([401, 'ERR-FIRM-TOKEN-NOT-FOUND', undefined, undefined, undefined])
})

test('a request that waits for a folder gets none of its data once the folder has left the firm', async () => {
  const caller = await newCaller('firm')
  const answers = await ask(caller, waitingPaths.movements(caller, 30))
  await moveFolder('120')
  const { status, json } = (await answers.all)[0]!
  await moveFolder('110')
  expect([status, json.error.code]).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
})

test('a page of the console shows no change made after its session ended', async () => {
  const cookie = await stage.signIn()
  await sql('begin')
  await sql('lock table exports in access exclusive mode')
  const page = await watch(cookie)
  await until(async () => (await lockWaits(stage.staff.client, 'exports')) > 0)
  const live = await watch(await stage.signIn())
  await endSessions([cookie])
  const marker = await insertExport()
  await sql('commit')
  expect(await page.text()).not.toContain(marker)
  let shown = ''
  for await (const chunk of live.body!.pipeThrough(new TextDecoderStream())) {
    shown += chunk
    if (shown.includes(marker)) break
  }
  expect(shown).toContain(marker)
})

const watch = (cookie: string) =>
  stage.ask('/console', { headers: { Cookie: cookie, Accept: 'text/event-stream' } })

function endSessions(cookies: string[]): Promise<unknown> {
  const hashes = cookies.map((cookie) => sha256(cookie.split('=')[1]!))
  return sql('update console_sessions set expires_at = clock_timestamp() where session_hash = any ($1)', [
    hashes,
  ])
}

/** @returns its id, which the start page of the console shows while it waits in the queue */
async function insertExport(): Promise<string> {
  const id = `export_${String(++changes).padStart(32, '0')}`
  await sql(
    `insert into exports (schema_id, id, folder_id, version, format, identity, request_id)
     values (100, $1, 111, '1.0.0', 'JSON', $2, 'x')`,
    [id, String(changes).padStart(64, '0')],
  )
  return id
}

/** Requests of one round. One change wakes all, so some answers come before the revocation and some after it. */
const atOnce = 8
/** From 1 to 512 ms, short ones as often as long ones: an answer takes 5 ms on a quiet machine, and 200 on a full one. */
const aMoment = () => delay(512 ** Math.random())

/** A race in which one side always wins shows nothing. Few tries may have only one winner. */
function expectBoth<Outcome>(outcomes: Set<Outcome>, both: Outcome[]): void {
  for (const outcome of outcomes) expect(both).toContain(outcome)
  if (tries >= 200) expect([...outcomes].toSorted()).toEqual(both)
}

test('a revoked token gets no change that was committed after the revocation', async () => {
  const statuses = new Set<number>()
  for (let i = 0; i < tries; i += atOnce) {
    const caller = await newCaller()
    const paths = Array.from({ length: atOnce }, (_, n) =>
      waitingPaths[n % 2 ? 'movements' : 'entries'](caller, 30),
    )
    const answers = await ask(caller, ...paths)
    const before = await change()
    await aMoment()
    await commit(() => revokeToken(stage.staff.client, caller.tokenId))
    await change()
    for (const { status, text } of await answers.all) {
      statuses.add(status)
      if (status === 200) expect([caller.cursor, before.cursor]).toContain(readDelta(text).cursor)
    }
  }
  expectBoth(statuses, [200, 401])
})

test('a disconnected partner gets no event that was committed after the disconnection', async () => {
  const caller = await newCaller('firm')
  const path = `/api/v1/webhook/${caller.subscriptionId}/events`
  const statuses = new Set<number>()
  for (let i = 0; i < tries; i += atOnce) {
    const { headers } = await download(`${stage.service.url}${path}?limit=1`, caller.headers)
    const waiting = `${path}?wait=30&after=${headers['x-latest-sequence']}`
    const answers = await ask(caller, ...Array(atOnce).fill(waiting))
    const { event } = await change()
    await aMoment()
    await commit(() => setConnection(stage.staff.client, caller.code, 'unpaid'))
    await change()
    for (const { status, json } of await answers.all) {
      statuses.add(status)
      if (status === 200) expect(json).toMatchObject([{ event: { data: { name: event } } }])
    }
    await commit(() => setConnection(stage.staff.client, caller.code, null))
  }
  expectBoth(statuses, [200, 403])
})

test('a page of an expired session shows nothing that was committed after the expiry', async () => {
  const live = { headers: { Cookie: await stage.signIn() } }
  const contents = new Set<boolean>()
  for (let i = 0; i < tries; i += atOnce) {
    const cookies = await Promise.all(Array.from({ length: atOnce }, () => stage.signIn()))
    const pages = cookies.map(watch)
    await aMoment()
    await endSessions(cookies)
    const marker = await insertExport()
    for (const page of pages) {
      const text = await (await page).text()
      expect(text).not.toContain(marker)
      contents.add(text.includes('event: content'))
    }
    expect(await (await stage.ask('/console', live)).text()).toContain(marker)
    await sql('delete from exports where id = $1', [marker])
  }
  expectBoth(contents, [false, true])
})
