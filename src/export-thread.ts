/**
 * What runs in an export thread. A thread runs several exports side by side; each waits for its own reader.
 */
import { constants, setPriority } from 'node:os'
import { workerData } from 'piscina'
import { limits } from './config.ts'
import { createPool, withStartupOptions } from './db/pool.ts'
import { type CollectionTask, produceCollection } from './exports/run/produce-collection.ts'
import { produceEntries, produceMovements, type SelectedTask } from './exports/run/produce-selected.ts'
import { sendExport } from './exports/run/send.ts'
import type { FolderOutcome, FolderTask } from './jobs/folder-thread.ts'
import { storeFolder } from './jobs/folder-thread.ts'
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

/** Lives as long as the thread. Two connections are opened ahead, which spares the first export 20 ms. */
const { databaseUrl, storeTiming } = workerData as ThreadSettings
const pool = createPool(withStartupOptions(databaseUrl, exportOptions), {
  max: 2 * limits.exportsPerThread,
  applicationName: 'grandlivre export',
})
// A database that is not there yet is the first export's trouble, which can say so.
await Promise.allSettled([pool.query('select'), pool.query('select')])

// Beside exports that fill every core, whoever answers small routes has to come first: key/info beside two of them
// had a p99 of 46 ms before, 28 ms with this. Linux gives each thread a priority of its own; elsewhere it would be
// that of the whole process.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL)

const { chunkBytes } = limits

export function exportMovements(task: SelectedTask): Promise<void> {
  return sendExport(pool, task, (snapshot, room) => produceMovements(snapshot, { ...task, chunkBytes, room }))
}

export function exportEntries(task: SelectedTask): Promise<void> {
  return sendExport(pool, task, (snapshot, room) => produceEntries(snapshot, { ...task, chunkBytes, room }))
}

export function exportCollection(task: CollectionTask): Promise<void> {
  return sendExport(pool, task, (snapshot, room) =>
    produceCollection(snapshot, { ...task, chunkBytes, room }),
  )
}

export function exportFolder(task: FolderTask): Promise<FolderOutcome> {
  return storeFolder(pool, task, storeTiming)
}
