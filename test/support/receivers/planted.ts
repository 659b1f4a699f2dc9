/** Receivers with a fault each, as partners have them. */
import { once } from 'node:events'
import { createServer, type RequestListener, request, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { verifyWebhook } from 'grandlivre/webhooks'

export interface Planted {
  /** Its address, with a path. */
  url: string
  close(): Promise<void>
}

/** Answers as a test likes; `attempt` counts from 1. */
export function startAnswering(
  answer: (response: ServerResponse, attempt: number) => void,
): Promise<Planted> {
  let attempts = 0
  return listening((received, response) => {
    attempts += 1
    const attempt = attempts
    received.resume().on('end', () => answer(response, attempt))
  })
}

export interface Verifying {
  secret: string
  /** How far its clock is ahead, milliseconds. */
  aheadMs?: number
}

/** Verifies as the examples do, and answers 401 with the reason. */
export function startVerifying({ secret, aheadMs = 0 }: Verifying): Promise<Planted> {
  return listening(async (received, response) => {
    const body = Buffer.concat(await received.toArray()).toString('utf8')
    const now = Date.now() + aheadMs
    const verified = verifyWebhook({ secret, headers: received.headers, body, now })
    response.setHeader('date', new Date(now).toUTCString())
    if (verified.valid) response.writeHead(204).end()
    else response.writeHead(401, { 'content-type': 'application/json' }).end(verified.body)
  })
}

export interface Changed {
  body?: (body: string) => string
  /** A header that it does not pass on. */
  without?: string
}

/** A proxy that changes what it passes on. */
export function startChangingProxy(
  target: string,
  { body = (text) => text, without }: Changed,
): Promise<Planted> {
  return listening(async (received, response) => {
    const changed = Buffer.from(body(Buffer.concat(await received.toArray()).toString('utf8')))
    const headers = { ...received.headers, 'content-length': changed.length }
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== without))
    const sent = request(target, { method: 'POST', headers: kept, agent: false }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    sent.end(changed)
  })
}

/** Speaks HTTPS with a certificate that nobody has signed. */
export async function startSelfSigned(): Promise<Planted> {
  const server = createSecureServer({ key, cert }, (received, response) => {
    received.resume().on('end', () => response.writeHead(204).end())
  })
  return opened(server, 'https')
}

/** Closes every connection as soon as a request has arrived. */
export function startHangingUp(): Promise<Planted> {
  return listening((received) => void received.socket.destroy())
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<string> {
  const { url, close } = await startAnswering(() => {})
  await close()
  return url
}

function listening(answer: RequestListener): Promise<Planted> {
  return opened(createServer(answer), 'http')
}

async function opened(server: ReturnType<typeof createServer>, scheme: string): Promise<Planted> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Of no use outside this file. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9GdIY7GRewlSADKj
esqSqdwzhTLXpXcdRkd4zAcmXSOhRANCAAQbCKi4lHx9/MjGWu9r5tKfzLJioteS
6g7vgZp/80LIkj3xEAbrN41CIdYYbWWOgyF1HnuqQ+OEH40o1lzbU667
-----END PRIVATE KEY-----`
const cert = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUaA04WzeRWCtONN6Filro9zHPBUEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjIyMDczMVoYDzIxMjYxMDI5
MjIwNzMxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQbCKi4lHx9/MjGWu9r5tKfzLJioteS6g7vgZp/80LIkj3xEAbrN41C
IdYYbWWOgyF1HnuqQ+OEH40o1lzbU667o28wbTAdBgNVHQ4EFgQU1obZg4Qrcyfx
3whyFOZwS2+snaAwHwYDVR0jBBgwFoAU1obZg4Qrcyfx3whyFOZwS2+snaAwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgDE5LMVEfsmxfvG6IBkScn1dy12GRfKa6Fie1kyz7R3ICIGrP
II8fdWbrcmxWeu/x99/5Cu44LkzIYPhumY2Y1y6w
-----END CERTIFICATE-----`
