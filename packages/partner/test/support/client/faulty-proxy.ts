import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { beforeEach } from 'vitest'

/** What goes wrong with one answer. */
export type Fault =
  /**
   * The connection is reset after this many bytes of the body. One bit of them may be wrong, and the header ETag may be
   * dropped.
   */
  | { kind: 'cut'; afterBytes: number; at?: number; isWithoutETag?: boolean }
  /** Nothing comes after this many bytes of the body, and the connection stays. */
  | { kind: 'stall'; afterBytes: number }
  /** The body ends properly after this many bytes, without trailers. */
  | { kind: 'end'; afterBytes: number }
  /** The whole body, without trailers. */
  | { kind: 'noTrailers' }
  /** The whole body, with some trailers dropped or changed, and perhaps one wrong bit. */
  | { kind: 'trailers'; dropped?: string[]; changed?: Record<string, string>; at?: number }
  /** The byte at this place of the body has one wrong bit. */
  | { kind: 'flip'; at: number }
  /** The connection is reset before an answer. */
  | { kind: 'refuse' }
  /** The body that `body` makes of the whole body, without trailers. */
  | { kind: 'rewrite'; body: (whole: Buffer) => Buffer | Iterable<Buffer> }
  /** This answer replaces the answer of the service. */
  | { kind: 'answer'; status: number; headers?: Record<string, string>; body?: string }

export interface FaultyProxy {
  url: string
  /** Requests so far: method, and address without the host. */
  asked: { method: string; path: string; headers: IncomingMessage['headers']; body: () => string }[]
  /** Decides on each request. Default: nothing goes wrong. */
  fault: (path: string, nth: number) => Fault | undefined | Promise<Fault | undefined>
  /** Bytes of all bodies that the service has sent so far. */
  bytes: number
  /** Number of answers that the service is still sending. */
  open(): number
  close(): Promise<void>
}

/**
 * Spoils the first answers to requests with such a path, with one fault each.
 * @returns the faults that have not happened yet
 */
export function spoil(proxy: FaultyProxy, faults: readonly (Fault | undefined)[], path = /./) {
  const left = [...faults]
  proxy.fault = (asked) => (path.test(asked) ? left.shift() : undefined)
  return left
}

/** Removes the fault and the recorded requests before each test. */
export function untouched(proxyOf: () => FaultyProxy): void {
  beforeEach(() => {
    Object.assign(proxyOf(), { asked: [], fault: () => undefined })
  })
}

/** An HTTP proxy between a client and the service that spoils answers as the test says. */
export async function startFaultyProxy(serviceUrl: string): Promise<FaultyProxy> {
  let open = 0
  const server = createServer((near, answer) => {
    const path = near.url ?? '/'
    const sent: Buffer[] = []
    const body = () => Buffer.concat(sent).toString()
    proxy.asked.push({ method: near.method ?? '', path, headers: near.headers, body })
    Promise.resolve(proxy.fault(path, proxy.asked.length))
      .then((fault) => {
        if (fault?.kind === 'refuse') return near.destroy()
        if (fault?.kind === 'answer')
          return answer.writeHead(fault.status, fault.headers).end(fault.body ?? '')
        const far = send(serviceUrl + path, { method: near.method, headers: near.headers, agent: false })
        far.on('error', () => answer.destroy())
        far.on('response', (response) => {
          open += 1
          response.on('data', (chunk: Buffer) => {
            proxy.bytes += chunk.length
          })
          response.on('close', () => {
            open -= 1
          })
          relay(response, answer, fault)
        })
        answer.on('close', () => far.destroy())
        near.on('data', (chunk: Buffer) => sent.push(chunk)).pipe(far)
      })
      .catch(() => answer.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    bytes: 0,
    fault: () => undefined,
    open: () => open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return proxy
}

function relay(response: IncomingMessage, answer: ServerResponse, fault: Fault | undefined): void {
  const headers = { ...response.headers }
  if (fault?.kind === 'cut' && fault.isWithoutETag) delete headers.etag
  answer.writeHead(response.statusCode ?? 502, headers)
  answer.flushHeaders()
  if (fault?.kind === 'rewrite') return void rewrite(response, answer, fault.body)
  let sent = 0
  let isSpoiled = false
  response.on('error', () => answer.destroy())
  response.on('data', (chunk: Buffer) => {
    const left = fault && 'afterBytes' in fault ? fault.afterBytes - sent : chunk.length
    const part = Buffer.from(chunk.subarray(0, Math.max(0, left)))
    const wrong = fault && 'at' in fault ? fault.at : -1
    if (wrong >= sent && wrong < sent + chunk.length) part[wrong - sent]! ^= 1
    sent += part.length
    if (part.length === chunk.length) {
      if (answer.write(part)) return
      response.pause()
      answer.once('drain', () => response.resume())
      return
    }
    isSpoiled = true
    response.pause()
    answer.write(part, () => {
      if (fault?.kind === 'cut') answer.destroy()
      if (fault?.kind === 'end') answer.end()
    })
  })
  response.on('end', () => {
    if (isSpoiled) return
    let trailers = { ...response.trailers }
    if (fault?.kind === 'trailers') {
      trailers = { ...trailers, ...fault.changed }
      for (const name of fault.dropped ?? []) delete trailers[name]
    }
    if (fault?.kind !== 'noTrailers' && Object.keys(trailers).length > 0)
      answer.addTrailers(trailers as Record<string, string>)
    answer.end()
  })
}

async function rewrite(
  response: IncomingMessage,
  answer: ServerResponse,
  body: (whole: Buffer) => Buffer | Iterable<Buffer>,
): Promise<void> {
  const made = body(Buffer.concat(await response.toArray()))
  // The client may hang up in between.
  await pipeline(Readable.from(Buffer.isBuffer(made) ? [made] : made), answer).catch(() => undefined)
}
