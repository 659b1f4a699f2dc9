/** Staff commands on events and subscriptions. */
import { verifyWebhook } from 'grandlivre/webhooks'
import { beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { answerWith, type Received } from '../support/receiver.ts'
import { documentEvent, namesOf, sequencesOf, setWebhookStage } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

/** A public address, so that it may be registered. Nothing is sent to it: its tests run no dispatcher. */
const publicUrl = 'https://1.1.1.1/hook'

async function stageOf({ onTestFinished }: TestContext) {
  const stage = await setWebhookStage()
  onTestFinished(() => stage.close())
  return {
    ...stage,
    /** Expects success. @param words the first words, separated by blanks @returns the output */
    run: async (words: string, ...more: string[]) => {
      const ran = await cli(stage.ownerUrl, ...words.split(' '), ...more)
      expect(ran).toMatchObject({ code: 0, error: '' })
      return ran.out
    },
    /** Expects a refusal. @returns its one line */
    refused: async (words: string, ...more: string[]) => {
      const { code, out, error } = await cli(stage.ownerUrl, ...words.split(' '), ...more)
      expect([code, out]).toEqual([1, ''])
      expect(error.trimEnd().split('\n')).toHaveLength(1)
      return error
    },
  }
}

const emitted = (kind: string, data: unknown, ...place: string[]): [string, ...string[]] => [
  `event emit --schema 100 --name ${kind.replace(' ', ' --operation ')} --data`,
  ...[typeof data === 'string' ? data : JSON.stringify(data), ...place],
]
const documentData = { id: '7', kind: 'PF', name: 'Facture "É".pdf' }

test('an event that staff emit is delivered to its subscribers', async (context) => {
  const { run, refused, ...stage } = await stageOf(context)
  await stage.subscribe('/folder', { folderIds: ['111'] })
  await stage.subscribe('/schema')
  stage.dispatch()
  expect(await run(...emitted('document CREATE', documentData, '--folder', '0111'))).toBe(
    'Published: document CREATE in schema 100, folder 111.\n',
  )
  await run(...emitted('document CREATE', { ...documentData, id: '8' }))
  await until(() => stage.receiver.accepted('/schema').length === 2)
  await until(() => stage.receiver.accepted('/folder').length === 1)
  const scope = { schemaId: 100, accountingFolderId: 111 }
  const received = { name: 'document', operation: 'CREATE', data: documentData, scope }
  expect(stage.receiver.accepted('/folder')).toMatchObject([received])

  const list = await run('event list --schema 100 --name document')
  expect(list.split('\n').map((line) => line.match(/document +CREATE +(.*)$/)?.[1])).toEqual([
    undefined,
    JSON.stringify({ ...documentData, id: '8' }),
    JSON.stringify(documentData),
    undefined,
  ])
  const ofFolder = await run('event list --schema 100 --folder 111 --most 1')
  expect(ofFolder.split('\n')).toHaveLength(3)
})

test('the scope of an emitted event names the person who caused it, if one is given', async (context) => {
  const { run, sql } = await stageOf(context)
  const most = '9007199254740991'
  await run(...emitted('document CREATE', documentData, '--person', most))
  await run(...emitted('document CREATE', documentData))
  const scopes = (await sql('select scope::text from events order by id')).map(({ scope }) => scope)
  expect(scopes).toEqual([`{"schemaId": 100, "persPhysiqueId": ${most}}`, '{"schemaId":100}'])
})

test('staff subscribe a third party to all schemas, to one, or to folders', async (context) => {
  const { run, sql } = await stageOf(context)
  const create = (place: string) =>
    run(`webhook create ${place} --partner ONE --url ${publicUrl} --events`, 'document, portfolio,document')
  await create('--all-schemas')
  await create('--schema 200')
  expect(await create('--folder 111 112 111')).toMatch(
    /^Subscription \d+ of ONE receives events from now on\.\nSigning secret: whsec_.{44}\nIt is shown only once\. .*\n$/,
  )
  const made = await sql(
    'select schema_id, folder_ids, level, firm_id, on_events, post_url from subscriptions order by id',
  )
  const common = { level: 'staff', firm_id: null, on_events: ['document', 'portfolio'], post_url: publicUrl }
  expect(made).toEqual([
    { ...common, schema_id: null, folder_ids: [] },
    { ...common, schema_id: '200', folder_ids: [] },
    { ...common, schema_id: '100', folder_ids: ['111', '112'] },
  ])
  const list = await run('webhook list')
  expect(list).toMatch(/ONE +staff +all schemas +enabled +0 +0 +0\/0 +https/)
  expect(list).toMatch(/ONE +staff +schema 200 +enabled/)
  expect(list).toMatch(/ONE +staff +folders 111, 112 +enabled/)
})

test('the secret of a subscription that staff made signs its deliveries, and staff can rotate it', async (context) => {
  const { run, refused, ...stage } = await stageOf(context)
  const secretIn = (out: string) => out.match(/^Signing secret: (whsec_\S+)$/m)![1]!
  const where = `--partner ONE --url ${publicUrl} --events document --schema 100`
  const created = await run(`webhook create ${where}`)
  const id = created.match(/^Subscription (\d+)/)![1]!
  const rotated = await run('webhook rotate-secret', id)
  await stage.sql('update subscriptions set post_url = $1', [`${stage.receiver.url}/staff`])
  stage.dispatch()
  await stage.publish([documentEvent('a')])
  await until(() => stage.receiver.requests('/staff').length === 1)
  const [{ headers, body }] = stage.receiver.requests('/staff') as [Received]
  for (const signingSecret of [secretIn(created), secretIn(rotated)])
    expect(verifyWebhook({ signingSecret, headers, body }).valid).toBe(true)
  expect(await refused('webhook rotate-secret', '1')).toContain('no subscription 1')
})

test('a subscription is shown, disabled with a reason, enabled and deleted', async (context) => {
  const { run, refused, subscribe, publish, sql } = await stageOf(context)
  const id = await subscribe('/one')
  expect(await run('webhook disable', id, '--reason', 'asked for by phone')).toBe(
    `Subscription ${id} is disabled: nothing is sent until it is enabled.\n`,
  )
  const shown = await run('webhook show', id)
  expect(shown).toMatch(/^events +document$/m)
  expect(shown).toMatch(/^state +disabled \S+: asked for by phone$/m)
  expect(await refused('webhook disable', id)).toContain('is disabled already')
  expect(await refused(`event replay --subscription ${id}`)).toContain(
    `enable it first (webhook enable ${id})`,
  )
  await publish([documentEvent('missed')])
  expect(await run('webhook enable', id)).toBe(`Subscription ${id} goes on after number 0: 1 event waits.\n`)
  expect(await refused('webhook enable', id)).toContain('is enabled already')
  expect(await run('webhook show', id)).toMatch(/^state +enabled$/m)
  await publish([documentEvent('a'), { name: 'visitedPage', operation: 'VOID', data: { path: '/' } }])
  const waiting = await run('webhook show', id)
  expect(waiting).toMatch(/^last number given +0$/m)
  expect(waiting).toMatch(/^events that wait for a delivery +2$/m)
  expect(waiting).toMatch(/^oldest undelivered +20\d\d-\d\d-\d\dT[\d:]+Z$/m)
  await sql(`update subscriptions set level = 'firm', firm_id = 110`)
  expect(await run('webhook show', id)).toMatch(/^suspended +until a token that sees it is issued$/m)
  expect(await run('webhook list')).toMatch(
    /ONE +firm +firm 110 +suspended: no token that sees it is left +0 +0 +0\/0 /,
  )
  await sql(`update subscriptions set level = 'staff', firm_id = null`)
  await sql(
    `update third_parties set disconnected_at = now(), disconnected_reason = 'unpaid' where code = 'ONE'`,
  )
  expect(await run('webhook show', id)).toMatch(/^paused +while its partner is disconnected$/m)
  expect(await run('webhook list')).toMatch(
    /ONE +staff +schema 100 +paused: its partner is disconnected +0 +0 +0\/0 /,
  )
  await sql('update subscriptions set post_url = null, numbered = 7, collected = 5')
  await sql('insert into sequence_runs values (100, $1, 6, 7, 1, 2)', [id])
  expect(await run('webhook list')).toMatch(/ONE +staff +schema 100 +paused: .* +0 +0 +5\/7 +read by number/)
  const read = await run('webhook show', id)
  expect(read).toMatch(/^last number given +7$/m)
  expect(read).toMatch(/^last number in a delivery +5$/m)
  expect(read).toMatch(/^events that wait for a delivery +4$/m)
  expect(await refused(`event replay --subscription ${id}`)).toContain('read by number')
  expect(await run('webhook delete', id)).toBe(`Subscription ${id} is deleted.\n`)
  expect(await sql('select from subscriptions')).toEqual([])
})

test('a failed delivery is listed with its attempts, and replayed with the same body', async (context) => {
  const { run, refused, receiver, ...stage } = await stageOf(context)
  const id = await stage.subscribe('/gone')
  // The escapes in the answer of the receiver must not reach the terminal of staff.
  receiver.behave('/gone', (response) => void response.writeHead(410).end('\u001b[2Jgone\n\u202eaway'))
  stage.dispatch()
  await stage.publish([documentEvent('a'), documentEvent('b')])
  await until(async () => (await stage.sql('select from subscriptions where not enabled')).length === 1)
  expect(await refused(`event replay --subscription ${id}`)).toContain('disabled')
  // Skips the delivery, as `webhook enable --latest` does.
  await stage.sql(`update deliveries set state = 'failed', next_attempt_at = null, finished_at = now()`)

  const deliveries = await run('webhook deliveries', id, '--state', 'failed')
  const [, delivery] = deliveries.match(/^(\d+) +100 +2 \(\d+ to \d+\) +1 to 2 +failed +1 +410 /m)!
  const attempts = await run('webhook attempts', id, delivery!)
  expect(attempts).toMatch(/^1 +20[^ ]+Z +410 +\d+ ms +[^\n]*\\x1b\[2Jgone \\u202eaway$/m)
  for (const character of ['\u001b', '\u202e']) expect(attempts).not.toContain(character)

  // A replay starts the retries again, even if they were used up.
  await stage.sql('update deliveries set attempts = 12')
  receiver.behave('/gone', answerWith(500))
  await run('webhook enable', id)
  expect(await run(`event replay --subscription ${id}`)).toBe('1 failed delivery is sent again.\n')
  const triedAgain = `select from deliveries where attempts >= 13 and state = 'pending'`
  await until(async () => (await stage.sql(triedAgain)).length === 1)
  receiver.behave('/gone', answerWith(200))
  await stage.sql(`update deliveries set next_attempt_at = now() where state = 'pending'`)
  await until(() => receiver.accepted('/gone').length === 2)
  const [first, ...again] = receiver.requests('/gone')
  expect(again.length).toBeGreaterThanOrEqual(2)
  for (const { body } of again) expect(body).toEqual(first!.body)
  expect(receiver.forged).toEqual([])
  await until(async () => (await run('webhook deliveries', id)).includes('delivered, replayed'))
  expect(await refused(`event replay --subscription ${id}`)).toContain('has no failed delivery')
  const all = await run('webhook attempts', id, delivery!)
  expect(all).toMatch(/^13 +20[^ ]+Z +500 /m)
  expect(all).toMatch(/^1\d +20[^ ]+Z +200 /m)
})

test('a replay of a time span sends exactly the skipped events of that span', async (context) => {
  const { run, refused, receiver, ...stage } = await stageOf(context)
  const id = await stage.subscribe('/one', { folderIds: ['111'] })
  const everywhere = await stage.subscribe('/all', { schemaId: null, folderIds: [] })
  await run('webhook disable', id)
  const names = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => `n${from + index}`)
  const mine = (from: number, to: number) => names(from, to).map((name) => documentEvent(name, '111'))
  const other = documentEvent('other', '112')
  const otherTenant = documentEvent('tenant', '211')
  await stage.publish([...mine(0, 1_100), other, ...mine(1_100, 1_250)])
  await stage.publish([otherTenant], '200')
  // The first fifty happened a day earlier.
  await stage.sql(
    `update events set created_at = created_at - interval '1 day'
     where id in (select id from events where schema_id = 100 order by id limit 50)`,
  )
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
  const replay = (subscription: string, from: string) =>
    run(`event replay --subscription ${subscription} --from ${from}`)
  expect(await run('webhook enable', id, '--latest')).toBe(
    `Subscription ${id} goes on after number 1250: 0 events wait. What was not delivered before is skipped, and can be replayed.\n`,
  )
  // These are not collected yet, so the replay must not send them, too.
  await stage.publish(mine(1_250, 1_260))
  expect(await replay(id, hourAgo)).toBe('1200 events are sent again.\n')
  expect(await replay(everywhere, hourAgo)).toBe('0 events are sent again.\n')

  stage.dispatch()
  await until(() => receiver.accepted('/one').length === 1_210)
  const received = namesOf(receiver.accepted('/one'))
  expect(received.filter((name) => !names(1_250, 1_260).includes(name))).toEqual(names(50, 1_250))
  // They have the numbers that they would have had if they were not skipped.
  expect(sequencesOf(receiver.requests('/one')).toSorted((one, other) => one - other)).toEqual(
    names(51, 1_261).map((name) => Number(name.slice(1))),
  )
  expect(received).toHaveLength(1_210)
  await until(() => receiver.accepted('/all').length === 1_262)

  // This replay sends every kept event of all tenants again. Receivers recognize repeats by their ids.
  const before = receiver.accepted('/all').map(({ webhookId }) => webhookId)
  const yesterday = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10)
  await until(async () => (await stage.sql(`select from deliveries where state = 'pending'`)).length === 0)
  expect(await replay(everywhere, yesterday)).toBe('1262 events are sent again.\n')
  await until(() => receiver.accepted('/all').length === 2 * 1_262)
  const again = receiver.accepted('/all').slice(1_262)
  expect(again.map(({ webhookId }) => webhookId).sort()).toEqual(before.sort())
})

test('rotate-secret says how long the old secret is accepted, and the new secret signs at once', async (context) => {
  const { run, refused, receiver, ...stage } = await stageOf(context)
  await stage.subscribe('/one')
  stage.dispatch()
  const shown = await run('partner rotate-secret', '--code', 'ONE')
  expect(shown).toContain('for 24 more hours')
  const secret = /^Secret: (\S+)$/m.exec(shown)![1]!
  receiver.expectSecret(secret)
  await stage.publish([documentEvent('a')])
  await until(() => receiver.accepted('/one').length === 1)
  expect(receiver.forged).toEqual([])
  expect(await run('partner rotate-secret', '--code', 'ONE', '--keep', '0')).toContain(
    'previous one is refused',
  )
  const keys = await stage.sql(
    'select retired_at > now() as kept from third_party_secrets where third_party_id = $1 order by created_at',
    [stage.thirdPartyId],
  )
  expect(keys.map(({ kept }) => kept)).toEqual([false, false, null])
})

describe('a mistake prints one line that says what to do, and changes nothing:', () => {
  const stage = forTests(setWebhookStage)
  let id: string
  beforeAll(async () => {
    id = await stage.subscribe('/one')
  })

  const create = (place: string, changed: Record<string, string> = {}) => {
    const options = { '--partner': 'ONE', '--url': publicUrl, '--events': 'document', ...changed }
    return ['webhook create', ...Object.entries(options).flat(), place].join(' ')
  }
  const person = 'event emit --schema 100 --name document --operation CREATE --data {} --person'

  test.each<[RegExp, string, ...string[]]>([
    [/^--name takes .*document.*, not "documents"/, 'event list --schema 100 --name documents'],
    [/^--person takes a number from 1 to 2\^53-1, not "0"/, `${person} 0`],
    [/^--person .*, not "9007199254740992"/, `${person} 9007199254740992`],
    [/^--person .*, not "Anna"/, `${person} Anna`],
    [/no kind of event documents/, ...emitted('documents CREATE', documentData)],
    [/document has the operations CREATE, not VOID/, ...emitted('document VOID', documentData)],
    [/data\.id: /, ...emitted('document CREATE', { id: 7 })],
    [/--data is not JSON/, ...emitted('document CREATE', '{id: 7}')],
    [/no folder 211 in schema 100/, ...emitted('document CREATE', documentData, '--folder', '211')],
    [/no schema 999/, 'event list --schema 999'],
    [/no folder 211 in schema 100/, 'event list --schema 100 --folder 211'],
    [/Give one of/, create('')],
    [/Give one of/, create('--all-schemas --schema 100')],
    [/no schema 300/, create('--schema 300')],
    [/in several schemas/, create('--folder 111 211')],
    [/no folder 999/, create('--folder 999')],
    [/no third party NOBODY/, create('--folder 111', { '--partner': 'NOBODY' })],
    [/^--url .*private/, create('--folder 111', { '--url': 'https://10.0.0.1/' })],
    [/^--url .*https/, create('--folder 111', { '--url': 'http://1.1.1.1/' })],
    [/^--events .*"documents" is not a kind of event/, create('--folder 111', { '--events': 'documents' })],
    [/no subscription 5/, 'webhook show 5'],
    [/no subscription 5/, 'webhook delete 5'],
    [/no subscription 5/, 'webhook deliveries 5'],
    [/no attempt of a delivery 9 .*: see webhook deliveries 5$/, 'webhook attempts 5 9'],
    [/--to requires --from/, 'event replay --subscription 5 --to 2026-01-31'],
    [/must be before/, 'event replay --subscription 5 --from 2026-01-31 --to 2026-01-31'],
    [/no subscription 5/, 'event replay --subscription 5 --from 2026-01-31'],
    [/no subscription 5/, 'event replay --subscription 5'],
    [/no third party NO/, 'partner rotate-secret --code NO'],
  ])('%s', async (message, words, ...more) => {
    const { code, out, error } = await cli(stage.ownerUrl, ...words.trim().split(' '), ...more)
    expect([code, out]).toEqual([1, ''])
    const [line, ...hints] = error.trimEnd().split('\n')
    expect(line).toMatch(message)
    expect(hints.filter((hint) => !hint.endsWith(' shows its options.'))).toEqual([])
    expect(await stage.sql('select from events')).toEqual([])
    expect(await stage.sql('select id from subscriptions')).toEqual([{ id }])
  })
})
