/** Exports that fail, or whose client leaves: they never look complete, and they leave nothing running. */
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:http'
import pg from 'pg'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { defaultExportsPerThread, limits } from '../../../src/config.ts'
import { download, movementsUrl, open } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice, runningQueries } from '../../support/ledgers/large-exercice.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { connect } from '../../support/servers/database.ts'
import { startProxy } from '../../support/servers/proxy.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(() => setExportStage({ exportThreads: 2 }))
/** Does not share the connection that holds locks, because pg_stat_activity does not change within a transaction. */
const observer = forTests(() => connect(stage.database.ownerUrl))

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, 30_000)
})

afterEach(async () => {
  await until(async () => (await runningQueries(observer)).length === 0)
  // After each test the next export is complete.
  expect((await download(small(), stage.company)).trailers['x-row-count']).toMatch(/^[1-9]\d*$/)
})

const small = (query = {}) => movementsUrl(stage.service.url, { idExercice: '11', ...query })
const large = (query = {}) => movementsUrl(stage.service.url, { idExercice: largeExercice, ...query })

/** Reads the first byte of a download and no further. */
async function begin(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const message = await open(url, headers)
  expect(message.statusCode).toBe(200)
  await once(message, 'readable')
  expect(message.read(1)).not.toBeNull()
  return message
}

/** Reads to the end, and expects the transfer to be broken off. */
async function expectBroken(message: IncomingMessage): Promise<void> {
  const reading = (async () => {
    for await (const _ of message);
  })()
  await expect(reading).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(message.complete).toBe(false)
  expect(message.trailers).toEqual({})
}

/** Whether a connection of the service waits for a lock. */
async function waitsForLock(): Promise<boolean> {
  const { rowCount } = await observer.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
       and application_name like 'grandlivre%'`,
  )
  return rowCount! > 0
}

/** Requests the large export and ignores the outcome. */
function sendAndForget(headers: Record<string, string> = {}, url = large()): ClientRequest {
  const outgoing = request(url, { headers: { ...stage.company, ...headers }, agent: false })
  outgoing.on('error', () => {})
  return outgoing.end()
}

/** Makes every reader of the table wait while `run` runs. */
async function withLock<T>(table: string, run: () => Promise<T>): Promise<T> {
  await stage.staff.client.query(`begin; lock table grandlivre.${table} in access exclusive mode`)
  try {
    return await run()
  } finally {
    await stage.staff.client.query('rollback')
  }
}

/** Gives threads the time to begin waiting tasks: they begin and end five other exports. */
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

describe('a database connection that dies', () => {
  test.each([
    ['the one of movements', 'from movements', {}],
    ['both', 'copy', {}],
    ['both, of entries', 'copy', {}],
    ['the one of movements, with zstd', 'from movements', { 'Accept-Encoding': 'zstd' }],
    [
      'the one of movements, with gzip and NDJSON',
      'from movements',
      { 'Accept-Encoding': 'gzip', Accept: 'application/x-ndjson' },
    ],
  ])('mid-stream breaks the transfer off: %s', async (what, query, headers) => {
    const url = what.endsWith('entries') ? large().replace('/movements', '/entries') : large()
    const printed = vi.spyOn(console, 'error')
    for (let round = 0; round < 3; round++) {
      const message = await begin(url, { ...stage.company, ...headers })
      expect((await terminate(query)).rowCount).toBeGreaterThan(0)
      await expectBroken(message)
    }
    const broken = stage.service.lines
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event === 'stream.broken')
    expect(broken.length).toBeGreaterThanOrEqual(3)
    expect(printed, 'only the log reports it').not.toHaveBeenCalled()
  })

  test('before the first byte causes 503', async () => {
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
  const failures = () =>
    stage.service.lines.filter((line) => /request\.failed|stream\.broken/.test(line)).length
  let failuresBefore: number

  beforeEach(() => {
    failuresBefore = failures()
  })

  // A client that leaves is no fault of the service, so nothing is logged that would alert operators.
  afterEach(() => expect(failures()).toBe(failuresBefore))

  test('mid-stream ends its queries', async () => {
    for (const headers of [{}, { 'Accept-Encoding': 'gzip' }]) {
      const message = await begin(large(), { ...stage.company, ...headers })
      expect(await runningQueries(observer)).not.toEqual([])
      leave(message)
      await until(async () => (await runningQueries(observer)).length === 0)
    }
  })

  test.each(['movements', 'entries', 'accounts'])(
    'before the database returns any %s ends its query',
    async (table) => {
      await withLock(table, async () => {
        const outgoing = sendAndForget()
        await until(waitsForLock)
        outgoing.destroy()
        await until(async () => !(await waitsForLock()))
      })
    },
  )

  test('before its export begins starts no export', async () => {
    await withLock('entries', async () => {
      const folderLock = new pg.Client({ connectionString: stage.database.ownerUrl })
      await folderLock.connect()
      await folderLock.query('begin; lock table grandlivre.folders in access exclusive mode')
      const outgoing = sendAndForget({ 'x-request-id': 'left-early' })
      await until(waitsForLock)
      outgoing.destroy()
      await until(() => stage.service.lines.some((line) => line.includes('"left-early"')))
      await folderLock.end()
      // If an export began, it would wait for the lock on the entries.
      await until(async () => !(await waitsForLock()))
      await settled()
      expect(await waitsForLock()).toBe(false)
    })
  })

  test('leaves no connection open, even if many clients leave', async () => {
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
    // A connection that was still sending rows cannot be reused, and is closed.
    await until(async () => (await connections()) <= 2 * 2)
    await until(() => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length <= 2)
  })
})

test('exports beyond the request slots of a folder are refused, while other folders are served', async () => {
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

test('exports are answered with 503 and Retry-After if all threads are busy and their queue is full', async () => {
  const rateLimit = { requests: 100_000, windowMs: 10_000, concurrent: 1000 }
  const service = await startTestService(stage.database, { exportThreads: 1, rateLimit })
  try {
    const url = movementsUrl(service.url, { idExercice: largeExercice })
    const running = await Promise.all(
      Array.from({ length: defaultExportsPerThread }, () => begin(url, stage.company)),
    )
    const send = () => sendAndForget({}, url)
    const waiting = Array.from({ length: limits.exportQueueMax }, send)
    let refused = await download(url, stage.company, 'HEAD')
    await until(async () => {
      const outgoing = send()
      waiting.push(outgoing)
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

test('losing the database of exports breaks off running transfers; further exports read the main one', async () => {
  const proxy = await startProxy(stage.database.serviceUrl)
  const service = await startTestService(stage.database, { exportDatabaseUrl: proxy.url })
  try {
    const url = movementsUrl(service.url, { idExercice: largeExercice })
    const message = await begin(url, stage.company)
    await proxy.cut()
    await expectBroken(message)
    for (const isBack of [false, true]) {
      if (isBack) await proxy.restore()
      const whole = await download(url, stage.company)
      expect(whole.trailers).toEqual({ 'x-row-count': '30000', 'x-content-sha256': whole.sha256 })
    }
  } finally {
    await service.stop()
    await proxy.cut()
  }
})
