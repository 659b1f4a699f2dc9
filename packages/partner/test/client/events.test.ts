import pg from 'pg'
import { beforeEach, expect, test } from 'vitest'
import { publish } from '../../../../src/events/publish.ts'
import { forEachTest, forTests } from '../../../../test/support/for-tests.ts'
import { setWebhookRoutes } from '../../../../test/support/stages/webhook-routes.ts'
import { documents, numbered } from '../../../../test/support/stages/webhooks.ts'
import { until } from '../../../../test/support/until.ts'
import type { EventGap, EventOptions, EventPage, NumberedEvent } from '../../src/client/grandlivre.ts'
import { startFaultyProxy, untouched } from '../support/client/faulty-proxy.ts'
import { libraryOf } from '../support/client/library.ts'

const routes = setWebhookRoutes()
const owner = forTests(async () => {
  const client = new pg.Client({
    connectionString: routes.database.ownerUrl,
    options: '-c search_path=grandlivre',
  })
  await client.connect()
  return client
})
const proxy = forTests(() => startFaultyProxy(routes.service.url))
untouched(() => proxy)
const ledger = forEachTest(() => libraryOf(routes.firm, proxy.url))
beforeEach(() => owner.query('delete from events'))

/** @returns the id of a new subscription, for which these events were published */
async function subscriptionWith(names: string[]): Promise<number> {
  const id = await routes.make(routes.firm, { postUrl: null })
  if (names.length > 0) await add(names)
  return id
}

async function add(names: string[]): Promise<void> {
  await owner.query('begin')
  await publish(owner, '100', documents(names))
  await owner.query('commit')
}

const nameOf = ({ sequence, event }: NumberedEvent) => `${sequence} ${(event.data as { name: string }).name}`

/** Reads this number of events. */
async function take(events: AsyncIterable<NumberedEvent>, count: number): Promise<string[]> {
  const taken: string[] = []
  if (count === 0) return taken
  for await (const event of events) if (taken.push(nameOf(event)) === count) break
  return taken
}

test('events can be read from a given number on, in pages and without gaps', async () => {
  const id = await subscriptionWith(numbered(250))
  const all = await take(ledger.events(id, { after: 0 }), 250)
  expect(all.map((name) => Number(name.split(' ')[0]))).toEqual(Array.from({ length: 250 }, (_, i) => i + 1))
  const pages: EventPage[] = []
  for await (const page of ledger.eventPages(id, { after: 100, limit: 100 }))
    if (pages.push(page) === 2) break
  expect(pages.map(({ events, latest }) => [events[0]!.sequence, events.length, latest])).toEqual([
    [101, 100, 250],
    [201, 50, 250],
  ])
})

test('a waiting reader gets a new event, and stopping it is no error', async () => {
  const id = await routes.make(routes.firm, { postUrl: null })
  const controller = new AbortController()
  const { signal } = controller
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of ledger.events(id, { after: 0, signal })) seen.push(nameOf(event))
    return 'ended'
  })()
  await until(() => proxy.asked.length === 1)
  await add(['a'])
  await until(() => seen.length === 1 && proxy.asked.length === 2)
  controller.abort()
  expect([await reading, seen]).toEqual(['ended', ['1 a']])
})

test('refused and cut answers are requested again, without a repeated or missing event', async () => {
  const id = await subscriptionWith(numbered(60))
  proxy.fault = (_, nth) =>
    [undefined, { kind: 'refuse' as const }, { kind: 'cut' as const, afterBytes: 700 }][nth % 3]
  const all = await take(ledger.events(id, { after: 0, limit: 20 }), 60)
  expect(all.map((name) => Number(name.split(' ')[0]))).toEqual(Array.from({ length: 60 }, (_, i) => i + 1))
})

test('reading from a number that the subscription has not reached is refused', async () => {
  const id = await subscriptionWith(['a', 'b'])
  await expect(take(ledger.events(id, { after: 3, wait: 0 }), 1)).rejects.toMatchObject({
    code: 'INVALID-OPTION',
    message: expect.stringContaining('after is 3'),
  })
})

test('a gap is an error that names the gap, or is reported to a callback', async () => {
  const id = await subscriptionWith(['a', 'b', 'c'])
  const pages = await take(ledger.events(id, { after: 0 }), 3)
  expect(pages).toHaveLength(3)
  // The answer of a service that has lost two events.
  const body = JSON.stringify(
    [1, 4, 4, 5].map((number) => ({ sequence: String(number), event: { data: { name: 'x' } } })),
  )
  const headers = { 'Content-Type': 'application/json', 'X-Latest-Sequence': '5' }
  proxy.fault = () => ({ kind: 'answer', status: 200, headers, body })
  await expect(take(ledger.events(id, { after: 0 }), 3)).rejects.toMatchObject({
    code: 'EVENTS-MISSING',
    message: 'Events 2 to 3 are missing',
    details: { from: 2, to: 3 },
  })
  const gaps: unknown[] = []
  const onGap = (gap: { from: number; to: number }) => void gaps.push(gap)
  expect(await take(ledger.events(id, { after: 0, onGap }), 3)).toEqual(['1 x', '4 x', '5 x'])
  expect(gaps).toEqual([{ from: 2, to: 3, epoch: undefined }])
})

test('the error for events that are no longer kept contains the oldest kept number', async () => {
  const id = await subscriptionWith(numbered(5))
  await take(ledger.events(id, { after: 0 }), 5)
  await owner.query(
    `delete from events where data ->> 'name' in (select data ->> 'name' from events order by id limit 2)`,
  )
  await expect(take(ledger.events(id, { after: 0 }), 1)).rejects.toMatchObject({
    code: 'ERR-EVENTS-EXPIRED',
    status: 410,
    details: { oldest: '3' },
  })
  expect(await take(ledger.events(id, { after: 2 }), 3)).toHaveLength(3)
  await expect(take(ledger.events(id, { after: -1 }), 1)).rejects.toMatchObject({ code: 'INVALID-OPTION' })
})

test('a jump into another epoch is reported, and every reader goes on, even after reading lost events', async () => {
  const id = await subscriptionWith(['a', 'b'])
  const gaps: unknown[] = []
  const onGap = (gap: EventGap) => void gaps.push(gap)
  const first = async (options: EventOptions): Promise<EventPage> => {
    for await (const page of ledger.eventPages(id, options)) return page
    throw new Error('it ended')
  }
  const { epoch: former } = await first({ after: 0 })
  // As if the database had the name of a former primary, which had given out the numbers 3 and 4.
  await owner.query(`select setval('server_name', 1)`)
  await add(['new'])
  const page = await first({ after: 4, epoch: former, onGap })
  const [{ sequence }] = page.events as [NumberedEvent]
  expect([page.epoch === former, sequence > 4e9]).toEqual([false, true])
  expect(gaps).toEqual([{ from: 5, to: sequence - 1, epoch: page.epoch }])
  expect(await take(ledger.events(id, { after: 0 }), 3)).toEqual(['1 a', '2 b', `${sequence} new`])
  // In the next epoch nothing is committed yet, so the reader waits.
  await owner.query(`select setval('server_name', 1)`)
  const waiting = first({ after: sequence + 1, epoch: page.epoch })
  proxy.asked = []
  await until(() => proxy.asked.length === 1)
  await add(['newer'])
  expect((await waiting).events.map(({ event }) => (event.data as { name: string }).name)).toEqual(['newer'])
  await expect(first({ after: sequence * 2, wait: 0 })).rejects.toMatchObject({ code: 'INVALID-OPTION' })
})
