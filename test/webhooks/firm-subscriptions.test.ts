/** What subscriptions of a firm's token hear where several firms share a schema (docs/spec/webhooks.md#subscriptions). */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { NewEvent } from '../../src/events/events.sql.ts'
import { numberInParts } from '../../src/webhooks/sequence/numbering.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { answerWith } from '../support/receiver.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, sequencesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forTests(setReceivingStage)
/** Credentials of firm tokens of one third party: of the firm with folders 111 and 112, and of that with 121. */
let firm: Record<string, string>
let other: Record<string, string>

beforeAll(async () => {
  firm = (await stage.issue('firm', folders.first)).headers
  other = (await stage.issue('firm', folders.otherFirm)).headers
  await stage.sql(`update grandlivre.firms set siret = id || '000222' where schema_id = 100`)
  await stage.sql(`update grandlivre.folders set reference = 'ref-of-' || id, siret = id || '00033300044'`)
})
afterEach(async () => {
  await stage.sql('delete from grandlivre.subscriptions')
  await move('111', '110')
})

let path: string
beforeEach(({ task }) => {
  path = `/${task.id}`
})

const kinds = ['document', 'accountingFolder', 'ledger', 'portfolio']

async function subscribe(
  headers: Record<string, string>,
  rest: string,
  fields: object = {},
): Promise<number> {
  const postUrl = stage.receiver.url + path + rest
  const { status, body } = await stage.call('POST', '', { postUrl, onEvents: kinds, ...fields }, headers)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}

const move = (folderId: string, firmId: string) =>
  stage.sql('update grandlivre.folders set firm_id = $2 where id = $1 and firm_id <> $2', [folderId, firmId])

const ofFirm = (name: string, firmId: string): NewEvent => ({ ...documentEvent(name), firmId })
const labels = (events: { name: string; data: { name?: string }; scope: Record<string, unknown> }[]) =>
  events.map(({ name, data, scope }) => data.name ?? `${name} ${scope['accountingFolderId']}`)
const heard = (rest: string) => labels(stage.receiver.accepted(path + rest))

async function eventsOf(id: number, headers: Record<string, string>) {
  const { status, body } = await stage.call('GET', `/${id}/events?limit=1000`, undefined, headers)
  expect(status).toBe(200)
  const numbers = body.map(({ sequence }: { sequence: string }) => Number(sequence))
  return { numbers, events: body.map(({ event }: { event: object }) => event), text: JSON.stringify(body) }
}

/** What only the other firm may know: ids, references and SIRETs of it and of its folder. */
const secrets = ['"firmId":120', '120000222', ':121', 'ref-of-121', '12100033300044', 'of the other']

test('a firm receives events of its folders, of itself and of the schema, but not of another firm', async () => {
  const ids = [await subscribe(firm, 'firm'), await subscribe(other, 'other')]
  await stage.publish([
    documentEvent('of 111', '111'),
    documentEvent('of the other 121', '121'),
    ofFirm('of 110', '110'),
    ofFirm('of the other firm', '120'),
    documentEvent('of the schema'),
  ])
  // A folder that comes later.
  await stage.sql(
    `insert into grandlivre.folders (schema_id, id, firm_id, name) values (100, 113, 110, 'Later') on conflict do nothing`,
  )
  await stage.publish([documentEvent('of 113', '113'), documentEvent('end of the other', '121')])
  await stage.publish([documentEvent('end')])
  await until(() => heard('firm').at(-1) === 'end' && heard('other').at(-1) === 'end')
  expect(heard('firm')).toEqual(['of 111', 'of 110', 'of the schema', 'of 113', 'end'])
  expect(heard('other')).toEqual([
    'of the other 121',
    'of the other firm',
    'of the schema',
    'end of the other',
    'end',
  ])
  const { numbers, events, text } = await eventsOf(ids[0]!, firm)
  expect([numbers, labels(events)]).toEqual([[1, 2, 3, 4, 5], heard('firm')])
  const requests = () => stage.receiver.requests(`${path}firm`)
  expect(sequencesOf(requests())).toEqual([1, 2, 3, 4, 5])
  const before = requests().length
  const replayed = await stage.call('POST', `/${ids[0]}/replay`, { from: 1, to: 5 }, firm)
  await until(() => requests().length === before + replayed.body.deliveries)
  const deliveries = await stage.call('GET', `/${ids[0]}/deliveries`, undefined, firm)
  expect(deliveries.body.flatMap((each: { sequence: string }) => each.sequence)).toContain('1-5')
  const shown = [text, JSON.stringify(deliveries.body), ...requests().map(({ body }) => body.toString())]
  for (const secret of secrets) expect(shown.join('\n')).not.toContain(secret)
})

test('both firms receive the move of a folder; later events go only to its new firm', async () => {
  const id = await subscribe(firm, 'firm')
  await subscribe(other, 'other')
  const named = await subscribe(firm, 'named', { accountingFolderId: ['111', '112'] })
  await subscribe(stage.own, 'company')
  await stage.sql(`update grandlivre.folders set firm_id = 120, reference = 'ref-of-121' where id = 111`)
  await stage.publish([documentEvent('of the other now', '111'), documentEvent('of 112', '112')])
  await stage.sql(`update grandlivre.folders set firm_id = 110, reference = 'ref-of-111' where id = 111`)
  await stage.publish([documentEvent('of 111', '111'), documentEvent('end')])
  const ends = { firm: 'end', other: 'end', named: 'of 111', company: 'of 111' }
  await until(() => Object.entries(ends).every(([rest, last]) => heard(rest).at(-1) === last))
  const leaves = ['accountingFolder 111', 'ledger 111']
  const moves = ['accountingFolder 111', 'accountingFolder 111', 'ledger 111', 'ledger 111']
  const sorted = (rest: string, from: number, to: number) => heard(rest).slice(from, to).toSorted()
  expect([sorted('firm', 0, 2), heard('firm')[2], sorted('firm', 3, 5), heard('firm').slice(5)]).toEqual([
    leaves,
    'of 112',
    leaves,
    ['of 111', 'end'],
  ])
  expect([sorted('other', 0, 2), heard('other')[2], sorted('other', 3, 5), heard('other').slice(5)]).toEqual([
    leaves,
    'of the other now',
    leaves,
    ['end'],
  ])
  expect(heard('named')).toEqual(heard('firm').slice(0, -1))
  // A company token's subscription follows its folder.
  expect([sorted('company', 0, 4), heard('company').slice(4, 5)]).toEqual([moves, ['of the other now']])
  for (const each of [id, named]) {
    const { numbers, text } = await eventsOf(each, firm)
    expect(numbers).toEqual(numbers.map((_: number, index: number) => index + 1))
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
})

test('a ping names a moved folder only to its company, not to the firm that it left', async () => {
  const one = await subscribe(firm, 'one', { accountingFolderId: ['111'] })
  const company = await subscribe(stage.own, 'company')
  await stage.sql(`update grandlivre.folders set firm_id = 120, reference = 'ref-of-121' where id = 111`)
  await stage.call('POST', `/${one}/ping`, undefined, firm)
  await stage.call('POST', `/${company}/ping`)
  await stage.sql(`update grandlivre.folders set firm_id = 110, reference = 'ref-of-111' where id = 111`)
  const scopeOf = (rest: string) =>
    stage.receiver.accepted(path + rest).find(({ name }) => name === 'ping')?.scope
  expect(scopeOf('one')).toEqual({ schemaId: 100, firmId: 110, firmSIRET: '110000222' })
  expect(scopeOf('company')).toMatchObject({
    firmId: 120,
    accountingFolderId: 111,
    accountingFolderRef: 'ref-of-121',
  })
})

test('a firm gets its events in order, even with thousands of events of another firm between them', async () => {
  const id = await subscribe(firm, 'firm')
  const many = Array.from({ length: 2_500 }, (_, at) => documentEvent(`of the other ${at}`, '121'))
  const mixed = Array.from({ length: 2_500 }, (_, at) => documentEvent(`m${at}`, at % 2 ? '121' : '111'))
  await stage.publish([documentEvent('first', '111'), ...many])
  await stage.publish([...many, ...mixed, ...many, documentEvent('last', '112')])
  await until(() => heard('firm').at(-1) === 'last')
  const expected = [
    'first',
    ...mixed.filter(({ folderId }) => folderId === '111').map(({ data }) => (data as { name: string }).name),
    'last',
  ]
  expect(heard('firm')).toEqual(expected)
  expect(sequencesOf(stage.receiver.requests(`${path}firm`))).toEqual(expected.map((_, at) => at + 1))
  const { events } = await eventsOf(id, firm)
  expect(labels(events)).toEqual(expected.slice(0, 1000))
})

test('numbers and deliveries stored before events had a firm reveal nothing about another firm', async () => {
  stage.receiver.behave(`${path}pushed`, answerWith(500))
  const id = await subscribe(firm, '', { postUrl: null })
  const pushed = await subscribe(firm, 'pushed')
  // As a process of the previous version numbers and stores events: without regard to the firm.
  await stage.sql(`update grandlivre.subscriptions set level = 'staff', firm_id = null`)
  const names = ['own', 'of the other', 'of all']
  await stage.publish([
    documentEvent('own', '111'),
    documentEvent('of the other', '121'),
    documentEvent('of all'),
  ])
  await until(() => stage.receiver.requests(`${path}pushed`).length > 0)
  expect(stage.receiver.requests(`${path}pushed`)[0]!.body.toString()).toContain('ref-of-121')
  await stage.asOwner((client) => numberInParts((run) => run(client), String(id)))
  await stage.sql(`update grandlivre.subscriptions set level = 'firm', firm_id = 110`)
  for (const clear of ['', 'update grandlivre.events set firm_id = null']) {
    if (clear) await stage.sql(clear)
    const { events, numbers, text } = await eventsOf(id, firm)
    expect(numbers).toEqual([1, 2, 3])
    expect(events.map(({ data }: { data: { name?: string } }) => data.name)).toEqual(
      names.map((name) => (name === 'of the other' ? undefined : name)),
    )
    expect(events[1]).toEqual({
      name: 'document',
      operation: 'CREATE',
      scope: { schemaId: 100 },
      data: {},
      webhookId: expect.any(String),
      createdAt: expect.any(Number),
    })
    for (const secret of secrets) expect(text).not.toContain(secret)
  }
  stage.receiver.behave(`${path}pushed`, answerWith(204))
  await stage.call('PATCH', `/${pushed}`, [], firm)
  await until(() => heard('pushed').length === 3)
  await stage.call('POST', `/${pushed}/replay`, { from: 1, to: 3 }, firm)
  await until(() => heard('pushed').length === 6)
  const sent = JSON.stringify(stage.receiver.accepted(`${path}pushed`))
  for (const secret of secrets) expect(sent).not.toContain(secret)
})

test('the migration records the firm of events that have no number yet', async () => {
  const id = await subscribe(firm, '', { postUrl: null })
  await stage.publish([documentEvent('numbered', '111')])
  await eventsOf(id, firm)
  await stage.publish([documentEvent('foreign', '121'), documentEvent('own', '111'), documentEvent('of all')])
  await stage.sql('update grandlivre.events set firm_id = null')
  const file = resolve(import.meta.dirname, '../../src/db/migrations/0015_subscriptions_of_tokens.expand.sql')
  const [fill] = (await readFile(file, 'utf8')).match(/^update events .*?;$/ms)!
  await stage.sql(`set search_path = grandlivre; ${fill}`)
  expect(labels((await eventsOf(id, firm)).events)).toEqual(['numbered', 'own', 'of all'])
})
