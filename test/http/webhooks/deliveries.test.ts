/** Owners read their deliveries and have them sent again. */
import { describe, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { answerWith } from '../../support/receiver.ts'
import { setReceivingStage } from '../../support/stages/receiving-stage.ts'
import { codeOf, issuesOf } from '../../support/stages/webhook-routes.ts'
import { documentEvent, namesOf, numbered } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setReceivingStage)

const publish = (names: string[]) => stage.publish(names.map((name) => documentEvent(name, '111')))

const list = async (id: number, query = '') => {
  const { status, body } = await stage.call('GET', `/${id}/deliveries${query}`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}

const replay = (id: number, body: unknown, headers?: Record<string, string>) =>
  stage.call('POST', `/${id}/replay`, body, headers)

/** Publishes one event at a time, so that each is a delivery of its own, and waits until all have arrived. */
async function deliverEach(id: number, path: string, names: string[]): Promise<void> {
  const before = (await list(id, '?state=delivered')).length
  for (const [index, name] of names.entries()) {
    await publish([name])
    await until(async () => (await list(id, '?state=delivered')).length === before + index + 1)
  }
  expect(namesOf(stage.receiver.accepted(path))).toEqual(expect.arrayContaining(names))
}

/** Makes pending deliveries fail, as after the last attempt. */
const failPending = (id: number) =>
  stage.sql(
    `update grandlivre.deliveries set state = 'failed', next_attempt_at = null, finished_at = now()
     where subscription_id = $1 and state = 'pending'`,
    [id],
  )

describe('the deliveries of a subscription', () => {
  test('are listed with their numbers and attempts, oldest first', async () => {
    const { id } = await stage.subscribe('/listed')
    const start = Date.now()
    stage.receiver.behave(
      '/listed',
      (response, _, attempt) =>
        void response.writeHead(attempt === 2 ? 500 : 200).end(attempt === 2 ? 'é'.repeat(600) : 'thanks'),
    )
    await deliverEach(id, '/listed', ['a'])
    await publish(['b', 'c'])
    await until(async () => (await list(id))[1]?.attempts.length === 1)
    const [first, second, ...others] = await list(id)
    expect(others).toEqual([])
    const sent = stage.receiver.requests('/listed')
    expect(first).toEqual({
      id: sent[0]!.headers['webhook-id'],
      sequence: '1-1',
      events: 1,
      state: 'delivered',
      replay: false,
      createdAt: expect.any(Number),
      nextAttemptAt: null,
      finishedAt: expect.any(Number),
      attempts: [
        {
          number: 1,
          at: expect.any(Number),
          status: 200,
          milliseconds: expect.any(Number),
          error: null,
          answer: 'thanks',
        },
      ],
    })
    for (const at of [first.createdAt, first.finishedAt, first.attempts[0].at])
      expect([at >= start, at <= Date.now()]).toEqual([true, true])
    expect(second).toMatchObject({
      id: sent[1]!.headers['webhook-id'],
      sequence: sent[1]!.headers['webhook-sequence'],
      events: 2,
      state: 'pending',
      finishedAt: null,
      // 1,024 bytes are 512 letters of two bytes.
      attempts: [{ number: 1, status: 500, answer: 'é'.repeat(512) }],
    })
    expect(second.sequence).toBe('2-3')
    expect(second.nextAttemptAt).toBeGreaterThan(second.attempts[0].at)
  })

  test('are filtered by state and read page by page', async () => {
    const { id } = await stage.subscribe('/paged')
    await deliverEach(id, '/paged', ['a', 'b', 'c'])
    stage.receiver.behave('/paged', answerWith(500))
    await publish(['d'])
    await until(async () => (await list(id)).length === 4 && (await list(id))[3].attempts.length === 1)
    const all = await list(id)
    const ids = (deliveries: { id: string }[]) => deliveries.map((delivery) => delivery.id)
    expect(ids(await list(id, '?state=delivered'))).toEqual(ids(all).slice(0, 3))
    expect(ids(await list(id, '?state=pending'))).toEqual(ids(all).slice(3))
    await failPending(id)
    expect(ids(await list(id, '?state=failed&limit=1'))).toEqual(ids(all).slice(3))
    const pages: string[] = []
    for (let after = '0'; ; after = pages.at(-1)!) {
      const page = await list(id, `?after=${after}&limit=3`)
      if (page.length === 0) break
      pages.push(...ids(page))
    }
    expect(pages).toEqual(ids(all))
    expect(ids(await list(id, '?newest=true&limit=2'))).toEqual(ids(all).slice(-2))
    expect(ids(await list(id, '?newest=false&limit=2'))).toEqual(ids(all).slice(0, 2))
    for (const [query, parameter] of [
      ['state=lost', 'state'],
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['after=x', 'after'],
      ['status=failed', 'status'],
      ['newest=yes', 'newest'],
    ] as const) {
      const answer = await stage.call('GET', `/${id}/deliveries?${query}`)
      expect([answer.status, Object.keys(issuesOf(answer))]).toEqual([400, [parameter]])
    }
  })

  test('show their newest twenty attempts', async () => {
    const { id } = await stage.subscribe('/many')
    await deliverEach(id, '/many', ['a'])
    await stage.sql(
      `insert into grandlivre.delivery_attempts (schema_id, delivery_id, number, at, latency_ms)
       select schema_id, id, n, now(), 1 from grandlivre.deliveries, generate_series(2, 30) as n
       where subscription_id = $1`,
      [id],
    )
    const [{ attempts }] = await list(id)
    const expected = Array.from({ length: 20 }, (_, index) => 11 + index)
    expect(attempts.map(({ number }: { number: number }) => number)).toEqual(expected)
  })

  test('are visible to its owner alone', async () => {
    const { id } = await stage.subscribe('/mine')
    await deliverEach(id, '/mine', ['a'])
    const answers = [
      await stage.call('GET', `/${id}/deliveries`, undefined, stage.stranger),
      await replay(id, { from: 1, to: 1 }, stage.stranger),
      await replay(id, { failed: true }, stage.stranger),
    ]
    for (const answer of answers) expect(codeOf(answer)).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
    expect(stage.receiver.requests('/mine')).toHaveLength(1)
  })
})

describe('a replay', () => {
  test('of numbers is a new delivery of these events, with their ids and numbers', async () => {
    const { id } = await stage.subscribe('/replayed')
    await deliverEach(id, '/replayed', ['a', 'b', 'c', 'd'])
    const before = [...stage.receiver.requests('/replayed')]
    const answer = await replay(id, { from: 2, to: '3' })
    expect([answer.status, answer.body]).toEqual([202, { deliveries: 1 }])
    await until(() => stage.receiver.requests('/replayed').length === 5)
    const last = stage.receiver.requests('/replayed')[4]!
    expect(last.headers['webhook-sequence']).toBe('2-3')
    expect(last.events).toEqual(before.slice(1, 3).flatMap(({ events }) => events))
    expect(before.map(({ headers }) => headers['webhook-id'])).not.toContain(last.headers['webhook-id'])
    await until(async () => (await list(id)).at(-1).state === 'delivered')
    expect((await list(id)).at(-1)).toMatchObject({
      id: last.headers['webhook-id'],
      sequence: '2-3',
      events: 2,
      replay: true,
    })
    // The next event follows as if there had been no replay.
    await publish(['e'])
    await until(() => stage.receiver.requests('/replayed').length === 6)
    expect(stage.receiver.requests('/replayed')[5]!.headers['webhook-sequence']).toBe('5-5')
    expect(stage.receiver.forged).toEqual([])
  })

  test('of more than a hundred numbers is split into several deliveries', async () => {
    const { id } = await stage.subscribe('/long')
    await publish(numbered(250))
    await until(() => stage.receiver.accepted('/long').length === 250)
    await until(async () => (await list(id, '?state=delivered')).length === 3)
    const answer = await replay(id, { from: 20, to: 249 })
    expect([answer.status, answer.body]).toEqual([202, { deliveries: 3 }])
    await until(() => stage.receiver.accepted('/long').length === 480)
    const replayed = stage.receiver.requests('/long').slice(3)
    expect(replayed.map(({ headers }) => headers['webhook-sequence'])).toEqual([
      '20-119',
      '120-219',
      '220-249',
    ])
    expect(namesOf(replayed.flatMap(({ events }) => events))).toEqual(numbered(230, 19))
  })

  test('of failed deliveries sends them again with their ids; later deliveries did not wait for them', async () => {
    const { id } = await stage.subscribe('/failed')
    stage.receiver.behave('/failed', answerWith(500))
    await publish(['a'])
    await until(async () => (await list(id))[0]?.attempts.length === 1)
    await failPending(id)
    stage.receiver.behave('/failed', answerWith(204))
    await deliverEach(id, '/failed', ['b'])
    expect(await replay(id, { failed: true })).toMatchObject({ status: 202, body: { deliveries: 1 } })
    await until(async () => (await list(id, '?state=delivered')).length === 2)
    const [first, , again] = stage.receiver.requests('/failed')
    expect(again!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
    expect(again!.body).toEqual(first!.body)
    expect(await replay(id, { failed: true })).toMatchObject({ status: 202, body: { deliveries: 0 } })
  })

  test('is refused for numbers that were not sent or are no longer kept, and for any other input', async () => {
    const { id } = await stage.subscribe('/refused')
    expect(issuesOf(await replay(id, { from: 1, to: 1 }))).toEqual({
      to: 'is not the number of a sent event: no event was sent yet',
    })
    await deliverEach(id, '/refused', ['a', 'b'])
    const shape = 'must be {"from":1042,"to":1061} with numbers of events, or {"failed":true}'
    for (const [body, issues] of [
      [{ from: 1, to: 3 }, { to: 'must be at most 2, the last number that was sent' }],
      [{ from: 2, to: 1 }, { to: 'must be at least `from`' }],
      [
        { from: 1, to: 1001 },
        { to: 'must be less than 1000 after `from`: replay the rest in further requests' },
      ],
      [{ from: 0, to: 1 }, { from: 'must be at least 1' }],
      [{ from: 'x', to: 2 }, { from: 'must be the number of an event: 1 to 16 digits' }],
      [{}, { body: shape }],
      [[], { body: shape }],
      [null, { body: shape }],
      [{ from: 1 }, { body: shape }],
      [{ from: 1.5, to: 2 }, { body: shape }],
      [{ from: -1, to: 2 }, { from: 'must be at least 1' }],
      [{ failed: false }, { body: shape }],
      [{ failed: true, from: 1, to: 2 }, { body: shape }],
    ] as const) {
      const answer = await replay(id, body)
      expect([answer.status, issuesOf(answer)]).toEqual([400, issues])
    }
    await stage.sql(
      `delete from grandlivre.events where id <= (select max(id) from grandlivre.events where data ->> 'id' = 'a')`,
    )
    const expired = await replay(id, { from: 1, to: 2 })
    expect(codeOf(expired)).toEqual([410, 'ERR-EVENTS-EXPIRED'])
    expect(expired.body.error.details.oldest).toBe('2')
    expect(await list(id)).toHaveLength(2)
    expect((await replay(id, { from: 2, to: 2 })).status).toBe(202)
  })

  test('is refused while the subscription gets no deliveries, or while many replays wait', async () => {
    const { id } = await stage.subscribe('/stopped')
    await deliverEach(id, '/stopped', ['a'])
    await stage.sql(
      `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'test' where id = $1`,
      [id],
    )
    for (const asked of [{ from: 1, to: 1 }, { failed: true }])
      expect(codeOf(await replay(id, asked))).toEqual([409, 'ERR-WEBHOOK-DISABLED'])
    await stage.call('PATCH', `/${id}`, [])
    await stage.sql(
      `insert into grandlivre.deliveries (schema_id, subscription_id, first_event, last_event, events, body, is_replay,
         next_attempt_at)
       select 100, $1, 1, 1, 1, '[]', true, now() + interval '1 day' from generate_series(1, 100)`,
      [id],
    )
    const refused = await replay(id, { from: 1, to: 1 })
    expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual([
      [429, 'ERR-TOO-MANY-REQUEST'],
      '60',
    ])
    await stage.sql('update grandlivre.subscriptions set post_url = null where id = $1', [id])
    for (const asked of [{ from: 1, to: 1 }, { failed: true }])
      expect(codeOf(await replay(id, asked))).toEqual([409, 'ERR-WEBHOOK-PULL-ONLY'])
    expect(stage.receiver.requests('/stopped')).toHaveLength(1)
  })
})
