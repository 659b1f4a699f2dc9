/** Exports that wait for a slot in the threads: the order in which they get one, and clients that leave. */
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { defaultExportsPerThread, limits } from '../../src/config.ts'
import { asAddress } from '../../src/db/address.ts'
import { type ExportReader, startExport } from '../../src/exports/run/start.ts'
import type { Encoding } from '../../src/exports/run/task.ts'
import { wholeFolder } from '../../src/exports/selection.ts'
import type { StoreSettings } from '../../src/store/store.ts'
import { noTelemetry } from '../../src/telemetry/telemetry.ts'
import { createThreads, type Threads } from '../../src/threads/pool.ts'
import { defaultTiming } from '../../src/timing.ts'
import { forTests } from '../support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { insertDimensions } from '../support/ledgers/ledger.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

const { schemaId, folderId } = folders.first
const selection = {
  ...wholeFolder({ schemaId, folderId }, 'Europe/Paris'),
  exerciceId: largeExercice,
  draft: false,
}
const task = {
  what: 'movements',
  selection,
  after: undefined,
  entries: undefined,
  since: undefined,
  form: 'json',
} as const

/** Nothing is stored. */
const store: StoreSettings = { kind: 'filesystem', folder: '', publicUrl: '', signingKeys: [] }

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
let threads: Threads
let running: ExportReader[]
let started: ExportReader[]

beforeAll(async () => {
  await insertDimensions(staff.client, { schemaId, folderId }, 'waiting')
  await addLargeExercice(staff.client, 10_000)
})

/** A compressed body fits into the window as a whole, so its export ends although nothing reads it. */
function start(encoding: Encoding = 'identity'): ExportReader {
  const reader = startExport(threads, { task: { ...task, encoding }, schemaId, seen: undefined }, true)
  started.push(reader)
  return reader
}

/** One thread, whose slots are all occupied by exports that are not read. */
beforeEach(async () => {
  threads = createThreads(1, noTelemetry, {
    database: asAddress(database.serviceUrl),
    exportsPerThread: defaultExportsPerThread,
    store,
    storeTiming: defaultTiming.store,
    timeZone: 'Europe/Paris',
  })
  started = []
  running = Array.from({ length: defaultExportsPerThread }, () => start())
  await Promise.all(running.map((reader) => reader.head()))
})

afterEach(async () => {
  for (const reader of started) reader.cancel()
  try {
    // No task is left in the hash thread, whether its export ran, waited or was refused.
    await until(() => threads.hashes.completed === started.length)
  } finally {
    await threads.destroy()
  }
})

test('waiting exports get slots in the order of their arrival', async () => {
  const begun: number[] = []
  const waiting = Array.from({ length: 12 }, () => start())
  const served = waiting.map(async (reader, i) => {
    await reader.head()
    begun.push(i)
    // Frees the slot of the export for the next export.
    reader.cancel()
  })
  running.pop()?.cancel()
  await Promise.all(served)
  expect(begun).toEqual(waiting.map((_, i) => i))
})

test('cancelled exports end even while their hash thread is being replaced', async () => {
  for (const reader of running) reader.cancel()
  await until(() => threads.exports.completed === running.length)
  await threads.hashes.threads[0]!.terminate()
  // Each export gets a slot of the export thread at once.
  const cancelled = [start(), start('zstd')]
  for (const reader of cancelled) reader.cancel()
  await until(() => threads.exports.completed === running.length + cancelled.length)
})

test('a waiting export makes room in the queue when its client disconnects', async () => {
  const left = Array.from({ length: limits.exportQueueMax }, (_, i) =>
    start(i % 2 === 0 ? 'identity' : 'zstd'),
  )
  await expect(start().head()).rejects.toMatchObject({ code: 'ERR-UNAVAILABLE' })
  for (const reader of left) reader.cancel()
  expect(threads.exports.queueSize).toBe(0)
  const next = start()
  running.pop()?.cancel()
  await expect(next.head()).resolves.toMatchObject({ cursor: expect.any(String) })
  next.cancel()
})
