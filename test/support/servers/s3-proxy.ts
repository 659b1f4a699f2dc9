/** A proxy between a store and its S3 server that inflicts network and server faults on chosen requests. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/**
 * A number: this status, without asking the server; with a code, in the form in which S3 servers refuse.
 * `cut`: the connection ends in the middle of the body. `lost`: the server executes the request, and the
 * response never arrives. `damaged`: a byte of the body changes in transit. `silent`: no response. A delay: the
 * request is passed on after it.
 */
export type Fault =
  | number
  | { status: number; code: string }
  | { delayMs: number }
  | 'cut'
  | 'lost'
  | 'damaged'
  | 'silent'
  | undefined

/**
 * A request: `PUT` of a part, `POST` that starts or completes an upload, `DELETE`, `HEAD`, `GET`, and so on.
 */
export interface SeenRequest {
  method: string
  /** With bucket and key. */
  path: string
  /** The number of an uploaded part. */
  part: number | undefined
  begins: boolean
  joins: boolean
  /** A listing of objects, or of unfinished uploads. */
  lists: boolean
}

export type S3Proxy = Awaited<ReturnType<typeof startS3Proxy>>

export async function startS3Proxy(serverEndpoint: string) {
  const target = new URL(serverEndpoint)
  let decide: (request: SeenRequest) => Fault = () => undefined
  let isDown = false
  const sockets = new Set<Socket>()
  const seen: SeenRequest[] = []
  const server = createServer((incoming, outgoing) => {
    const what = describe(incoming)
    seen.push(what)
    incoming.on('error', () => {})
    pass(incoming, outgoing, target, decide(what))
  })
  server.on('connection', (socket) => {
    if (isDown) return socket.resetAndDestroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests so far. */
    seen,
    /** @param fault decides for each request */
    inflict: (fault: typeof decide) => {
      decide = fault
    },
    /** Like a server that went away, until `up` is called. */
    down: () => {
      isDown = true
      for (const socket of sockets) socket.resetAndDestroy()
    },
    up: () => {
      isDown = false
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

function describe({ method = '', url = '' }: IncomingMessage): SeenRequest {
  const { pathname: path, searchParams: query } = new URL(url, 'http://proxy')
  return {
    method,
    path,
    part: query.has('partNumber') ? Number(query.get('partNumber')) : undefined,
    begins: method === 'POST' && query.has('uploads'),
    joins: method === 'POST' && query.has('uploadId'),
    lists: method === 'GET' && (query.has('list-type') || query.has('uploads')),
  }
}

const page = '<html>a proxy speaks</html>'

const refusal = ({ status, code }: { status: number; code: string }) => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>Refused</Message></Error>`,
})

function pass(incoming: IncomingMessage, outgoing: ServerResponse, target: URL, fault: Fault): void {
  if (fault === 'silent') return
  if (typeof fault === 'object' && 'delayMs' in fault) {
    setTimeout(pass, fault.delayMs, incoming, outgoing, target, undefined)
    return
  }
  if (typeof fault === 'number' || typeof fault === 'object') {
    const { status, body } = typeof fault === 'number' ? { status: fault, body: page } : refusal(fault)
    incoming.resume()
    incoming.on('end', () => outgoing.writeHead(status).end(body))
    return
  }
  const { method, url, headers } = incoming
  // The Host header stays as it was sent: the signature covers it.
  const onward = request({
    hostname: target.hostname,
    port: target.port,
    method,
    path: url,
    headers,
    agent: false,
  })
  onward.on('error', () => outgoing.destroy())
  onward.on('response', (response) => {
    response.on('error', () => {})
    if (fault === 'lost') {
      response.resume()
      response.on('end', () => incoming.socket.resetAndDestroy())
      return
    }
    outgoing.writeHead(response.statusCode!, response.headers)
    response.pipe(outgoing)
  })
  outgoing.on('close', () => onward.destroy())
  if (fault === undefined || fault === 'lost') {
    incoming.pipe(onward)
    return
  }
  incoming.on('data', (chunk: Buffer) => {
    if (fault === 'damaged') chunk[0] = chunk[0]! ^ 1
    onward.write(chunk)
    if (fault === 'cut') incoming.socket.resetAndDestroy()
  })
  incoming.on('end', () => {
    // Without a body, this is its middle.
    if (fault === 'cut') incoming.socket.resetAndDestroy()
    onward.end()
  })
}
