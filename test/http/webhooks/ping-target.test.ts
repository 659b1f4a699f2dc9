import { expect, test } from 'vitest'
import { setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

test('a ping connects to public addresses only, even if its target has moved since', async () => {
  const { company, staff, send, make, webhook } = routes
  for (const [target, error] of [
    ['https://inside.test/', 'inside.test resolves to a private or reserved address'],
    ['https://10.0.0.7/', 'must not lead to a private or reserved address'],
    ['http://hooks.test/', 'must begin with https://'],
  ] as const) {
    const id = await make(company)
    await staff.client.query('update grandlivre.subscriptions set post_url = $2 where id = $1', [id, target])
    const { status, body } = await send('POST', webhook(`/${id}/ping`), company, {})
    expect([status, body.status, body.fault]).toEqual([200, null, 'address-refused'])
    expect(body.error).toContain(error)
  }
})
