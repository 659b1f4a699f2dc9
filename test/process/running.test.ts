import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SeededFolder } from '../../packages/sample/src/seed.ts'
import { revokeToken } from '../../src/auth/tokens.sql.ts'
import { readConfig } from '../../src/config.ts'
import { startService } from '../../src/start.ts'
import { seededYear } from '../support/ledgers/seeded-year.ts'
import { createTenants, credentials, type Staff } from '../support/ledgers/tenants.ts'
import { environment, runNode } from '../support/process.ts'
import { copyLedger, type TestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService, testMasterKey } from '../support/service.ts'
import { until } from '../support/until.ts'

/** The tests share one token, and the windows of its limit are in the database. */
const noRateLimit = { RATE_LIMIT_REQUESTS: '100000' }

let database: TestDatabase
let staff: Staff
let folder: SeededFolder
let secret: string
let signed: Record<string, string>
let path: string

beforeAll(async () => {
  // An export whose client does not read keeps running.
  const ledger = await copyLedger(seededYear(15_000))
  database = ledger.database
  folder = ledger.facts
  staff = await createTenants(database.ownerUrl)
  secret = await staff.thirdParty('ONE')
  signed = credentials(await staff.token('ONE', 'api', folder), secret)
  path = `/api/v1/mad/movements?version=1.0.0&idExercice=${folder.exercices[1]!.id}`
})

afterAll(async () => {
  await staff?.end()
  await database?.drop()
})

/** Data folders of the processes that tests start. */
const dataDirs: string[] = []

afterAll(async () => {
  for (const name of dataDirs) await rm(name, { recursive: true, force: true })
})

/** The service in a process of its own, from its entry point. */
async function start(settings: Record<string, string> = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-process-'))
  dataDirs.push(dataDir)
  const env = {
    ...environment,
    PORT: '0',
    DATA_DIR: dataDir,
    DATABASE_URL: database.ownerUrl,
    MASTER_KEY: testMasterKey.toString('hex'),
    ...noRateLimit,
    ...settings,
  }
  return runNode(['src/main.ts'], env)
}

async function listening(output: { out: string }, child: ChildProcess): Promise<string> {
  await until(() => output.out.includes('service.listening') || child.exitCode !== null)
  const line = output.out.split('\n').find((text) => text.includes('service.listening'))
  return JSON.parse(line!).url
}

/** An export whose client reads nothing until it is read. */
async function stalled(url: string, headers = signed): Promise<IncomingMessage> {
  const outgoing = get(url + path, { headers, agent: false })
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  return response
}

describe('exports of one folder at once', () => {
  test('share the slots of all processes, and a client that leaves frees one', async () => {
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 2 }
    const own = await startTestService(database, { rateLimit })
    const { child, output, ended } = await start({ RATE_LIMIT_CONCURRENT: '2' })
    const urls = [own.url, await listening(output, child)]
    try {
      const running = await Promise.all(urls.map((url) => stalled(url)))
      expect(running.map(({ statusCode }) => statusCode)).toEqual([200, 200])
      for (const url of urls) {
        const { status, headers, body } = await request(url + path, signed)
        expect([status, body.error.code]).toEqual([429, 'ERR-TOO-MANY-CONCURRENT-REQUEST'])
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        expect((await request(`${url}/api/v1/key/info`, signed)).status).toBe(200)
      }
      running[0]!.destroy()
      await until(async () => (await request(urls[1]! + path, signed)).status === 200)
      running[1]!.destroy()
      await until(async () => (await request(urls[0]! + path, signed)).status === 200)
    } finally {
      child.kill('SIGKILL')
      await ended
      await own.stop()
    }
  })

  test('free their slots however they end', async () => {
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1 }
    const { url, stop } = await startTestService(database, { rateLimit })
    try {
      const headers = { ...signed, Accept: 'application/x-ndjson' }
      const { headers: first } = await request(url + path, headers)
      const statuses = [
        await request(url + path, headers, 'HEAD'),
        await request(url + path, { ...headers, 'If-None-Match': first.get('etag')! }),
        await request(url + path, { ...headers, Accept: 'image/png' }),
        await request(url + path, { ...headers, 'If-Match': '"another"' }),
        await request(url + path, headers),
      ].map(({ status }) => status)
      expect(statuses).toEqual([200, 304, 406, 412, 200])
    } finally {
      await stop()
    }
  })

  test('hold no slot for a client that left before it got one', async () => {
    const proxy = await startProxy(database.ownerUrl)
    const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1 }
    const { url, lines, stop } = await startTestService({ ownerUrl: proxy.url }, { rateLimit })
    const status = async () => (await request(url + path, signed, 'HEAD')).status
    try {
      await until(async () => (await status()) === 200)
      proxy.freeze()
      const leaving = get(url + path, { headers: { ...signed, 'x-request-id': 'leaving' }, agent: false })
      leaving.on('error', () => {})
      // Not `bytesWritten`, which counts what waits for the connection: the request has to reach the service.
      await once(leaving, 'finish')
      leaving.destroy()
      await until(() => lines.some((line) => line.includes('"requestId":"leaving"')))
      proxy.thaw()
      // Its slot is requested at some point meanwhile.
      for (let round = 0; round < 5; round += 1) await until(async () => (await status()) === 200)
    } finally {
      proxy.thaw()
      await stop()
      await proxy.cut()
    }
  })
})

test('an export that runs when its token is revoked finishes, and the next request is refused', async () => {
  const { url, stop } = await startTestService(database)
  try {
    const token = await staff.token('ONE', 'api', folder)
    const headers = credentials(token, secret)
    const response = await stalled(url, headers)
    expect(await revokeToken(staff.client, token.id)).toBeDefined()
    expect((await request(url + path, headers)).status).toBe(401)
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    expect(JSON.parse(text)).toHaveLength(Number(response.trailers['x-row-count']))
  } finally {
    await stop()
  }
})

test('a start that fails after binding its port says why, and leaves nothing running', async () => {
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: database.ownerUrl,
    MASTER_KEY: testMasterKey.toString('hex'),
    LOG_LEVEL: 'silent',
  })
  let url = ''
  const prepare = async () => (bound: string) => {
    url = bound
    throw new Error('no space left for the credentials')
  }
  await expect(startService(config, { prepare })).rejects.toThrow('no space left for the credentials')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
  await until(async () => {
    const { rowCount } = await staff.client.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name like 'grandlivre%'`,
    )
    return rowCount === 0
  })
})

test('a start that the database refuses says why, without the password', async () => {
  const ownerUrl = database.ownerUrl.replace(/:[^:@]+@/, ':hidden@')
  const refused = await startTestService({ ownerUrl }).catch((error: Error) => error.message)
  expect(refused).toContain('DATABASE_URL refuses the connection: password authentication failed')
  expect(refused).not.toContain('hidden')
})

test('a stopping service answers one more request of a busy connection, and closes it', async () => {
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: database.ownerUrl,
    MASTER_KEY: testMasterKey.toString('hex'),
    LOG_LEVEL: 'silent',
    ...noRateLimit,
  })
  const service = await startService(config)
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  const ask = (target: string) => {
    const headers = Object.entries({ Host: 'a', ...signed }).map((header) => `${header.join(': ')}\r\n`)
    socket.write(`GET ${target} HTTP/1.1\r\n${headers.join('')}\r\n`)
  }
  ask(path)
  await once(socket, 'readable')
  const drained = service.close()
  ask('/healthz')
  ask('/healthz')
  let answers = ''
  for await (const chunk of socket.setEncoding('utf8')) answers += chunk
  // Of the two further requests only the first is answered.
  expect(answers.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2)
  expect(answers.match(/\r\nconnection: close\r\n/gi)).toHaveLength(1)
  expect(await drained).toBe(true)
})

describe('the process', () => {
  test('is not ready from SIGTERM on, and answers requests until DRAIN_SECONDS are over', async () => {
    const { child, output, ended } = await start({ DRAIN_SECONDS: '600' })
    const url = await listening(output, child)
    const first = await request(url + path, { ...signed, Accept: 'application/x-ndjson' }, 'HEAD')
    const since = first.headers.get('x-ledger-cursor')
    const waiting = request(`${url}${path}&since=${since}&wait=25`, {
      ...signed,
      Accept: 'application/x-ndjson',
    })
    await until(async () => {
      const { rowCount } = await staff.client.query(
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
    const { status, headers } = await request(`${url}/api/v1/key/info`, signed)
    expect([status, headers.get('connection')]).toEqual([200, 'close'])
    expect((await request(`${url}/healthz`)).status).toBe(200)
    expect(output.out).not.toContain('request.failed')
    await until(() => child.exitCode !== null || !child.kill('SIGTERM'))
    expect(await ended).toEqual([1, null])
  })

  test('cuts off what runs when STOP_SECONDS are over, and says what', async () => {
    const { child, output, ended } = await start({ DRAIN_SECONDS: '0', STOP_SECONDS: '1' })
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

  test('drains nothing on Ctrl-C', async () => {
    const { child, output, ended } = await start({ DRAIN_SECONDS: '600' })
    await listening(output, child)
    child.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  })

  test('lets running answers end after SIGTERM, accepts no new requests, and exits 0', async () => {
    const { child, output, ended } = await start({ DRAIN_SECONDS: '1' })
    const url = await listening(output, child)
    const response = await stalled(url)
    child.kill('SIGTERM')
    await until(async () => {
      try {
        await fetch(`${url}/healthz`)
        return false
      } catch {
        return true
      }
    })
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    expect(response.complete).toBe(true)
    expect(JSON.parse(text)).toHaveLength(Number(response.trailers['x-row-count']))
    expect(await ended).toEqual([0, null])
    expect(output.out).toContain('"event":"service.stopped","drained":true')
    expect(output.error).toBe('')
  })

  test('ends at once on a second signal', async () => {
    const { child, output, ended } = await start()
    const response = await stalled(await listening(output, child))
    child.kill('SIGINT')
    await until(() => output.out.includes('service.stopping'))
    // A signal that follows at once may be an echo of the first.
    await until(() => child.exitCode !== null || !child.kill('SIGINT'))
    expect(await ended).toEqual([1, null])
    response.destroy()
  })

  test('says what to do when its port is taken, and leaves nothing running', async () => {
    const blocker = createServer().listen(0, '127.0.0.1')
    await once(blocker, 'listening')
    const { port } = blocker.address() as AddressInfo
    const { output, ended } = await start({ PORT: String(port) })
    expect(await ended).toEqual([1, null])
    expect(output.error).toBe(
      `Port ${port} of 127.0.0.1 is in use: stop the program that listens there, or set PORT (0 picks a free one)\n`,
    )
    blocker.close()
  })

  test('names a variable that looks like a mistyped setting', async () => {
    const { child, output, ended } = await start({ RATE_LIMIT_REQUEST: '5', POSTGRES_PASSWORD: 'secret' })
    await listening(output, child)
    child.kill('SIGINT')
    await ended
    const unknown = output.out.split('\n').filter((line) => line.includes('setting.unknown'))
    expect(unknown.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', name: 'RATE_LIMIT_REQUEST', meant: 'RATE_LIMIT_REQUESTS' },
    ])
  })

  test('names every wrong setting at once', async () => {
    const { output, ended } = await start({ PORT: 'x', MASTER_KEY: '', LOG_LEVEL: 'loud' })
    expect(await ended).toEqual([1, null])
    for (const name of ['PORT', 'MASTER_KEY', 'LOG_LEVEL']) expect(output.error).toContain(name)
    expect(output.error).not.toContain('    at ')
  })
})
