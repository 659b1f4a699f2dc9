/** The entry point of an export thread. A thread runs several exports at once; each waits for its own reader. */
import { constants, setPriority } from 'node:os'
import { parentPort, threadId, workerData } from 'node:worker_threads'
import { limits } from './config.ts'
import { createPool } from './db/pool.ts'
import { sendLedgers } from './exports/run/ledgers/send-ledgers.ts'
import type { SentLedgers } from './exports/run/ledgers/task.ts'
import { produce } from './exports/run/produce.ts'
import { sendExport } from './exports/run/send.ts'
import type { SentTask } from './exports/run/task.ts'
import {
  ExportSources,
  lookConnections,
  type ReplicaNews,
  type ThreadNews,
} from './exports/sources/export-sources.ts'
import { type FolderTask, storeFolder } from './jobs/folder-thread.ts'
import { noTelemetry } from './telemetry/telemetry.ts'
import { ThreadTelemetry } from './telemetry/thread-telemetry.ts'
import type { ThreadSettings } from './threads/pool.ts'

const settings = workerData as ThreadSettings
const { telemetryMemory } = settings
const counts = telemetryMemory && new ThreadTelemetry(telemetryMemory, threadId)
const telemetry = counts ?? noTelemetry

const { database, replica } = settings

/** Two connections for each export that the thread runs at once. */
const exportConnections = 2 * settings.exportsPerThread

/**
 * Connections that a pool keeps open. Pools live as long as the thread. Two connections open at once and stay open,
 * which saves 20 ms for an export after a pause. If there is a replica, the main database is rarely read, and idle
 * connections to it close.
 */
const kept = 2
const mainPool = createPool(database, {
  telemetry,
  max: exportConnections,
  applicationName: 'grandlivre export',
  firstAnswerMs: limits.exportWaitMs,
  ...(replica ? {} : { kept }),
})
const replicaSource = replica && {
  pool: createPool(replica.address, {
    telemetry,
    max: exportConnections + lookConnections,
    applicationName: 'grandlivre replica',
    kept,
    connectMs: replica.timing.silentMs,
    firstAnswerMs: replica.timing.silentMs,
  }),
  timing: replica.timing,
  report: (news: ReplicaNews) =>
    parentPort!.postMessage({ replica: { threadId, ...news } } satisfies ThreadNews),
  telemetry,
}
const sources = new ExportSources(mainPool, replicaSource)
const read = replicaSource?.pool ?? mainPool
// If the database is unreachable, the first export reports the error.
await Promise.allSettled([read.query('select'), read.query('select')])

// The main thread answers small routes, so it must come first when exports use every core: beside two exports this
// reduces the p99 of key/info from 46 ms to 28 ms. Linux has a priority per thread; elsewhere this would change the
// whole process.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL)

const counted = <Result>(running: Promise<Result>) => counts?.during(running) ?? running

/** Streams an export to the main thread, over a channel. */
export const streamExport = (sent: SentTask) => counted(sendExport(sources, sent, produce))

/** Streams many ledgers to the main thread, over a channel. */
export const streamLedgers = (sent: SentLedgers) => counted(sendLedgers(sources, sent))

/** Writes a full export to the store. */
export const exportFolder = (task: FolderTask) => counted(storeFolder(sources, settings, task))
