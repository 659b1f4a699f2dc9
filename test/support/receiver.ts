/**
 * A subscriber like those in public documentation of similar services: it parses the body, serializes it
 * again, appends the date header, and compares the HMAC in hexadecimal. Each path is one subscriber with its
 * own behaviour.
 */
import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedEvent {
  name: string
  operation: string
  scope: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into it as it likes
  data: any
  webhookId: string
  createdAt: number
}

export interface Received {
  events: ReceivedEvent[]
  body: Buffer
  headers: IncomingHttpHeaders
  /** When the request was complete, epoch milliseconds. */
  at: number
}

/** Answers the request; `attempt` counts from 1. By default with 204. */
export type Behaviour = (response: ServerResponse, received: Received, attempt: number) => void

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

export const answerWith =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    void response.writeHead(status, headers).end()

/** @param secrets of the partners, one of which must have signed each delivery */
export async function startReceiver(...secrets: string[]) {
  const paths = new Map<
    string,
    { requests: Received[]; accepted: ReceivedEvent[]; running: number; most: number }
  >()
  const behaviours = new Map<string, Behaviour>()
  const forged: Received[] = []
  const of = (path: string) => {
    const known = paths.get(path) ?? { requests: [], accepted: [], running: 0, most: 0 }
    paths.set(path, known)
    return known
  }
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const path = of(request.url!)
    path.running += 1
    path.most = Math.max(path.most, path.running)
    response.on('close', () => {
      path.running -= 1
    })
    const body = Buffer.concat(await request.toArray())
    const { headers } = request
    const text = JSON.stringify(JSON.parse(body.toString('utf8')))
    const signatures = secrets.map((secret) =>
      createHmac('sha256', secret)
        .update(text + headers.date)
        .digest('hex'),
    )
    const received = { events: JSON.parse(text), body, headers, at: Date.now() }
    if (!signatures.includes(String(headers['signature']))) forged.push(received)
    path.requests.push(received)
    response.on('finish', () => {
      if (response.statusCode < 300) path.accepted.push(...received.events)
    })
    const behave = behaviours.get(request.url!) ?? answerWith(204)
    behave(response, received, path.requests.length)
  }
  const server = createServer((request, response) => {
    // Ignores a request that was cut off.
    receive(request, response).catch(() => response.destroy())
  })
  let connections = 0
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    /** `http://127.0.0.1:<port>`; a path follows. */
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests whose signature is wrong, by the documented check. */
    forged,
    /** Events that a path received, in order, without those of requests that it refused. */
    accepted: (path: string) => of(path).accepted,
    /** Every request to a path. */
    requests: (path: string) => of(path).requests,
    behave: (path: string, behaviour: Behaviour) => void behaviours.set(path, behaviour),
    /** The most concurrent requests to a path. */
    atOnce: (path: string) => of(path).most,
    /** How many connections it has had, including those over TLS, which it does not understand. */
    connections: () => connections,
    /** From now on, deliveries must be signed with this secret. */
    expectSecret: (secret: string) => void secrets.splice(0, secrets.length, secret),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
