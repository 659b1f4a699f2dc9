/** Exports that fail, or whose client leaves: nobody is told that they are whole, and nothing of them stays. */
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:http'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { limits } from '../../../src/config.ts'
import { download, movementsUrl, open } from '../../support/download.ts'
import { addLargeExercice, largeExercice, runningQueries } from '../../support/ledgers/large-exercice.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { startProxy } from '../../support/servers/proxy.ts'
import { startTestService } from '../../support/service.ts'
import { type ExportStage, setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

let stage: ExportStage
/** Not the connection that holds locks: in a transaction, what PostgreSQL tells of its sessions stands still. */
let observer: pg.Client

beforeAll(async () => {
  stage = await setExportStage({ exportThreads: 2 })
  await addLargeExercice(stage.staff.client, 30_000)
  observer = new pg.Client({ connectionString: stage.database.ownerUrl })
  await observer.connect()
})

afterAll(async () => {
  await observer?.end()
  await stage?.close()
})

afterEach(async () => {
  await until(async () => (await runningQueries(observer)).length === 0)
  // Whatever happened, the next export is whole.
  expect((await download(small(), stage.company)).trailers['x-row-count']).toMatch(/^[1-9]\d*$/)
})

const small = (query = {}) => movementsUrl(stage.service.url, { idExercice: '11', ...query })
const large = (query = {}) => movementsUrl(stage.service.url, { idExercice: largeExercice, ...query })

/** Reads until something has come, and no further. */
async function begin(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const message = await open(url, headers)
  expect(message.statusCode).toBe(200)
  await once(message, 'readable')
  expect(message.read(1)).not.toBeNull()
  return message
}

/** Reads on to the end, which has to be a broken one. */
async function expectBroken(message: IncomingMessage): Promise<void> {
  const reading = (async () => {
    for await (const _ of message);
  })()
  await expect(reading).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(message.complete).toBe(false)
  expect(message.trailers).toEqual({})
}

/** Whether anything of the service waits for a lock. */
async function waitsForLock(): Promise<boolean> {
  const { rowCount } = await observer.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
       and application_name like 'grandlivre%'`,
  )
  return rowCount! > 0
}

/** Asks for the large export and gives no attention to what becomes of it. */
function askAndForget(headers: Record<string, string> = {}, url = large()): ClientRequest {
  const outgoing = request(url, { headers: { ...stage.company, ...headers }, agent: false })
  outgoing.on('error', () => {})
  return outgoing.end()
}

/** While this runs, whoever reads the table waits. */
async function withLock<T>(table: string, run: () => Promise<T>): Promise<T> {
  await stage.staff.client.query(`begin; lock table grandlivre.${table} in access exclusive mode`)
  try {
    return await run()
  } finally {
    await stage.staff.client.query('rollback')
  }
}

/** Long enough for a thread to begin what it was given: it begins and ends another export meanwhile. */
async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) expect((await download(small({ after: '1' }), stage.company)).status).toBe(400)
}

const leave = (message: IncomingMessage) => message.destroy()

const terminate = (which: string) =>
  observer.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre export' and query like $1`,
    [`%${which}%`],
  )

describe('a database connection that dies in mid-stream', () => {
  test.each([
    ['of the movements', 'from movements', {}],
    ['of both', 'copy', {}],
    ['of a compressed export', 'from movements', { 'Accept-Encoding': 'zstd' }],
    ['of another', 'from movements', { 'Accept-Encoding': 'gzip', Accept: 'application/x-ndjson' }],
  ])('breaks the transfer off: %s', async (_what, query, headers) => {
    const printed = vi.spyOn(console, 'error')
    for (let round = 0; round < 3; round++) {
      const message = await begin(large(), { ...stage.company, ...headers })
      expect((await terminate(query)).rowCount).toBeGreaterThan(0)
      await expectBroken(message)
    }
    const broken = stage.service.lines
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event === 'stream.broken')
    expect(broken.length).toBeGreaterThanOrEqual(3)
    expect(printed, 'the log is the only place where it is told').not.toHaveBeenCalled()
  })

  test('before the first byte is answered with 503', async () => {
    const { status, json, headers } = await withLock('movements', async () => {
      const answer = download(large(), stage.company)
      await until(waitsForLock)
      await terminate('from movements')
      return answer
    })
    expect([status, json.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    expect(headers.etag).toBeUndefined()
  })
})

describe('a client that leaves', () => {
  const failures = () => stage.service.lines.filter((line) => line.includes('request.failed')).length
  let failuresBefore: number

  beforeEach(() => {
    failuresBefore = failures()
  })

  // That is no fault of the service, and must wake nobody.
  afterEach(() => expect(failures()).toBe(failuresBefore))

  test('in mid-stream ends its query', async () => {
    for (const headers of [{}, { 'Accept-Encoding': 'gzip' }]) {
      const message = await begin(large(), { ...stage.company, ...headers })
      expect(await runningQueries(observer)).not.toEqual([])
      leave(message)
      await until(async () => (await runningQueries(observer)).length === 0)
    }
  })

  test.each(['movements', 'entries', 'accounts'])(
    'while the database has not answered with any of %s ends its query',
    async (table) => {
      await withLock(table, async () => {
        const outgoing = askAndForget()
        await until(waitsForLock)
        outgoing.destroy()
        await until(async () => !(await waitsForLock()))
      })
    },
  )

  test('before its export has begun gets none', async () => {
    await withLock('entries', async () => {
      const folderLock = new pg.Client({ connectionString: stage.database.ownerUrl })
      await folderLock.connect()
      await folderLock.query('begin; lock table grandlivre.folders in access exclusive mode')
      const outgoing = askAndForget({ 'x-request-id': 'left-early' })
      await until(waitsForLock)
      outgoing.destroy()
      await until(() => stage.service.lines.some((line) => line.includes('"left-early"')))
      await folderLock.end()
      // Were the export to begin all the same, it would wait for the entries until they are free.
      await until(async () => !(await waitsForLock()))
      await settled()
      expect(await waitsForLock()).toBe(false)
    })
  })

  test('leaves no connection behind, however many leave', async () => {
    const connections = async (): Promise<number> => {
      const { rows } = await observer.query(
        `select count(*)::int as count from pg_stat_activity
         where datname = current_database() and application_name = 'grandlivre export'`,
      )
      return rows[0].count
    }
    for (let round = 0; round < 3; round++) {
      const messages = await Promise.all(Array.from({ length: 8 }, () => begin(large(), stage.company)))
      messages.forEach(leave)
      await until(async () => (await runningQueries(observer)).length === 0)
    }
    // A connection in the midst of its rows is of no further use, and is closed.
    await until(async () => (await connections()) <= 2 * 2)
    await until(() => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length <= 2)
  })
})

test('more exports of a folder than its places are refused, and others are not', async () => {
  const running = await Promise.all(Array.from({ length: 10 }, () => begin(large(), stage.company)))
  const refused = await download(small(), stage.company)
  expect([refused.status, refused.json.error.code]).toEqual([429, 'ERR-TOO-MANY-CONCURRENT-REQUEST'])
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  const other = { ...stage.firm, 'society-id': folders.sameFirm.folderId }
  expect((await download(small(), other)).status).toBe(200)
  leave(running.pop()!)
  await until(async () => (await download(small(), stage.company)).status === 200)
  running.forEach(leave)
  await until(async () => (await runningQueries(observer)).length === 0)
})

test('more exports than the threads and their queue hold are told to come back', async () => {
  const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1000 }
  const service = await startTestService(stage.database, { exportThreads: 1, rateLimit })
  try {
    const url = movementsUrl(service.url, { idExercice: largeExercice })
    const running = await Promise.all(
      Array.from({ length: limits.exportsPerThread }, () => begin(url, stage.company)),
    )
    const waiting = Array.from({ length: limits.exportQueueMax }, () => {
      const outgoing = request(url, { headers: stage.company, agent: false })
      outgoing.on('error', () => {})
      return outgoing.end()
    })
    let refused = await download(url, stage.company, 'HEAD')
    await until(async () => {
      const outgoing = request(url, { headers: stage.company, agent: false })
      outgoing.on('error', () => {})
      waiting.push(outgoing.end())
      const answered = await Promise.race([
        once(outgoing, 'response'),
        new Promise((go) => setTimeout(go, 200)),
      ])
      if (answered) refused = await download(url, stage.company)
      return Boolean(answered)
    })
    expect([refused.status, refused.json.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    for (const outgoing of waiting) outgoing.destroy()
    running.forEach(leave)
    const next = movementsUrl(service.url, { idExercice: '11' })
    await until(async () => (await download(next, stage.company)).status === 200)
  } finally {
    await service.stop()
  }
})

test('a database that is away is 503, and the export goes when it is back', async () => {
  const proxy = await startProxy(stage.database.serviceUrl)
  const service = await startTestService(stage.database, { exportDatabaseUrl: proxy.url })
  try {
    const url = movementsUrl(service.url, { idExercice: largeExercice })
    const message = await begin(url, stage.company)
    await proxy.cut()
    await expectBroken(message)
    const { status, json, headers, text } = await download(url, stage.company)
    expect([status, json.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    expect(text).not.toMatch(/ECONN|127\.0\.0\.1|postgres/)
    await proxy.restore()
    const whole = await download(url, stage.company)
    expect(whole.trailers).toEqual({ 'x-row-count': '30000', 'x-content-sha256': whole.sha256 })
  } finally {
    await service.stop()
    await proxy.cut()
  }
})
