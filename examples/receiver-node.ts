/**
 * Receives webhooks with only node:http.
 *
 *   WEBHOOK_SECRET=glv_secret_... npx node examples/receiver-node.ts
 */
import { createServer } from 'node:http'
import { verifyWebhook, type WebhookEvent } from 'grandlivre/webhooks'

const secret = process.env['WEBHOOK_SECRET']
if (!secret) throw new Error('Set WEBHOOK_SECRET to the partner secret')
const bodyBytesMax = 1024 * 1024
/** A real receiver stores these durably, for example in a unique column of its inbox. */
const seen = new Set<string>()

const server = createServer(async (request, response) => {
  const answer = (status: number) => response.writeHead(status).end()
  if (request.method !== 'POST') return answer(405)
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += chunk.length
      if (bytes > bodyBytesMax) return request.destroy()
      chunks.push(chunk)
    }
  } catch {
    // The sender disconnected; it will send everything again.
    return response.destroy()
  }
  const verified = verifyWebhook({ secret, headers: request.headers, body: Buffer.concat(chunks) })
  if (!verified.valid) {
    console.warn('refused:', verified.message)
    // The reason helps no forger, and `grandlivre webhook doctor` reads it.
    return response.writeHead(401, { 'Content-Type': 'application/json' }).end(verified.body)
  }
  for (const event of verified.events) if (!seen.has(event.webhookId)) take(event)
  // Respond soon, before the actual work: after ten seconds the sender treats the delivery as lost and sends it again.
  answer(204)
})

function take(event: WebhookEvent): void {
  seen.add(event.webhookId)
  console.log(event.name, event.operation, JSON.stringify(event.data))
}

server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  const address = server.address()
  if (address && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}`)
})
