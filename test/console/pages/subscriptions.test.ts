/** What staff see of subscriptions and events in the console, and what they do with them. */
import { expect, test } from 'vitest'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import type { NewEvent } from '../../../src/events/events.sql.ts'
import { publish } from '../../../src/events/publish.ts'
import { readDeliveryHealth } from '../../../src/webhooks/lateness.sql.ts'
import { readSubscription } from '../../../src/webhooks/staff.sql.ts'
import { insertSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { cli } from '../../support/cli.ts'
import { setConsoleStage, signInStaff } from '../../support/console/console-stage.ts'
import { forTests } from '../../support/for-tests.ts'
import { startReceiver } from '../../support/receiver.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const hostile = `<script>alert(1)</script> "quotes" & \u202eRTL`

const stage = forTests(() => setConsoleStage({ webhookAllowInsecure: true }))
const staff = forTests(() => signInStaff(stage))
const receiver = forTests(() => startReceiver(stage.company['X-Third-Party-Secret']!))
const owner = forTests(() =>
  createOwnerPool(stage.database.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
)
const emit = (...events: NewEvent[]) => inTransaction(owner, (client) => publish(client, '100', events))

const subscribe = async (path: string | null) => {
  const { id } = await insertSubscription(stage.staff.client, {
    schemaId: '100',
    level: 'staff',
    firmId: null,
    thirdPartyId: stage.thirdPartyId,
    postUrl: path === null ? null : receiver.url + path,
    onEvents: ['document'],
    folderIds: [],
  })
  return id
}

test('a failed delivery is shown with the answer of the receiver, and staff can send it again', async () => {
  const id = await subscribe('/mended')
  receiver.behave('/mended', (response) => void response.writeHead(500).end(hostile + 'z'.repeat(3000)))
  await emit(documentEvent('one'), documentEvent('two'))
  await until(() => receiver.requests('/mended').length === 1)
  // Ends the delivery as if all retries were used up.
  await until(async () => {
    const failed = await stage.staff.sql(
      `update deliveries set state = 'failed', next_attempt_at = null, finished_at = now()
       where subscription_id = $1 and attempts = 1 and state = 'pending'
         and exists (select from delivery_attempts a where a.delivery_id = deliveries.id)
       returning id`,
      [id],
    )
    return failed.length === 1
  })
  const page = await staff.open(`/subscriptions/${id}`)
  expect(page.text).toMatch(/1 to 2/)
  const delivery = new RegExp(`/console(/subscriptions/${id}/deliveries/\\d+)`).exec(page.text)![1]!
  const { text } = await staff.open(delivery)
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &quot;quotes&quot; &amp;')
  expect(text).not.toContain('<script>alert')
  expect(text).not.toContain('\u202e')
  expect(text).not.toContain('z'.repeat(1025))
  receiver.behave('/mended', (response) => void response.writeHead(204).end())
  const path = `/subscriptions/${id}/replay-failed`
  expect((await staff.submit(path, path)).text).toContain('1 failed delivery is sent again')
  await until(() => receiver.accepted('/mended').length === 2)
  const again = await staff.submit(path, path)
  expect([again.status, again.text.includes('has no failed delivery')]).toEqual([409, true])
})

test('events can be sent again by number, up to the last number that was sent', async () => {
  const id = await subscribe('/numbers')
  await emit(documentEvent('a'), documentEvent('b'), documentEvent('c'))
  await until(() => receiver.accepted('/numbers').length === 3)
  const replay = (from: string, to: string) =>
    staff.submit(`/subscriptions/${id}`, `/subscriptions/${id}/replay`, { from, to })
  await until(async () => (await staff.open(`/subscriptions/${id}`)).text.includes(`/${id}/replay"`))
  expect((await replay('2', '3')).text).toContain('2 events are sent again')
  await until(() => receiver.accepted('/numbers').length === 5)
  for (const [from, to, says] of [
    ['2', '4', 'must be at most 3'],
    ['3', '2', 'to must be at least from'],
    ['1', '1001', 'less than 1000 after from'],
    ['0', '1', 'from must be a whole number'],
    ['x', '1', 'from must be a whole number'],
    ['0x1', '1', 'from must be a whole number'],
    ['1e0', '1', 'from must be a whole number'],
    ['1.0', '1', 'from must be a whole number'],
    ['+1', '1', 'from must be a whole number'],
  ] as const) {
    const refused = await replay(from, to)
    expect([refused.status, refused.text.includes(says)], says).toEqual([400, true])
  }
})

test('a subscription that staff disable keeps new events; enabled again, it resumes where it stopped or skips them', async () => {
  const id = await subscribe('/paused')
  const disable = `/subscriptions/${id}/disable`
  const enable = `/subscriptions/${id}/enable`
  expect((await staff.submit(enable, enable)).status).toBe(409)
  const disabled = await staff.submit(disable, disable, { reason: hostile })
  expect(disabled.text).toContain(`Subscription ${id} is disabled`)
  expect(disabled.text).not.toContain('<script>alert')
  expect((await staff.submit(disable, disable, { reason: 'again' })).status).toBe(409)
  await emit(documentEvent('waits'))
  expect((await staff.open('/subscriptions?state=disabled')).text).toContain(`/console/subscriptions/${id}"`)
  expect((await staff.open('/subscriptions?state=failing')).text).not.toContain(
    `/console/subscriptions/${id}"`,
  )
  const page = await staff.open(`/subscriptions/${id}`)
  expect(page.text).toMatch(/wait for a delivery<\/dt>\s*<dd>1</)
  await staff.submit(enable, enable)
  await until(() => receiver.accepted('/paused').length === 1)
  await staff.submit(disable, disable, { reason: 'again' })
  await emit(documentEvent('skipped'))
  const unclear = await staff.submit(enable, enable, { latest: 'no' })
  expect([unclear.status, unclear.text.includes('latest must be yes')]).toEqual([400, true])
  const skipped = await staff.submit(enable, enable, { latest: 'yes' })
  expect(skipped.text).toContain('can be replayed')
  await emit(documentEvent('next'))
  await until(() => receiver.accepted('/paused').length === 2)
  expect(receiver.accepted('/paused').map(({ data }) => data.name)).toEqual(['waits', 'next'])
})

test('a subscription without a token is shown as suspended, and can be pinged', async () => {
  const id = await subscribe('/suspended')
  await stage.staff.sql(`update subscriptions set level = 'firm', firm_id = 120 where id = $1`, [id])
  expect((await staff.open('/subscriptions?state=suspended')).text).toContain(`/console/subscriptions/${id}"`)
  expect((await staff.open(`/subscriptions/${id}`)).text).toContain('no token that sees it is left')
  const pinged = await staff.submit(`/subscriptions/${id}`, `/subscriptions/${id}/ping`)
  expect([pinged.text.includes('accepted the event'), pinged.text.includes('are not sent: ')]).toEqual([
    true,
    true,
  ])
})

test('the console counts failed deliveries only up to 1,000, the command line all of them', async () => {
  const id = await subscribe(null)
  await stage.staff.sql(
    `insert into deliveries (schema_id, id, subscription_id, first_event, last_event, events, body, state,
       finished_at, attempts)
     select 100, 9000000 + i, $1, 1, 1, 1, '', 'failed', now(), 12 from generate_series(1, 1002) as i`,
    [id],
  )
  expect((await readSubscription(owner, id, 10))!.failed).toBe(11)
  for (const path of ['/subscriptions', `/subscriptions/${id}`])
    expect((await staff.open(path)).text).toContain('>more than 1,000<')
  const shown = await cli(stage.database.ownerUrl, 'webhook', 'show', id)
  expect(shown.out).toMatch(/^failed deliveries +1002$/m)
  const first = await staff.open(`/subscriptions/${id}?state=failed`)
  const deliveryIds = ({ text }: { text: string }) =>
    [...text.matchAll(/deliveries\/(\d+)/g)].map(([, each]) => each)
  expect([deliveryIds(first).length, deliveryIds(await staff.next(first))[0]]).toEqual([25, '9000977'])
})

test('a ping shows the answer of the receiver, and is allowed once a second', async () => {
  const id = await subscribe('/pinged')
  receiver.behave('/pinged', (response) => void response.writeHead(418).end(hostile))
  const ping = () => staff.submit(`/subscriptions/${id}`, `/subscriptions/${id}/ping`)
  const answers = await Promise.all([ping(), ping()])
  const [shown, again] = answers.toSorted((one, other) => one.status - other.status)
  expect(shown!.text).toContain('418')
  expect(shown!.text).toContain('did not accept')
  expect(shown!.text).not.toContain('<script>alert')
  expect(again!.status).toBe(429)
  expect(receiver.requests('/pinged')[0]!.events[0]!.name).toBe('ping')
  const silent = await subscribe(null)
  expect((await staff.open(`/subscriptions/${silent}`)).text).not.toContain('/ping"')
  const fields = await staff.formOf(`/subscriptions/${id}`, `/subscriptions/${id}/ping`)
  expect((await staff.send(`/subscriptions/${silent}/ping`, fields)).status).toBe(409)
})

test('the audit records what staff do to subscriptions, and who did it', async () => {
  const rows = await stage.staff.sql(
    `select distinct act, split_part(staff, ' as ', 1) as who from audit_rows
     where act like 'webhook%' or act like 'event%' order by act`,
  )
  expect(rows).toEqual(
    ['event replay', 'webhook disable', 'webhook enable', 'webhook ping'].map((act) => ({
      act,
      who: 'console alice',
    })),
  )
})

test.each([
  ['/subscriptions/1', 404],
  ['/subscriptions/x', 404],
  ['/subscriptions/9999999999999999', 404],
  ['/subscriptions/1/enable', 404],
  ['/subscriptions/1/deliveries/1', 404],
  ['/subscriptions?state=other', 400],
  ['/subscriptions?partner=%3Cb%3E', 400],
  ['/subscriptions?after=x', 400],
  ['/events?schema=x', 400],
  ['/events?name=other', 400],
  ['/events?after=-1', 400],
  ['/folders/x', 404],
  ['/folders/9999999999999999', 404],
  ['/folders?search=%00%27%25_%5C', 200],
  ['/folders?after=9999999999999999.9999999999999999', 200],
  ['/partners?search=%00%27', 200],
  ['/partners?after=%00', 400],
  ['/events?schema=9999999999999999&folder=9999999999999999', 200],
  ['/folders/999', 404],
  ['/folders?after=1', 400],
])('the path %s answers %d', async (path, status) => {
  expect((await staff.open(path)).status).toBe(status)
})

test('events are filtered by schema, folder and kind, and their data are shown as text', async () => {
  await emit(documentEvent(hostile, '111'), documentEvent('of 112', '112'))
  const all = await staff.open('/events')
  expect(all.text).toContain('of 112')
  expect(all.text).toContain('&lt;script&gt;alert(1)')
  expect(all.text).not.toContain('<script>alert')
  const first = await staff.open('/events?schema=100&folder=111&name=document')
  expect(first.text).toContain('&lt;script&gt;alert(1)')
  expect(first.text).not.toContain('of 112')
  expect((await staff.open('/events?schema=200&folder=111')).text).toContain('No such event is kept')
  expect((await staff.open('/events?name=portfolio')).text).toContain('No such event is kept')
})

test('deliveries that wait for a disconnected partner are not shown as late', async () => {
  const id = await subscribe('/waits')
  receiver.behave('/waits', (response) => void response.writeHead(500).end())
  await emit(documentEvent('old'))
  // The failure is recorded after its answer.
  await until(async () => {
    const failing = await stage.staff.sql(
      'select from subscriptions where id = $1 and failing_since is not null',
      [id],
    )
    return failing.length === 1
  })
  await stage.staff.sql(
    `update deliveries set created_at = now() - interval '1 day' where subscription_id = $1`,
    [id],
  )
  const day = 86_400
  const lateness = async () => (await inTransaction(owner, readDeliveryHealth)).oldestFailingSeconds
  expect(await lateness()).toBeGreaterThanOrEqual(day)
  const lateBy = async () =>
    /<dt>Late by<\/dt>\s*<dd>([^<]*)</.exec((await staff.open(`/subscriptions/${id}`)).text)![1]
  expect(await lateBy()).toBe('1 d 0 h')
  const connect = (at: string) =>
    stage.staff.sql(
      `update third_parties set disconnected_at = ${at}, disconnected_reason = ${at === 'null' ? at : "'late'"}
       where id = $1`,
      [stage.thirdPartyId],
    )
  await connect('now()')
  expect(await lateness()).toBeLessThan(day)
  expect(await lateBy()).toBe('nothing')
  await connect('null')
})
