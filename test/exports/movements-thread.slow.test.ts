/** Exports with a thread that dies while they run, exports that start late, and exports without a digest. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AuditTrail } from '../../src/audit/audit-trail.ts'
import { RequestSlots } from '../../src/auth/request-slots.ts'
import { defaultExportsPerThread, readConfig } from '../../src/config.ts'
import { asAddress } from '../../src/db/address.ts'
import { Notifications } from '../../src/db/notifications.ts'
import { createPool } from '../../src/db/pool.ts'
import { createApp } from '../../src/http/app.ts'
import { createListener } from '../../src/http/listener.ts'
import { Readiness } from '../../src/http/readiness.ts'
import { ListReads } from '../../src/http/stream/list-reads.ts'
import { RunningStreams } from '../../src/http/stream/running-streams.ts'
import { ExportQueue } from '../../src/jobs/queue.ts'
import { createLog } from '../../src/log.ts'
import { openStore } from '../../src/store/open-store.ts'
import { storeSettings } from '../../src/store/store.ts'
import { noTelemetry } from '../../src/telemetry/telemetry.ts'
import { createThreads, type Threads } from '../../src/threads/pool.ts'
import { defaultTiming } from '../../src/timing.ts'
import { FairTurns } from '../../src/webhooks/dispatch/fair-turns.ts'
import { httpToSubscribers } from '../../src/webhooks/dispatch/post.ts'
import { download, movementsUrl, open } from '../support/download.ts'
import { addLargeExercice, largeExercice, runningQueries } from '../support/ledgers/large-exercice.ts'
import { lockWaits } from '../support/ledgers/lock-waits.ts'
import { testMasterKey } from '../support/service.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

let stage: ExportStage
let threads: Threads
/** Deaths of threads that the log reports. */
let deaths = 0
const threadDied = () => {
  deaths += 1
}
let url: string
const closers: (() => unknown)[] = []

/** Assembles the service as start.ts does, with access to its threads. */
beforeAll(async () => {
  stage = await setExportStage()
  await addLargeExercice(stage.staff.client, 30_000)
  const { serviceUrl } = stage.database
  const log = createLog('silent')
  const database = createPool(serviceUrl, { max: 4, applicationName: 'grandlivre' })
  const requestSlots = new RequestSlots(serviceUrl, 10, log)
  const config = readConfig({
    DATABASE_URL: serviceUrl,
    MASTER_KEY: testMasterKey.toString('hex'),
    RATE_LIMIT_REQUESTS: '1000',
  })
  const queue = new ExportQueue(serviceUrl, log, defaultTiming.exports)
  await queue.start()
  const files = storeSettings(config, [testMasterKey], 'http://127.0.0.1')
  const store = await openStore(files, defaultTiming.store)
  threads = createThreads(
    1,
    { ...noTelemetry, count: threadDied },
    {
      database: asAddress(serviceUrl),
      exportsPerThread: defaultExportsPerThread,
      store: files,
      storeTiming: defaultTiming.store,
      timeZone: config.timeZone,
    },
  )
  const readiness = new Readiness([], async () => {}, defaultTiming.missingMs)
  const notifications = new Notifications(serviceUrl, log, defaultTiming.databaseAwayMs)
  const audit = new AuditTrail(database, log)
  const app = createApp({
    config,
    database,
    deliveries: httpToSubscribers(config, defaultTiming.deliveries, noTelemetry),
    masterKeys: [testMasterKey],
    requestSlots,
    notifications,
    waitingReads: new FairTurns(2),
    listReads: new ListReads(1000),
    threads,
    store,
    queue,
    audit,
    readiness,
    epoch: { latest: async () => undefined },
    streams: new RunningStreams(),
    telemetry: noTelemetry,
    log,
  })
  const server = createListener(app.fetch, { log, telemetry: noTelemetry }, defaultTiming.listener).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closers.push(
    () => server.close(),
    () => threads.destroy(),
    () => requestSlots.close(),
    () => notifications.close(),
    () => queue.close(),
    () => audit.close(),
    () => database.end(),
    () => stage.close(),
  )
})

afterAll(async () => {
  for (const close of closers) await close()
})

const large = () => movementsUrl(url, { idExercice: largeExercice })

test('a thread that dies mid-stream breaks its transfers off, and the next export runs on another', async () => {
  const messages = await Promise.all([1, 2, 3].map(() => open(large(), stage.company)))
  for (const message of messages) {
    expect(message.statusCode).toBe(200)
    await once(message, 'readable')
  }
  const deathsBefore = deaths
  await threads.exports.threads[0]!.terminate()
  expect(deaths - deathsBefore).toBe(1)
  for (const message of messages) {
    const reading = (async () => {
      for await (const _ of message);
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(message.complete).toBe(false)
  }
  const next = await download(large(), stage.company)
  expect(next.trailers).toEqual({ 'x-row-count': '30000', 'x-content-sha256': next.sha256 })
  await until(async () => (await runningQueries(stage.staff.client)).length === 0)
})

test('a hash thread that dies mid-stream breaks its transfers off, and another thread hashes the next export', async () => {
  const encodings = [{}, { 'Accept-Encoding': 'zstd' }]
  const messages = await Promise.all(
    encodings.map((encoding) => open(large(), { ...stage.company, ...encoding })),
  )
  for (const message of messages) {
    expect(message.statusCode).toBe(200)
    await once(message, 'readable')
  }
  await threads.hashes.threads[0]!.terminate()
  for (const message of messages) {
    const reading = (async () => {
      for await (const _ of message);
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(message.complete).toBe(false)
  }
  for (const encoding of encodings) {
    const next = await download(large(), { ...stage.company, ...encoding })
    expect(next.trailers).toEqual({ 'x-row-count': '30000', 'x-content-sha256': next.sha256 })
  }
  await until(async () => (await runningQueries(stage.staff.client)).length === 0)
})

test('a client that refuses digests gets none, and no hash thread is used for it or for a short answer', async () => {
  // Two lines of one header.
  const without = { ...stage.company, 'Want-Content-Digest': ['sha-512=5', 'sha-256=0'] }
  const hashed = () => threads.hashes.completed
  const run = async (path: string, encoding: string, headers: Record<string, string | string[]>) => {
    const {
      headers: answer,
      trailers,
      sha256,
    } = await download(`${url}/api/v1/${path}`, {
      ...headers,
      'Accept-Encoding': encoding,
    })
    return { announced: answer.trailer, vary: answer.vary, etag: answer.etag, trailers, sha256 }
  }
  const movements = `mad/movements?version=1.0.0&idExercice=${largeExercice}`
  const short = ['mad/accounts?version=1.0.0', 'society', `${movements}&entries=1000000-1000009`]
  for (const encoding of ['identity', 'gzip', 'zstd']) {
    const before = hashed()
    for (const path of [...short, movements]) {
      const bare = await run(path, encoding, without)
      expect(Object.keys(bare.trailers)).toEqual(['x-row-count'])
      expect(bare.announced).toBe('X-Row-Count')
      const full = await run(path, encoding, stage.company)
      expect(full.announced).toBe('X-Row-Count, X-Content-SHA256')
      expect(full.trailers).toEqual({ ...bare.trailers, 'x-content-sha256': full.sha256 })
      expect([full.sha256, full.etag, full.vary]).toEqual([bare.sha256, bare.etag, bare.vary])
    }
    // Only the export with a digest of all movements, which is the last.
    await until(() => hashed() > before)
    expect(hashed()).toBe(before + 1)
  }
})

test('a thread that dies before the first byte causes an error, and the next export runs on another', async () => {
  await stage.staff.client.query('begin; lock table grandlivre.entries in access exclusive mode')
  const answer = download(large(), stage.company)
  await until(async () => (await lockWaits(stage.staff.client, 'entries')) > 0)
  await threads.exports.threads[0]!.terminate()
  const { status, json } = await answer
  await stage.staff.client.query('rollback')
  expect([status, json.error.code]).toEqual([500, 'ERR-INTERNAL'])
  expect((await download(large(), stage.company)).trailers['x-row-count']).toBe('30000')
})

test('the ETag and If-Match of an export refer to the ledger when the export starts, not when it is requested', async () => {
  const small = () => movementsUrl(url, { idExercice: '11' })
  const before = String((await download(small(), stage.company)).headers.etag)
  const running = await Promise.all(
    Array.from({ length: defaultExportsPerThread }, () => open(large(), stage.company)),
  )
  const conditional = download(small(), { ...stage.company, 'If-Match': before })
  const plain = download(small(), stage.company)
  // Both have been checked against the ledger, and wait for a slot.
  await until(() => threads.exports.queueSize === 2)
  await stage.staff.client.query(
    `update grandlivre.accounts set name = 'renamed' where schema_id = 100 and folder_id = 111 and id = 110`,
  )
  for (const message of running) message.destroy()
  const refused = await conditional
  expect([refused.status, refused.json.error.code]).toEqual([412, 'ERR-PRECONDITION-FAILED'])
  const { etag } = (await plain).headers
  expect(etag).not.toBe(before)
  expect(etag).toBe((await download(small(), stage.company)).headers.etag)
})
