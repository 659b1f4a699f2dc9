/** How many subscriptions the tokens of one third party may create in one schema. */
import { expect, test } from 'vitest'
import { codeOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const max = 3
const body = { postUrl, onEvents: ['document'] }
const tooMany = [409, 'ERR-TOO-MANY-SUBSCRIPTIONS']

const routes = setWebhookRoutes({ webhookSubscriptionsMax: max })

const sql = (text: string) => routes.staff.client.query(text)

test('subscriptions of all tokens and both levels count, and one too many is refused until one is deleted', async () => {
  const { make, post, company, sibling, firm, otherFirm, send, webhook } = routes
  await make(company)
  await make(sibling)
  const id = await make(firm)
  for (const caller of [company, sibling, firm, otherFirm])
    expect(codeOf(await post(caller, body))).toEqual(tooMany)
  const { message } = (await post(firm, body)).body.error
  expect(message).toContain(`${max} subscriptions in a schema`)
  expect(message).toContain('delete one')
  await send('DELETE', webhook(`/${id}`), firm, '')
  await make(company)
  expect(codeOf(await post(company, body))).toEqual(tooMany)
})

test('disabled subscriptions count towards the limit', async () => {
  const { make, post, firm } = routes
  for (let number = 0; number < max; number++) await make(firm)
  await sql(
    `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'a test'`,
  )
  expect(codeOf(await post(firm, body))).toEqual(tooMany)
})

test('subscriptions of staff, of other third parties and in other schemas do not count towards the limit', async () => {
  const { make, post, firm, stranger, otherTenant } = routes
  for (let number = 0; number < max; number++) {
    await make(firm)
    await make(stranger)
    await make(otherTenant)
  }
  for (const caller of [firm, stranger, otherTenant])
    expect(codeOf(await post(caller, body))).toEqual(tooMany)
  await sql(`update grandlivre.subscriptions set level = 'staff', firm_id = null`)
  for (const caller of [firm, stranger, otherTenant]) await make(caller)
})

test('existing subscriptions stay and can be changed, even if the limit is lowered below their number', async () => {
  const { make, patch, post, idsOf, firm } = routes
  const id = await make(firm)
  await sql(
    `insert into grandlivre.subscriptions
       (id, schema_id, level, firm_id, third_party_id, post_url, on_events, start_position)
     select nextval('grandlivre.ids'), schema_id, level, firm_id, third_party_id, post_url, on_events, 0
     from grandlivre.subscriptions cross join generate_series(1, ${max})`,
  )
  expect((await idsOf('', firm)).length).toBe(max + 1)
  expect((await patch(firm, id, [])).status).toBe(200)
  expect(codeOf(await post(firm, body))).toEqual(tooMany)
})

test('simultaneous requests create no more subscriptions than the limit allows', async () => {
  const { post, company, sibling, firm } = routes
  for (let round = 0; round < 5; round++) {
    const callers = Array.from({ length: 8 }, (_, number) => [company, sibling, firm][number % 3]!)
    const answers = await Promise.all(callers.map((caller) => post(caller, body)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, ...Array(5).fill(409)])
    expect((await sql('delete from grandlivre.subscriptions')).rowCount).toBe(max)
  }
})
