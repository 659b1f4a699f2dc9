/**
 * What runs in an export thread. A thread runs several exports side by side; each waits for its own reader.
 */
import { constants, setPriority } from 'node:os'
import { workerData } from 'piscina'
import { limits } from './config.ts'
import { createPool, withStartupOptions } from './db/pool.ts'
import { produce } from './exports/run/produce.ts'
import { sendExport } from './exports/run/send.ts'
import type { SentTask } from './exports/run/task.ts'
import { type FolderOutcome, type FolderTask, storeFolder } from './jobs/folder-thread.ts'
import type { ThreadSettings } from './threads/pool.ts'

/**
 * Settings of the connections that exports read through:
 * a backend that sends nothing looks twice a second whether its client is still there, so a cancelled export is gone;
 * no parallel workers, which would take the cores that render, to scan a whole year in search of a month;
 * random pages cost what they cost from memory or flash, for the same reason;
 * a sort of a large selection stays in memory.
 */
const exportOptions =
  '-c client_connection_check_interval=500 -c max_parallel_workers_per_gather=0 -c random_page_cost=1.1 -c work_mem=32MB'

const settings = workerData as ThreadSettings

/** Lives as long as the thread. Two connections are opened ahead and stay, which spares an export after a pause 20 ms. */
const pool = createPool(withStartupOptions(settings.databaseUrl, exportOptions), {
  max: 2 * limits.exportsPerThread,
  kept: 2,
  applicationName: 'grandlivre export',
})
// A database that is not there yet is the first export's trouble, which can say so.
await Promise.allSettled([pool.query('select'), pool.query('select')])

// Beside exports that fill every core, whoever answers small routes has to come first: key/info beside two of them
// had a p99 of 46 ms before, 28 ms with this. Linux gives each thread a priority of its own; elsewhere it would be
// that of the whole process.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL)

/** To the main thread, over a channel. */
export function streamExport(sent: SentTask): Promise<void> {
  return sendExport(pool, sent, produce)
}

/** Into the store. */
export function exportFolder(task: FolderTask): Promise<FolderOutcome> {
  return storeFolder(pool, settings, task)
}
