import { beforeEach, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import { sweepEvents } from '../../../src/webhooks/retention.sql.ts'
import { forTests } from '../../support/for-tests.ts'
import { connect } from '../../support/servers/database.ts'
import { type Answer, request, startTestService } from '../../support/service.ts'
import { codeOf, issuesOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'
import { documentEvent, documents, numbered } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

/** One rate window for the whole file, because tests count the requests in it. */
const settings = { rateLimit: { requests: 10_000, windowMs: 3_600_000, concurrent: 10 } }
const routes = setWebhookRoutes(settings)
const owner = forTests(() => connect(routes.database.ownerUrl))

beforeEach(() => owner.query('delete from events'))

async function add(names: string[], schemaId = '100'): Promise<void> {
  await owner.query('begin')
  await publish(owner, schemaId, documents(names))
  await owner.query('commit')
}

const read = (id: number, query = '', headers = routes.firm) =>
  request(routes.webhook(`/${id}/events${query}`), headers)

/** The numbers and names of the events in an answer, and the last number of the subscription. */
function shown({ status, headers, body }: Answer): unknown[] {
  if (status !== 200) return codeOf({ status, headers, body })
  const events = body.map(
    ({ sequence, event }: { sequence: string; event: { data: { name: string } } }) =>
      `${sequence} ${event.data.name}`,
  )
  return [events, headers.get('x-latest-sequence')]
}

describe('the events of a subscription are read', () => {
  test('from a given number, up to the requested count, with the last number', async () => {
    const id = await routes.make(routes.firm)
    expect(shown(await read(id))).toEqual([[], '0'])
    await add(['a', 'b', 'c'])
    expect(shown(await read(id))).toEqual([['1 a', '2 b', '3 c'], '3'])
    expect(shown(await read(id, '?after=1&limit=1'))).toEqual([['2 b'], '3'])
    expect(shown(await read(id, '?after=3'))).toEqual([[], '3'])
    expect(shown(await read(id, '?after=9007199254740991'))).toEqual([[], '3'])
    expect(shown(await read(id, '?after=&limit=&wait='))).toEqual([['1 a', '2 b', '3 c'], '3'])
    const [{ event }] = (await read(id, '?limit=1')).body
    expect(event).toEqual({
      name: 'document',
      operation: 'CREATE',
      scope: { schemaId: 100 },
      data: { id: 'a', kind: 'DB', name: 'a' },
      webhookId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      createdAt: expect.any(Number),
    })
  })

  test('a hundred at a time, or a thousand', async () => {
    const id = await routes.make(routes.firm)
    await add(numbered(1001))
    const lengths = await Promise.all(['', '?limit=1000', '?after=1000'].map((query) => read(id, query)))
    expect(lengths.map(({ body }) => body.length)).toEqual([100, 1000, 1])
    expect(lengths[1]!.headers.get('x-latest-sequence')).toBe('1001')
  })

  test('in parts, if they are large', async () => {
    const id = await routes.make(routes.firm)
    await owner.query(
      `insert into events (schema_id, name, operation, scope, data)
       select 100, 'document', 'CREATE', '{}', json_build_object('name', n, 'text', repeat('x', 1500000))
       from generate_series(1, 3) as n`,
    )
    expect(shown(await read(id))).toEqual([['1 1', '2 2'], '3'])
    expect(shown(await read(id, '?after=2'))).toEqual([['3 3'], '3'])
  })

  test('while it is disabled, and if it has no address', async () => {
    const id = await routes.make(routes.firm, { postUrl: null })
    const disabled = await routes.make(routes.firm)
    await owner.query(
      `update subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'x' where id = $1`,
      [disabled],
    )
    await add(['a', 'b'])
    for (const each of [id, disabled]) expect(shown(await read(each))).toEqual([['1 a', '2 b'], '2'])
    expect((await request(routes.webhook(`/${id}`), routes.firm)).body.postUrl).toBe(null)
    const { body } = await routes.patch(routes.firm, id, [
      { op: 'replace', path: '/postUrl', value: postUrl },
    ])
    expect(body.postUrl).toBe(postUrl)
    const back = await routes.patch(routes.firm, id, [{ op: 'replace', path: '/postUrl', value: null }])
    expect(back.body.postUrl).toBe(null)
    const rest = await routes.post(routes.firm, { onEvents: ['document'] })
    expect(issuesOf(rest)).toEqual({
      postUrl: 'is required; null: nothing is posted, and events are read by number',
    })
  })

  test('as selected by the kinds and folders at the time of their commit', async () => {
    const { firm, make, patch } = routes
    const id = await make(firm)
    await add(['a'])
    await patch(firm, id, [{ op: 'replace', path: '/accountingFolderId', value: ['111'] }])
    await owner.query('begin')
    await publish(owner, '100', [documentEvent('in 111', '111'), documentEvent('in 112', '112')])
    await owner.query('commit')
    await add(['of no folder'])
    expect(shown(await read(id))).toEqual([['1 a', '2 in 111'], '2'])
  })

  test('including events that deliveries skipped, which keep their numbers', async () => {
    const { firm, make, patch, inDatabase } = routes
    const id = await make(firm, { postUrl: null })
    await add(['a', 'b'])
    expect((await patch(firm, id, [{ op: 'add', path: '/position', value: 'latest' }])).status).toBe(200)
    expect(await inDatabase(id)).toMatchObject({ numbered: '2', collected: '2' })
    await add(['c'])
    expect(shown(await read(id))).toEqual([['1 a', '2 b', '3 c'], '3'])
    for (const [step, parameter] of [
      [{ op: 'replace', path: '/position', value: '2' }, '0.value'],
      [{ op: 'test', path: '/position', value: 'latest' }, '0.path'],
      [{ op: 'remove', path: '/position' }, '0.path'],
      [{ op: 'copy', from: '/postUrl', path: '/position' }, '0.path'],
    ] as const)
      expect(Object.keys(issuesOf(await patch(firm, id, [step])))).toEqual([parameter])
  })

  test('until they are deleted: then 410 names the first number that is left', async () => {
    const id = await routes.make(routes.firm, { postUrl: null })
    await add(['a', 'b', 'c'])
    await owner.query(`update events set created_at = now() - interval '31 days'`)
    await add(['d'])
    // Nobody has read these events, so they get their numbers before they are deleted.
    const pool = createPool(routes.database.serviceUrl, { max: 1, applicationName: 'events test' })
    expect((await sweepEvents(pool, Date.now())).events).toBe(3)
    await pool.end()
    const { status, body } = await read(id)
    expect([status, body.error.code, body.error.details.oldest]).toEqual([410, 'ERR-EVENTS-EXPIRED', '4'])
    expect(codeOf(await read(id, '?after=2&limit=1'))).toEqual([410, 'ERR-EVENTS-EXPIRED'])
    expect(shown(await read(id, '?after=3'))).toEqual([['4 d'], '4'])
  })

  test('by their owner alone', async () => {
    const { firm, otherFirm, otherTenant, stranger, company, make } = routes
    const id = await make(firm)
    for (const headers of [otherFirm, otherTenant, stranger, company])
      expect(codeOf(await read(id, '', headers))).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
    expect(codeOf(await request(routes.webhook('/x/events'), firm))).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
  })

  test('with parameters that are within their bounds', async () => {
    const id = await routes.make(routes.firm)
    expect(issuesOf(await read(id, '?after=-1&limit=0&wait=31&version=1.0.0'))).toEqual({
      after: 'must be a whole number from 0 to 9007199254740991',
      limit: 'must be a whole number from 1 to 1000',
      wait: 'must be a whole number from 0 to 30',
      version: 'is not a parameter of this route',
    })
    expect(issuesOf(await read(id, '?after=9007199254740992&limit=1001&wait=1.5'))).toMatchObject({
      after: expect.any(String),
      limit: expect.any(String),
      wait: expect.any(String),
    })
  })
})

describe('a reader that waits', () => {
  /** The number of requests with tokens so far. */
  const entered = async (): Promise<number> =>
    (await owner.query('select sum(requests)::int as sum from rate_windows')).rows[0].sum

  test('is answered when an event of its subscription is committed', async () => {
    const id = await routes.make(routes.firm)
    const before = await entered()
    const answers = Array.from({ length: 20 }, () => read(id, '?wait=30'))
    await until(async () => (await entered()) === before + 20)
    await add(['of another tenant'], '200')
    // An event of the schema, but of another kind, wakes the readers. They find nothing and wait again.
    await owner.query('begin')
    await publish(owner, '100', [{ name: 'portfolio', operation: 'CREATE', data: { id: '1' } }])
    await owner.query('commit')
    await add(['a'])
    for (const answer of await Promise.all(answers)) expect(shown(answer)).toEqual([['1 a'], '1'])
  })

  test('is answered empty when its time is over', async () => {
    const id = await routes.make(routes.firm)
    expect(shown(await read(id, '?wait=1'))).toEqual([[], '0'])
  })

  test('is answered empty when the service stops', async () => {
    const service = await startTestService(routes.database, settings)
    const id = await routes.make(routes.firm)
    const before = await entered()
    const answer = request(`${service.url}/api/v1/webhook/${id}/events?wait=30`, routes.firm)
    await until(async () => (await entered()) === before + 1)
    await service.stop()
    expect(shown(await answer)).toEqual([[], '0'])
  })
})
