import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createListener } from '../../src/http/listener.ts'
import { createLog } from '../../src/log.ts'
import { noTelemetry } from '../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../src/timing.ts'
import { forTests } from '../support/for-tests.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

describe('a request is refused as too large', () => {
  const refused = [413, 'ERR-PAYLOAD-TOO-LARGE']

  test('because of its URL', async () => {
    const { status, headers, body } = await request(`${stage.service.url}/healthz?${'a'.repeat(20_000)}`)
    expect([status, body.error.code]).toEqual(refused)
    expect(body.error.details.url.length).toBeLessThan(4096)
    expect(headers.get('x-request-id')).toBe(body.error.details.requestId)
  })

  test('because of its headers', async () => {
    const { status, body } = await request(`${stage.service.url}/healthz`, { 'x-long': 'a'.repeat(50_000) })
    expect([status, body.error.code]).toEqual(refused)
  })

  test('because of its body', async () => {
    const response = await fetch(stage.service.url + keyInfo, { method: 'POST', body: 'a'.repeat(70_000) })
    const { error } = (await response.json()) as { error: { code: string } }
    expect([response.status, error.code]).toEqual(refused)
  })
})

describe('a malformed request', () => {
  async function raw(
    text: string,
  ): Promise<{ head: string; error: { code: string; details: { requestId: string } } }> {
    const socket = connect(Number(new URL(stage.service.url).port), '127.0.0.1')
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write(text)
    await once(socket, 'close')
    const [head, body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
    return { head: head!, ...JSON.parse(body!) }
  }

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
    ['an odd host', 'GET /healthz HTTP/1.1\r\nHost: a/b?c\r\n\r\n', 400],
    ['no path', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['a backslash in the path', 'GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['an odd expectation', 'GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: gold\r\n\r\n', 400],
  ])('with %s gets an error in the usual form', async (_what, text, status) => {
    const { head, error } = await raw(text)
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(error.code).toBe(status === 400 ? 'ERR-VALIDATION' : 'ERR-NOT-FOUND')
    expect(head.toLowerCase()).toContain(`x-request-id: ${error.details.requestId}`)
  })

  test('with an invalid chunked body gets an error in the usual form before the app answers', async () => {
    const headers = Object.entries({ ...stage.signed, 'Content-Type': 'application/json' })
    const { head, error } = await raw(
      `POST /api/v1/webhook HTTP/1.1\r\nHost: a\r\n${headers.map((pair) => `${pair.join(': ')}\r\n`).join('')}` +
        'Transfer-Encoding: chunked\r\n\r\nno length\r\n',
    )
    expect(head).toMatch(/^HTTP\/1.1 400 /)
    expect(error.code).toBe('ERR-VALIDATION')
    await until(() => stage.service.lines.some((line) => line.includes('"path":"/api/v1/webhook"')))
    const ended = stage.service.lines.find((line) => line.includes('"path":"/api/v1/webhook"'))!
    expect(JSON.parse(ended)).toMatchObject({ event: 'request.ended', cutOff: true })
    expect(JSON.parse(ended)).not.toHaveProperty('status')
    expect(stage.service.lines.filter((line) => line.includes('request.failed'))).toEqual([])
  })
})

test.each(['a:', 'LocalHost:80', '[::FFFF:127.0.0.1]', '[0:0:0:0:0:0:0:1]:8080'])(
  'an unusual but valid host is accepted: %s',
  async (host) => {
    const outgoing = rawRequest(`${stage.service.url}/healthz`, { headers: { host }, agent: false }).end()
    const [response] = await once(outgoing, 'response')
    response.resume()
    expect(response.statusCode).toBe(200)
  },
)

/** Starts a listener for one test, and connects to it. */
async function listen(
  answer: Parameters<typeof createListener>[0],
  timing: Partial<typeof defaultTiming.listener>,
) {
  const services = { log: createLog('silent'), telemetry: noTelemetry }
  const server = createListener(answer, services, { ...defaultTiming.listener, ...timing })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => new Promise<void>((done) => server.close(() => done())))
  await once(server, 'listening')
  return { server, socket: connect((server.address() as AddressInfo).port, '127.0.0.1') }
}

test.each([
  ['headers', 'POST / HTTP/1.1\r\nHost: a\r\n'],
  ['body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfour'],
])('a request that stalls in its %s gets an error that states the time limits', async (_what, text) => {
  const read = async (incoming: Request) => new Response(await incoming.text())
  const { socket } = await listen(read, { headersMs: 100, requestMs: 200, checkMs: 50 })
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  const [head, body] = answer.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1.1 400 /)
  expect(JSON.parse(body!).error.details.issues).toEqual([
    { parameter: 'request', message: 'must be sent within 0.1 seconds, and 0.2 with its body' },
  ])
})

test('a client that stops reading its answer is disconnected', async () => {
  const cutOff = Promise.withResolvers<void>()
  const endless = () =>
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => cutOff.resolve(),
    })
  const { socket } = await listen(() => new Response(endless()), { idleMs: 100 })
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await cutOff.promise
  socket.destroy()
})

describe('a connection that has sent nothing yet', () => {
  test('gets no error, and its first request is answered however late it comes', async () => {
    const timing = { headersMs: 100, requestMs: 100, checkMs: 50 }
    const { server, socket } = await listen(() => new Response('there'), timing)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(server, 'clientError')
    server.headersTimeout = 10_000
    expect(answer).toBe('')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    expect([answer.split('\r\n')[0], answer.slice(-5)]).toEqual(['HTTP/1.1 200 OK', 'there'])
  })
})

test('later requests on a keep-alive connection are answered like the first one', async () => {
  const { port } = new URL(stage.service.url)
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  for (let count = 0; count < 3; count += 1) {
    const outgoing = rawRequest({
      createConnection: () => socket,
      path: '/healthz',
      headers: { Host: 'x', Connection: 'keep-alive' },
    })
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    response.resume()
    await once(response, 'end')
    expect(response.statusCode).toBe(200)
  }
  socket.destroy()
})
