/** Deliveries to subscribers of a firm while one of its folders is erased. */
import { beforeAll, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { answerWith } from '../support/receiver.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf, sequencesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forTests(setReceivingStage)
let firm: Record<string, string>
beforeAll(async () => {
  firm = (await stage.issue('firm', { ...folders.first, folderId: null })).headers
})

const { first, sameFirm } = folders
const publish = (names: string[], folderId: string) =>
  stage.publish(names.map((name) => documentEvent(name, folderId)))

test('a waiting delivery is sent again without the events of an erased folder; the other events keep their numbers', async () => {
  stage.receiver.behave('/firm', answerWith(500))
  const { body } = await stage.call(
    'POST',
    '',
    { postUrl: `${stage.receiver.url}/firm`, onEvents: ['document'] },
    firm,
  )
  await stage.publish([
    documentEvent('kept-1', sameFirm.folderId),
    documentEvent('kept-2', sameFirm.folderId),
    documentEvent('secret-3', first.folderId),
    documentEvent('kept-4', sameFirm.folderId),
  ])
  await until(() => stage.receiver.requests('/firm').length > 0)
  await publish(['secret-5'], first.folderId)
  const waits = await stage.sql(
    `select convert_from(body, 'UTF8') as body from grandlivre.deliveries where state = 'pending'`,
  )
  expect(waits[0].body).toContain('secret-3')
  const erased = await cli(stage.ownerUrl, 'folder', 'delete', first.folderId, '--yes')
  expect(erased).toMatchObject({ code: 0 })
  const seen = stage.receiver.requests('/firm').length
  stage.receiver.behave('/firm', answerWith(204))
  await publish(['kept-6'], sameFirm.folderId)
  await stage.sql(`update grandlivre.deliveries set next_attempt_at = now() where state = 'pending'`)
  await stage.call('POST', `/${body.id}/ping`, undefined, firm)
  const received = () => namesOf(stage.receiver.accepted('/firm').filter(({ name }) => name === 'document'))
  await until(() => received().includes('kept-6'))
  expect(received()).toEqual(['kept-1', 'kept-2', 'kept-4', 'kept-6'])
  const later = stage.receiver.requests('/firm').slice(seen)
  expect(later.map((each) => each.body.toString()).join('')).not.toContain('secret')
  expect(sequencesOf(later.filter(({ events }) => events.some(({ name }) => name === 'document')))).toEqual([
    1, 2, 4, 6,
  ])
  const read = await stage.call('GET', `/${body.id}/events`, undefined, firm)
  expect(read.body.map(({ sequence }: { sequence: string }) => sequence)).toEqual(['1', '2', '4', '6'])
  expect(await stage.sql(`select id from grandlivre.events where data::text like '%secret%'`)).toEqual([])
})

/** Hides the folder, like the first step of an erasure. */
const hide = (folderId: string) =>
  stage.sql(`update grandlivre.folders set erased_at = now() where id = ${folderId}`)
const erase = async (folderId: string) => {
  const { code, error } = await cli(stage.ownerUrl, 'folder', 'delete', folderId, '--yes')
  expect(code, error).toBe(0)
}
const stored = (path: string) =>
  stage.sql(
    `select d.state, d.attempts, d.is_replay, d.first_sequence, d.last_sequence, convert_from(d.body, 'UTF8') as body
     from grandlivre.deliveries d join grandlivre.subscriptions s on s.id = d.subscription_id
     where s.post_url like $1 order by d.id`,
    [`%${path}`],
  )
async function bringBack(folderId: string): Promise<void> {
  await stage.sql(`insert into grandlivre.folders (schema_id, id, firm_id, name) values (100, ${folderId}, 110, 'Back')
    on conflict (schema_id, id) do update set erased_at = null`)
}
async function failing(path: string, headers: Record<string, string>): Promise<{ id: number; path: string }> {
  stage.receiver.behave(path, answerWith(500))
  const { body } = await stage.call(
    'POST',
    '',
    { postUrl: stage.receiver.url + path, onEvents: ['document'] },
    headers,
  )
  return { id: body.id, path }
}

test('a body about a hidden folder is not sent, even before the folder is erased', async () => {
  await bringBack(first.folderId)
  const { path } = await failing('/hidden', firm)
  await stage.publish([
    documentEvent('hidden-a', sameFirm.folderId),
    documentEvent('hidden-secret', first.folderId),
  ])
  // Its first attempt has ended: nothing of it is sent later.
  await until(async () => (await stored(path))[0]?.attempts === 1)
  expect((await stored(path))[0].body).toContain('hidden-secret')
  await hide(first.folderId)
  const before = stage.receiver.requests(path).length
  stage.receiver.behave(path, answerWith(204))
  await stage.sql(`update grandlivre.deliveries set next_attempt_at = now() where state = 'pending'`)
  await publish(['hidden-b'], sameFirm.folderId)
  await until(() => namesOf(stage.receiver.accepted(path)).includes('hidden-b'))
  const sent = stage.receiver
    .requests(path)
    .slice(before)
    .map(({ body }) => body.toString())
    .join('')
  expect(sent).toContain('hidden-a')
  expect(sent).not.toContain('secret')
  await erase(first.folderId)
})

test('an erasure keeps failed deliveries of another firm of the tenant', async () => {
  await bringBack(first.folderId)
  const other = (await stage.issue('firm', { ...folders.otherFirm, folderId: null })).headers
  const { path } = await failing('/other-firm', other)
  await publish(['theirs-1'], folders.otherFirm.folderId)
  await publish(['ours'], first.folderId)
  await publish(['theirs-2'], folders.otherFirm.folderId)
  await until(async () => (await stored(path)).length > 0)
  await stage.sql(`update grandlivre.deliveries set state = 'failed', next_attempt_at = null, finished_at = now()
    where subscription_id in (select id from grandlivre.subscriptions where post_url like '%/other-firm')`)
  const before = await stored(path)
  await erase(first.folderId)
  expect((await stored(path)).slice(0, before.length)).toEqual(before)
})

test('a waiting replay is rebuilt without the events of an erased folder', async () => {
  await bringBack(first.folderId)
  const { id, path } = await failing('/replayed', firm)
  stage.receiver.behave(path, answerWith(204))
  await publish(['again-1'], sameFirm.folderId)
  await publish(['again-secret'], first.folderId)
  await publish(['again-3'], sameFirm.folderId)
  await until(() => namesOf(stage.receiver.accepted(path)).includes('again-3'))
  stage.receiver.behave(path, answerWith(500))
  const { body } = await stage.call('GET', `/${id}/events`, undefined, firm)
  const numbers = body.map(({ sequence }: { sequence: string }) => Number(sequence))
  const asked = await stage.call('POST', `/${id}/replay`, { from: numbers.at(-3), to: numbers.at(-1) }, firm)
  expect(asked.status).toBe(202)
  expect((await stored(path)).filter((each) => each.is_replay)[0].body).toContain('again-secret')
  await erase(first.folderId)
  const replays = (await stored(path)).filter((each) => each.is_replay && each.state === 'pending')
  expect(replays.map((each) => each.body).join('')).toMatch(/again-1.*again-3/)
  expect(replays.map((each) => each.body).join('')).not.toContain('secret')
})
