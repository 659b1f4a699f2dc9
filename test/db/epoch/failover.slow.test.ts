import { beforeAll, expect, test } from 'vitest'
import { cli } from '../../support/cli.ts'
import { forTests } from '../../support/for-tests.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { setLossyFailover } from '../../support/replication/lossy-failover.ts'
import { ask } from '../../support/servers/database.ts'
import { request } from '../../support/service.ts'
import { namesOf, numbered, sequencesOf } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

/** The number of lost states of the ledger in which a partner reads every selection. 100 states are lost in all. */
const states = Number(process.env['FAILOVER_STATES'] ?? 4)
const lostCommits = 100

const selections = ['11', '12', '13'].flatMap((exerciceId) =>
  ['movements', 'entries', 'balance'].map((what) => `/${what}?version=1.0.0&idExercice=${exerciceId}`),
)
const paths = [...selections, '/accounts?version=1.0.0']

/** An answer of the former server, which a partner holds. */
interface Held {
  path: string
  etag: string
  cursor: string
}

const stage = forTests(setLossyFailover)
let held: Held[]
/** What every sequence of the former server had given out when it was lost. */
let lost: { name: string; last: string }[]
let formerExport: string
let epochOfFormer: string | null
/** Names of the events that are published after the failover. */
const newNames = [...numbered(1, 90), ...numbered(3, 100)]
/** The last row of the audit of the former server. */
let anchor: { number: number; hash: string }
let subscriptions: { posted: number; pulled: number }

beforeAll(async () => {
  const subscribe = async (postUrl: string | null): Promise<number> => {
    const body = JSON.stringify({ postUrl, onEvents: ['document'] })
    const headers = { ...stage.company, 'Content-Type': 'application/json' }
    const url = `${stage.service.url}/api/v1/webhook`
    const created = await fetch(url, { method: 'POST', headers, body })
    return ((await created.json()) as { id: number }).id
  }
  subscriptions = { posted: await subscribe(`${stage.receiver.url}/posted`), pulled: await subscribe(null) }
  await stage.publish(numbered(5))
  await delivered(5)
  await pull(0)
  formerExport = (await trigger(stage.service.url, stage.company)).body.id
  await ended(stage.service.url, stage.company, formerExport)
  await stage.standby.catchUp()
  await stage.standby.cutStream()
})

const get = (path: string, headers: Record<string, string> = {}) =>
  request(`${stage.service.url}/api/v1/mad${path}`, { ...stage.company, ...headers })
const delivered = (events: number) => until(() => stage.receiver.accepted('/posted').length >= events)
const pull = (after: number) =>
  request(`${stage.service.url}/api/v1/webhook/${subscriptions.pulled}/events?after=${after}`, stage.company)

/** A commit that gives the ledger another state and content. */
const change = (text: string) =>
  stage.sql(
    `update movements set description = $1 where schema_id = 100 and folder_id = 111
       and id = (select min(id) from movements where schema_id = 100 and folder_id = 111)`,
    [text],
  )

async function readAll(): Promise<Held[]> {
  const found: Held[] = []
  for (const path of paths) {
    const { status, headers, body } = await get(path)
    expect(status, JSON.stringify(body).slice(0, 500)).toBe(200)
    found.push({ path, etag: headers.get('etag')!, cursor: headers.get('x-ledger-cursor')! })
  }
  return found
}

/** The last row of the audit. */
const lastRow = async () =>
  (await stage.sql(`select count::float8 as number, encode(hash, 'hex') as hash from audit_head`))[0]

const sequences = (): Promise<{ name: string; last: string }[]> =>
  stage.sql(
    `select sequencename as name, coalesce(last_value, 0)::text as last from pg_sequences where schemaname = 'grandlivre'
       and sequencename not in ('epoch', 'epoch_began', 'server_name') order by 1`,
  )

test('the former server commits changes that the failover loses, after partners, subscribers and readers have seen them', async () => {
  held = []
  const { number: arrived } = await lastRow()
  for (let commit = 0; commit < lostCommits; commit++) {
    await change(`lost ${commit}`)
    if (commit % (lostCommits / states) === 0) held.push(...(await readAll()))
  }
  await stage.publish(numbered(10, 5))
  // The log runs 32 values ahead of a sequence. A standby counts these values as given out.
  for (const { name } of await sequences())
    await stage.sql('select max(nextval($1::regclass)) from generate_series(1, 500)', [name])
  await delivered(15)
  const { headers, body } = await pull(5)
  expect(body).toHaveLength(10)
  epochOfFormer = headers.get('webhook-epoch')
  lost = await sequences()
  await until(async () => {
    anchor = await lastRow()
    return anchor.number > arrived
  })
  expect(held).toHaveLength(states * paths.length)
})

test('failover refuses a standby that is not promoted yet, and changes nothing', async () => {
  const stateOfStandby = () =>
    ask(
      stage.standby.ownerUrl,
      `select (select last_value from epoch) as epoch, (select count from audit_head) as acts,
         (select array_agg(last_value order by sequencename) from pg_sequences where schemaname = 'grandlivre') as last`,
    )
  const before = await stateOfStandby()
  expect(await cli(stage.standby.ownerUrl, 'failover', '--yes')).toEqual({
    code: 1,
    out: '',
    error:
      'DATABASE_URL leads to a standby, and nothing was changed. If the standby takes the place of its primary, promote ' +
      'it (pg_ctl promote) and try again. Otherwise set DATABASE_URL to the address of the primary.\n',
  })
  expect(await stateOfStandby()).toEqual(before)
})

test('the standby replaces the former server, and its first writer begins a new epoch', async () => {
  const { url } = stage.service
  const [before] = await stage.sql('select last_value as epoch from epoch')
  await stage.promote()
  await until(async () => (await request(`${url}/readyz`)).status === 200)
  await stage.publish(numbered(1, 90))
  const [after] = await stage.sql('select last_value as epoch from epoch')
  expect(after.epoch).not.toBe(before.epoch)
})

test('the audit continues in the new epoch, and says what became of an earlier anchor', async () => {
  await get(paths[0]!)
  await until(async () => (await lastRow()).number > anchor.number)
  const verified = await cli(
    stage.standby.ownerUrl,
    'audit',
    'verify',
    '--anchor',
    `${anchor.number}:${anchor.hash}`,
  )
  expect(verified).toMatchObject({
    code: 3,
    out: expect.stringMatching(
      /^The audit is whole: .*\nRow \d+ follows row \d+: epoch \d+ began after 1 at /,
    ),
    error: expect.stringContaining(`names row ${anchor.number}, which was lost in the failover of 2`),
  })
})

test('no ETag of the former epoch is answered with 304, and every cursor of that epoch is refused', async () => {
  // Gives the versions of the lost commits to other contents.
  for (let commit = 0; commit < lostCommits; commit++) await change(`other ${commit}`)
  const statuses: number[] = []
  const refusals = new Set<string>()
  for (const { path, etag, cursor } of held) {
    statuses.push((await get(path, { 'If-None-Match': etag })).status)
    if (!path.startsWith('/movements')) continue
    const { status, body } = await get(`${path}&since=${cursor}`)
    refusals.add(`${status} ${body.error.code}`)
    expect((await get(`${path}&after=9000`, { 'If-Match': etag })).status).toBe(412)
  }
  expect(statuses.filter((status) => status !== 200)).toEqual([])
  expect([...refusals]).toEqual(['410 ERR-CURSOR-EXPIRED'])
  const [now] = await readAll()
  expect((await get(now!.path, { 'If-None-Match': now!.etag })).status).toBe(304)
})

test('no sequence repeats a number that it gave out before the failover', async () => {
  expect(lost.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['event_ids', 'ids', 'ledger_versions']),
  )
  for (const { name, last } of lost) {
    const [{ next }] = await stage.sql('select nextval($1::regclass) as next', [name])
    expect(BigInt(next), name).toBeGreaterThan(BigInt(last))
    expect(BigInt(next), name).toBeLessThan(2n ** 53n)
  }
})

test('subscribers get every event, and no two events have the same number', async () => {
  await stage.publish(numbered(3, 100))
  await delivered(19)
  const requests = stage.receiver.requests('/posted')
  const names = requests.flatMap(({ events }) => namesOf(events))
  expect(names).toEqual([...numbered(15), ...newNames])
  const numbers = sequencesOf(requests)
  expect(new Set(numbers).size).toBe(numbers.length)
  const left = await stage.sql(`select data->>'name' as name from events where name = 'document' order by id`)
  expect(names).toEqual(expect.arrayContaining(left.map(({ name }) => name)))
  expect(stage.receiver.forged).toEqual([])
  // The epoch changes where the numbers jump, and nowhere else.
  const epochs = requests.map(({ headers }) => headers['webhook-epoch'])
  const jumps = requests.findIndex(
    ({ headers }) => Number.parseInt(String(headers['webhook-sequence']), 10) > 15,
  )
  expect(new Set(epochs.slice(0, jumps)).size).toBe(1)
  expect(new Set(epochs.slice(jumps)).size).toBe(1)
  expect(epochs[jumps]).not.toBe(epochs[0])
})

test('a reader of events by number learns of the gap that the failover left, and continues after it', async () => {
  // The reader had read all fifteen events, or only the five that are left.
  for (const after of [15, 5]) {
    const { status, headers, body } = await pull(after)
    expect(status).toBe(200)
    expect(namesOf(body.map(({ event }: { event: never }) => event))).toEqual(newNames)
    expect(headers.get('webhook-epoch')).not.toBe(epochOfFormer)
  }
  const { headers, body } = await pull(0)
  expect(headers.get('webhook-epoch')).toBe(epochOfFormer)
  expect(namesOf(body.map(({ event }: { event: never }) => event))).toEqual(numbered(5))
})

test('staff see how many events wait, not counting the gap in their numbers', async () => {
  await stage.publish(numbered(2, 200))
  const shown = await cli(stage.standby.ownerUrl, 'webhook', 'show', String(subscriptions.pulled))
  expect(shown.out).toMatch(/events that wait for a delivery +[12]\d\n/)
})

test('a full export from before the failover still answers its trigger', async () => {
  const { url } = stage.service
  expect((await trigger(url, stage.company)).body.id).toBe(formerExport)
  expect((await ended(url, stage.company, formerExport)).status).toBe('DONE')
})
