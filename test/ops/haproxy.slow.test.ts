/** `ops/haproxy/haproxy.cfg` in front of two services: what partners get is what the service sends. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { Agent, get } from 'node:https'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { download } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { setSeededStage } from '../support/ledgers/seeded-year.ts'
import { type Haproxy, isHaproxyInstalled, startHaproxy } from '../support/ops/haproxy.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

// A stream of thirty megabytes, more than all buffers on the way hold.
const stage = forTests(() => setSeededStage(36_000))
const services: ServiceProcess[] = []
let haproxy: Haproxy
let agent: Agent
let signed: Record<string, string>
let path: string

beforeAll(async () => {
  path = stage.path
  signed = { ...stage.signed, Accept: 'application/x-ndjson' }
  const settings = {
    DATABASE_URL: stage.database.ownerUrl,
    DRAIN_SECONDS: '600',
    LOG_LEVEL: 'debug',
  }
  const [one, two] = await Promise.all([startProcess(settings), startProcess(settings)])
  services.push(one, two)
  haproxy = await startHaproxy([one.url, two.url])
  agent = new Agent({ ca: haproxy.ca })
  // Waits until HAProxy has found both services ready. Otherwise it may send requests to one that is not.
  const isChecked = (line: string) => /"path":"\/readyz","status":200/.test(line)
  await until(() => services.every((service) => service.log().filter(isChecked).length > 1))
})

afterAll(async () => {
  await haproxy?.close()
  for (const service of services) await service.kill()
})

async function ask(target: string, headers: Record<string, string> = signed): Promise<IncomingMessage> {
  const [answer] = await once(get(haproxy.url + target, { headers, agent }), 'response')
  answer.on('error', () => {})
  return answer
}

const hashOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of answer) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

test.skipIf(!isHaproxyInstalled)(
  'a stream through HAProxy arrives with its trailers, over HTTP/1.1 and HTTP/2',
  async () => {
    const direct = await download(services[0]!.url + path, signed)
    const first = await ask(path)
    const text = await textOf(first)
    expect(first.httpVersion).toBe('1.1')
    expect(hashOf(text)).toBe(direct.sha256)
    expect(first.trailers).toMatchObject({
      'x-row-count': String(text.trimEnd().split('\n').length),
      'x-content-sha256': hashOf(text),
    })

    const session = connect(haproxy.url, { ca: haproxy.ca })
    const names = Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value])
    const stream = session.request({ ':path': path, ...Object.fromEntries(names) })
    let trailers: IncomingHttpHeaders = {}
    stream.on('trailers', (given) => (trailers = given))
    const hash = createHash('sha256')
    for await (const piece of stream) hash.update(piece)
    session.close()
    expect(hash.digest('hex')).toBe(hashOf(text))
    expect(trailers).toMatchObject(first.trailers)
  },
)

test.skipIf(!isHaproxyInstalled)('a client that does not read stops the stream at the service', async () => {
  const hasEnded = ({ headers }: IncomingMessage) =>
    services
      .flatMap((one) => one.log())
      .some((line) => line.includes('"request.ended"') && line.includes(String(headers['x-request-id'])))
  const stalled = await ask(path)
  // Another stream, which is read, overtakes it.
  const other = await ask(path)
  await textOf(other)
  await until(() => hasEnded(other))
  expect(hasEnded(stalled)).toBe(false)
  await textOf(stalled)
  expect(stalled.complete).toBe(true)
  await until(() => hasEnded(stalled))
})

test.skipIf(!isHaproxyInstalled)('a waiting request gets its answer through HAProxy', async () => {
  const head = await ask(path)
  head.destroy()
  const answer = await ask(`${path}&since=${head.headers['x-ledger-cursor']}&wait=2`)
  await textOf(answer)
  expect([answer.statusCode, answer.complete]).toEqual([200, true])
})

test.skipIf(!isHaproxyInstalled)('if no service is ready, one of them answers with the reason', async () => {
  const ready = async () => (await ask('/readyz')).resume().statusCode === 200
  services[0]!.child.kill('SIGTERM')
  // Requests alternate between the services, so four ready answers in a row all come from the other one.
  await until(async () => (await ready()) && (await ready()) && (await ready()) && (await ready()))
  services[1]!.child.kill('SIGTERM')
  await until(async () => {
    const answer = await ask('/readyz')
    const text = await textOf(answer)
    return answer.statusCode === 503 && JSON.parse(text).error.message === 'Not ready: stopping'
  })
  const info = await ask('/api/v1/key/info')
  info.resume()
  expect(info.statusCode).toBe(200)
})
