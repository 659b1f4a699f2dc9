/** Subscriptions whose tokens are revoked (docs/spec/webhooks.md#suspended-subscriptions). */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readSubscription } from '../../src/webhooks/staff.sql.ts'
import { insertSubscription } from '../../src/webhooks/subscriptions.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { answerWith } from '../support/receiver.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf, sequencesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forTests(setReceivingStage)
afterEach(async () => {
  await stage.sql('delete from grandlivre.subscriptions')
  await stage.sql('delete from grandlivre.tokens where folder_id is distinct from 111')
})

let path: string
beforeEach(({ task }) => {
  path = `/${task.id}`
})

const folder = folders.sameFirm
/** A subscription of a new company token of folder 112. The token of folder 111 stays. */
async function subscribeByToken(level: 'api' | 'firm' = 'api') {
  const token = await stage.issue(level, folder)
  const fields = { postUrl: stage.receiver.url + path, onEvents: ['document'] }
  const { status, body } = await stage.call('POST', '', fields, token.headers)
  expect(status).toBe(201)
  return { id: body.id as number, token }
}

/** A subscription that staff created for the whole schema, of the same third party. @returns its path */
async function subscribeByStaff(): Promise<string> {
  const [{ id: thirdPartyId }] = await stage.sql(`select id from grandlivre.third_parties where code = 'ONE'`)
  const postUrl = `${stage.receiver.url}${path}-staff`
  const fields = { schemaId: '100', level: 'staff', firmId: null, thirdPartyId, postUrl } as const
  await stage.asOwner((client) =>
    insertSubscription(client, { ...fields, onEvents: ['document'], folderIds: [] }),
  )
  return `${path}-staff`
}

const publish = (...names: string[]) => stage.publish(names.map((name) => documentEvent(name, '112')))
const received = (at = path) => namesOf(stage.receiver.accepted(at))
const attempts = () => stage.receiver.requests(path).length
const stateOf = async (id: number) => {
  const found = await stage.asOwner((client) => readSubscription(client, String(id)))
  return found!.isSuspended ? 'suspended' : 'open'
}
/** Makes all pending retries due. */
const makeDue = () =>
  stage.sql(`update grandlivre.deliveries set next_attempt_at = now() where state = 'pending'`)

/** Waits for three searches. Each delivers an event to the subscription of staff, and would find everything due. */
async function searchRepeatedly(staffs: string) {
  for (const name of ['x', 'y', 'z']) {
    await publish(name)
    await until(() => received(staffs).at(-1) === name)
  }
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
const expire = (tokenId: string) =>
  stage.sql(`update grandlivre.tokens set expires_at = now() where id = ${tokenId}`)

test.each([
  ['api', 'revocation', (tokenId: string) => stage.revoke(tokenId)],
  ['firm', 'revocation', (tokenId: string) => stage.revoke(tokenId)],
  ['api', 'expiry', expire],
  ['firm', 'expiry', expire],
] as const)(
  'a subscription whose only token (%s) ended by %s gets nothing; after a new token it gets all events in order',
  async (level, _, end) => {
    const { id, token } = await subscribeByToken(level)
    const staffs = await subscribeByStaff()
    await publish('a')
    await until(() => received().at(-1) === 'a')
    const answered = Promise.withResolvers<void>()
    stage.receiver.behave(path, (response) => {
      void answered.promise.then(() => response.writeHead(204).end())
    })
    await publish('b')
    await until(() => attempts() === 2)
    await publish('c')
    await end(token.id)
    // The batch in flight ends, and no other follows.
    answered.resolve()
    await until(() => received().at(-1) === 'b')
    await searchRepeatedly(staffs)
    expect([attempts(), await stateOf(id)]).toEqual([2, 'suspended'])
    await stage.issue(level, folder)
    await until(() => received().at(-1) === 'z')
    expect(received()).toEqual(['a', 'b', 'c', 'x', 'y', 'z'])
    expect(sequencesOf(stage.receiver.requests(path))).toEqual([1, 2, 3, 4, 5, 6])
    expect(received(staffs)).toEqual(received())
    expect(await stateOf(id)).toBe('open')
  },
)

test('a waiting delivery is not repeated while its subscription is suspended, but at once afterwards', async () => {
  const { token } = await subscribeByToken()
  const staffs = await subscribeByStaff()
  stage.receiver.behave(path, answerWith(500))
  await publish('a')
  await until(() => attempts() === 1)
  await stage.revoke(token.id)
  await makeDue()
  await searchRepeatedly(staffs)
  expect(attempts()).toBe(1)
  stage.receiver.behave(path, answerWith(204))
  await stage.sql(
    `update grandlivre.deliveries set next_attempt_at = now() + interval '1 day' where state = 'pending'`,
  )
  await stage.issue('api', folder)
  await until(() => received().at(-1) === 'z')
  expect(received()).toEqual(['a', 'x', 'y', 'z'])
})

test('one of several tokens keeps a subscription active; a token for another folder, level or partner does not', async () => {
  const { id, token } = await subscribeByToken()
  const second = await stage.issue('api', folder)
  await stage.revoke(token.id)
  await publish('a')
  await until(() => received().at(-1) === 'a')
  expect(await stateOf(id)).toBe('open')
  await stage.revoke(second.id)
  expect(await stateOf(id)).toBe('suspended')
  await stage.issue('api', folders.first)
  await stage.issue('firm', folders.sameFirm)
  await stage.sql(`insert into grandlivre.tokens (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint)
    select 100, 990000, id, 'api', 110, 112, sha256('two'), 'hint' from grandlivre.third_parties where code = 'TWO'`)
  await stage.issue('api', folder, { groups: ['movements', 'employees'] })
  await stage.issue('api', folder, { expiresAt: new Date(0) })
  expect(await stateOf(id)).toBe('suspended')
  await stage.issue('api', folder, { groups: ['movements', 'webhooks'], expiresAt: inDays(1) })
  expect(await stateOf(id)).toBe('open')
})

test.each([
  [
    'a revocation',
    (id: string, at: string) => stage.sql(`update grandlivre.tokens set revoked_at = ${at} where id = ${id}`),
  ],
  [
    'an expiry, and a revocation after it',
    (id: string, at: string) =>
      stage.sql(`update grandlivre.tokens set expires_at = ${at}, revoked_at = now() where id = ${id}`),
  ],
])('the five days of a failing receiver do not include a suspension that began with %s', async (_, end) => {
  const { id, token } = await subscribeByToken()
  stage.receiver.behave(path, answerWith(500))
  await publish('a')
  await until(() => attempts() === 1)
  await stage.revoke(token.id)
  const ago = (days: number) => `now() - interval '${days} days'`
  await stage.sql(`update grandlivre.subscriptions set failing_since = ${ago(14)} where id = ${id}`)
  await end(token.id, ago(10))
  // Neither of the first two tokens opens the subscription. The third ends the suspension.
  await stage.issue('api', folder, { expiresAt: inDays(-11) })
  await stage.issue('api', folder, { groups: ['movements'], expiresAt: inDays(1) })
  await stage.issue('api', folder)
  await until(() => attempts() === 2)
  await until(async () => (await stage.sql('select max(attempts) from grandlivre.deliveries'))[0].max === 2)
  const standing = `select enabled, round(extract(epoch from now() - failing_since) / 86400)::int as days,
    (select attempts_before_replay from grandlivre.deliveries where subscription_id = s.id) as before
    from grandlivre.subscriptions s where id = ${id}`
  expect(await stage.sql(standing)).toEqual([{ enabled: true, days: 4, before: 0 }])
  // Another token ends no suspension.
  await stage.sql(`update grandlivre.tokens set revoked_at = ${ago(3)} where id = ${token.id}`)
  await stage.issue('api', folder)
  expect(await stage.sql(standing)).toMatchObject([{ days: 4 }])
})
