/**
 * Receives webhooks with Hono.
 *
 *   WEBHOOK_SECRET=glv_secret_... npx node examples/receiver-hono.ts
 */
import { serve } from '@hono/node-server'
import { verifyWebhook, type WebhookEvent } from 'grandlivre/webhooks'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'

const secret = process.env['WEBHOOK_SECRET']
if (!secret) throw new Error('Set WEBHOOK_SECRET to the partner secret')
/** A real receiver stores these durably, for example in a unique column of its inbox. */
const seen = new Set<string>()

const app = new Hono()

app.post('*', bodyLimit({ maxSize: 1024 * 1024 }), async (c) => {
  // Not c.req.json(): the signature covers the bytes as received.
  const body = new Uint8Array(await c.req.arrayBuffer())
  const verified = verifyWebhook({ secret, headers: c.req.raw.headers, body })
  if (!verified.valid) {
    console.warn('refused:', verified.message)
    // The reason helps no forger, and `grandlivre webhook doctor` reads it.
    return c.body(verified.body, 401, { 'Content-Type': 'application/json' })
  }
  for (const event of verified.events) if (!seen.has(event.webhookId)) take(event)
  // Respond soon, before the actual work: after ten seconds the sender treats the delivery as lost and sends it again.
  return c.body(null, 204)
})

function take(event: WebhookEvent): void {
  seen.add(event.webhookId)
  console.log(event.name, event.operation, JSON.stringify(event.data))
}

serve({ fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000), hostname: '127.0.0.1' }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
)
