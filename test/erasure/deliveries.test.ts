/** What subscribers of a firm get while one of its folders is erased. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { answerWith } from '../support/receiver.ts'
import { type ReceivingStage, setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf, sequencesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

let stage: ReceivingStage
let firm: Record<string, string>

beforeAll(async () => {
  stage = await setReceivingStage()
  firm = (await stage.issue('firm', { ...folders.first, folderId: null })).headers
})
afterAll(() => stage?.close())

const { first, sameFirm } = folders
const publish = (names: string[], folderId: string) =>
  stage.publish(names.map((name) => documentEvent(name, folderId)))

test('a delivery that waits goes out again without the events of an erased folder, which keep their numbers', async () => {
  stage.receiver.behave('/firm', answerWith(500))
  const { body } = await stage.call(
    'POST',
    '',
    { postUrl: `${stage.receiver.url}/firm`, onEvents: ['document'] },
    firm,
  )
  await publish(['kept-1', 'kept-2'], sameFirm.folderId)
  await publish(['secret-3'], first.folderId)
  await publish(['kept-4'], sameFirm.folderId)
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
