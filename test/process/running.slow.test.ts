import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { revokeToken } from '../../src/auth/tokens.sql.ts'
import { readConfig } from '../../src/config.ts'
import { startService } from '../../src/start.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { setSeededStage } from '../support/ledgers/seeded-year.ts'
import { credentials } from '../support/ledgers/tenants.ts'
import { environment, runNode } from '../support/process.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService, testMasterKey } from '../support/service.ts'
import { until } from '../support/until.ts'

// The ledger is large, so an export whose client does not read keeps running.
const stage = forTests(() => setSeededStage(15_000))
const dataDir = forTests(() => openFolder('process'))

const settings = () => ({
  PORT: '0',
  DATA_DIR: dataDir.path,
  DATABASE_URL: stage.database.ownerUrl,
  MASTER_KEY: testMasterKey.toString('hex'),
  // The tests share one token. Its rate limit is counted in the database, across processes.
  RATE_LIMIT_REQUESTS: '100000',
})

/** Starts the service in its own process, from its entry point. */
const start = (own: Record<string, string> = {}) =>
  runNode(['src/main.ts'], { ...environment, ...settings(), ...own })

async function listening(output: { out: string }, child: ChildProcess): Promise<string> {
  await until(() => output.out.includes('service.listening') || child.exitCode !== null)
  const line = output.out.split('\n').find((text) => text.includes('service.listening'))
  return JSON.parse(line!).url
}

/** Begins an export. Nothing of its response is read until the caller reads it. */
async function stalled(url: string, headers = stage.signed): Promise<IncomingMessage> {
  const outgoing = get(url + stage.path, { headers, agent: false })
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  return response
}

describe('exports of one folder at once', () => {
  test('share the slots of all processes, and a client that leaves frees its slot', async () => {
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 2 }
    await using own = await startTestService(stage.database, { rateLimit })
    const { child, output, ended } = start({ RATE_LIMIT_CONCURRENT: '2' })
    try {
      const urls = [own.url, await listening(output, child)]
      const running = await Promise.all(urls.map((url) => stalled(url)))
      expect(running.map(({ statusCode }) => statusCode)).toEqual([200, 200])
      for (const url of urls) {
        const { status, headers, body } = await request(url + stage.path, stage.signed)
        expect([status, body.error.code]).toEqual([429, 'ERR-TOO-MANY-CONCURRENT-REQUEST'])
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        expect((await request(`${url}/api/v1/key/info`, stage.signed)).status).toBe(200)
      }
      running[0]!.destroy()
      await until(async () => (await request(urls[1]! + stage.path, stage.signed)).status === 200)
      running[1]!.destroy()
      await until(async () => (await request(urls[0]! + stage.path, stage.signed)).status === 200)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
  })

  test('free their slots however they end', async () => {
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1 }
    await using service = await startTestService(stage.database, { rateLimit })
    const ask = (own: Record<string, string> = {}, method = 'GET') =>
      request(service.url + stage.path, { ...stage.signed, Accept: 'application/x-ndjson', ...own }, method)
    const { headers } = await ask()
    const statuses = [
      await ask({}, 'HEAD'),
      await ask({ 'If-None-Match': headers.get('etag')! }),
      await ask({ Accept: 'image/png' }),
      await ask({ 'If-Match': '"another"' }),
      await ask(),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 304, 406, 412, 200])
  })

  test('hold no slot for a client that left before it got a slot', async () => {
    const proxy = await startProxy(stage.database.ownerUrl)
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1 }
    const { url, lines, stop } = await startTestService({ ownerUrl: proxy.url }, { rateLimit })
    const status = async () => (await request(url + stage.path, stage.signed, 'HEAD')).status
    try {
      await until(async () => (await status()) === 200)
      proxy.freeze()
      const leaving = get(url + stage.path, {
        headers: { ...stage.signed, 'x-request-id': 'leaving' },
        agent: false,
      })
      leaving.on('error', () => {})
      // `bytesWritten` also counts bytes that wait for the connection. The request has to reach the service.
      await once(leaving, 'finish')
      leaving.destroy()
      await until(() => lines.some((line) => line.includes('"requestId":"leaving"')))
      proxy.thaw()
      // At some point meanwhile, the service asks for a slot for the request that left.
      for (let round = 0; round < 5; round += 1) await until(async () => (await status()) === 200)
    } finally {
      proxy.thaw()
      await stop()
      await proxy.cut()
    }
  })
})

test('an export that is running when its token is revoked finishes, and the next request is refused', async () => {
  await using service = await startTestService(stage.database)
  const token = await stage.staff.token('ONE', 'api', stage.folder)
  const headers = credentials(token, stage.secret)
  const response = await stalled(service.url, headers)
  expect(await revokeToken(stage.staff.client, token.id)).toBeDefined()
  expect((await request(service.url + stage.path, headers)).status).toBe(401)
  expect(JSON.parse(await text(response))).toHaveLength(Number(response.trailers['x-row-count']))
})

test('a start that fails after binding its port says why, and leaves nothing running', async () => {
  const config = readConfig({ ...settings(), LOG_LEVEL: 'silent' })
  let url = ''
  const prepare = async () => (bound: string) => {
    url = bound
    throw new Error('no space left for the credentials')
  }
  await expect(startService(config, { prepare })).rejects.toThrow('no space left for the credentials')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
  await until(async () => {
    const { rowCount } = await stage.staff.client.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name like 'grandlivre%'`,
    )
    return rowCount === 0
  })
})

test('a start that the database refuses says why, without printing the password', async () => {
  const ownerUrl = stage.database.ownerUrl.replace(/:[^:@]+@/, ':hidden@')
  const refused = await startTestService({ ownerUrl }).catch((error: Error) => error.message)
  expect(refused).toContain('DATABASE_URL refuses the connection: password authentication failed')
  expect(refused).not.toContain('hidden')
})

test('a stopping service answers one more request of a busy connection, and closes it', async () => {
  const service = await startService(readConfig({ ...settings(), LOG_LEVEL: 'silent' }))
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const ask = (target: string) => {
    const headers = Object.entries({ Host: 'a', ...stage.signed }).map((header) => `${header.join(': ')}\r\n`)
    socket.write(`GET ${target} HTTP/1.1\r\n${headers.join('')}\r\n`)
  }
  ask(stage.path)
  await once(socket, 'readable')
  const drained = service.close()
  ask('/healthz')
  ask('/healthz')
  const answers = await text(socket)
  // Of the two further requests only the first is answered.
  expect(answers.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2)
  expect(answers.match(/\r\nconnection: close\r\n/gi)).toHaveLength(1)
  expect(await drained).toBe(true)
})

describe('the process', () => {
  test('reports not ready from SIGTERM on, and answers requests until DRAIN_SECONDS have passed', async () => {
    const { child, output, ended } = start({ DRAIN_SECONDS: '600' })
    const url = await listening(output, child)
    const first = await request(url + stage.path, { ...stage.signed, Accept: 'application/x-ndjson' }, 'HEAD')
    const since = first.headers.get('x-ledger-cursor')
    const waiting = request(`${url}${stage.path}&since=${since}&wait=25`, {
      ...stage.signed,
      Accept: 'application/x-ndjson',
    })
    await until(async () => {
      const { rowCount } = await stage.staff.client.query(
        `select from pg_stat_activity where application_name = 'grandlivre notifications'
         and datname = current_database()`,
      )
      return rowCount! > 0
    })
    child.kill('SIGTERM')
    await until(async () => (await request(`${url}/readyz`)).status === 503)
    const { body } = await request(`${url}/readyz`)
    expect(body.error.message).toBe('Not ready: stopping')
    expect((await waiting).status).toBe(200)
    const { status, headers } = await request(`${url}/api/v1/key/info`, stage.signed)
    expect([status, headers.get('connection')]).toEqual([200, 'close'])
    expect((await request(`${url}/healthz`)).status).toBe(200)
    expect(output.out).not.toContain('request.failed')
    await until(() => child.exitCode !== null || !child.kill('SIGTERM'))
    expect(await ended).toEqual([1, null])
  })

  test('cuts off running requests after STOP_SECONDS, and lists them', async () => {
    const { child, output, ended } = start({ DRAIN_SECONDS: '0', STOP_SECONDS: '1' })
    const response = await stalled(await listening(output, child))
    await once(response, 'readable')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    response.resume()
    await until(() => response.closed)
    expect(response.complete).toBe(false)
    const lines = output.out.trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line))
    expect(events.find(({ event }) => event === 'service.cut')).toMatchObject({
      answers: 1,
      paths: ['/api/v1/mad/movements'],
      streams: 1,
      bytes: expect.toSatisfy((bytes: number) => bytes > 0),
    })
    expect(events.at(-1)).toMatchObject({ event: 'service.stopped', drained: false })
  })

  test('skips the drain on Ctrl-C', async () => {
    const { child, output, ended } = start({ DRAIN_SECONDS: '600' })
    await listening(output, child)
    child.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  })

  test('lets running answers end after SIGTERM, accepts no new requests, and exits 0', async () => {
    const { child, output, ended } = start({ DRAIN_SECONDS: '1' })
    const url = await listening(output, child)
    const response = await stalled(url)
    child.kill('SIGTERM')
    await until(() =>
      fetch(`${url}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    const body = await text(response)
    expect(response.complete).toBe(true)
    expect(JSON.parse(body)).toHaveLength(Number(response.trailers['x-row-count']))
    expect(await ended).toEqual([0, null])
    expect(output.out).toContain('"event":"service.stopped","drained":true')
    expect(output.error).toBe('')
  })

  test('ends at once on a second signal', async () => {
    const { child, output, ended } = start()
    const response = await stalled(await listening(output, child))
    child.kill('SIGINT')
    await until(() => output.out.includes('service.stopping'))
    // The second signal must not follow at once: it would count as an echo of the first.
    await until(() => child.exitCode !== null || !child.kill('SIGINT'))
    expect(await ended).toEqual([1, null])
    response.destroy()
  })

  test('says what to do when its port is taken, and leaves nothing running', async () => {
    const blocker = createServer().listen(0, '127.0.0.1')
    await once(blocker, 'listening')
    const { port } = blocker.address() as AddressInfo
    const { output, ended } = start({ PORT: String(port) })
    expect(await ended).toEqual([1, null])
    expect(output.error).toBe(
      `Port ${port} of 127.0.0.1 is in use: stop the program that listens there, or set PORT (0 picks a free one)\n`,
    )
    blocker.close()
  })

  test('names a variable that looks like a mistyped setting', async () => {
    const { child, output, ended } = start({ RATE_LIMIT_REQUEST: '5', POSTGRES_PASSWORD: 'secret' })
    await listening(output, child)
    child.kill('SIGINT')
    await ended
    const unknown = output.out.split('\n').filter((line) => line.includes('setting.unknown'))
    expect(unknown.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', name: 'RATE_LIMIT_REQUEST', meant: 'RATE_LIMIT_REQUESTS' },
    ])
  })

  test('names every wrong setting at once', async () => {
    const { output, ended } = start({ PORT: 'x', MASTER_KEY: '', LOG_LEVEL: 'loud' })
    expect(await ended).toEqual([1, null])
    for (const name of ['PORT', 'MASTER_KEY', 'LOG_LEVEL']) expect(output.error).toContain(name)
    expect(output.error).not.toContain('    at ')
  })
})
