/**
 * What runs in an export thread: reads one snapshot, renders, hashes, compresses, and sends chunks to the main
 * thread. A thread runs several exports side by side; each waits for its own client.
 */
import { createHash } from 'node:crypto'
import { constants, setPriority } from 'node:os'
import { pipeline } from 'node:stream/promises'
import type { MessagePort } from 'node:worker_threads'
import { createGzip, createZstdCompress, constants as zlibConstants } from 'node:zlib'
import { workerData } from 'piscina'
import { limits } from '../config.ts'
import { CopyRows } from '../db/copy-rows.ts'
import { createPool, isConnectionLoss, unavailable, withStartupOptions } from '../db/pool.ts'
import { AppError, invalid } from '../errors.ts'
import { renderDictionary } from '../formats/mad/dictionary.ts'
import { entryColumns, MovementRenderer, movementColumns } from '../formats/mad/movement.ts'
import { readDictionary } from '../ledger/dictionary.sql.ts'
import { ChannelWriter } from '../threads/channel.ts'
import type { ResolvedSelection } from './movements.sql.ts'
import {
  copyEntries,
  copyMovements,
  findEntrySpan,
  findExercices,
  findPosition,
  picksEntries,
  readSelected,
} from './movements.sql.ts'
import type { MovementsForm } from './render-movements.ts'
import { renderMovements } from './render-movements.ts'
import type { Selection } from './selection.ts'
import type { Snapshot } from './snapshot.ts'
import { openSnapshot } from './snapshot.ts'

export type Encoding = 'identity' | 'gzip' | 'zstd'

export interface MovementsTask {
  selection: Selection
  /** Id of the last movement the caller has. */
  after: string | undefined
  form: MovementsForm
  encoding: Encoding
  port: MessagePort
}

/** Known before the first byte. */
export interface MovementsHead {
  ledgerVersion: string
}

/** Known behind the last byte. */
export interface MovementsSummary {
  rows: number
  /** Of the body before compression. */
  bytes: number
  /** Of the body before compression, hexadecimal. */
  sha256: string
}

/** What a compressor collects before it hands on. */
const compressedPieceBytes = 64 * 1024

/** No entry has this id: the span of an empty selection. */
const noEntry = { least: '0', greatest: '0', dense: true }

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
const { databaseUrl } = workerData as { databaseUrl: string }
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

/** Settles when the export is over; how it ended goes through the channel. */
export async function exportMovements(task: MovementsTask): Promise<void> {
  const channel = new ChannelWriter<MovementsHead, MovementsSummary>(task.port, limits.channelWindowBytes)
  try {
    const snapshot = await openSnapshot(pool, task.selection.schemaId)
    const abort = () => void snapshot.close(channel.signal.reason)
    channel.signal.addEventListener('abort', abort)
    try {
      channel.signal.throwIfAborted()
      const summary = await produceMovements(task, snapshot, channel)
      await snapshot.close()
      channel.end(summary)
    } catch (error) {
      await snapshot.close(error as Error)
      throw error
    }
  } catch (error) {
    channel.fail(isConnectionLoss(error) ? unavailable(error) : error)
  }
}

async function produceMovements(
  task: MovementsTask,
  snapshot: Snapshot,
  channel: ChannelWriter<MovementsHead, MovementsSummary>,
): Promise<MovementsSummary> {
  const { schemaId, folderId } = task.selection
  const selected = await readSelected(snapshot.first, task.selection)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const dictionaryRows = await readDictionary(snapshot.first, schemaId, folderId)
  const resolved = await resolve(task, snapshot, dictionaryRows.accounts)
  channel.head({ ledgerVersion: selected.ledgerVersion })

  const movements = snapshot.first.query(new CopyRows(copyMovements(resolved), movementColumns.length))
  const entries = snapshot.second.query(new CopyRows(copyEntries(resolved), entryColumns.length))
  const renderer = new MovementRenderer(renderDictionary(dictionaryRows))
  const hash = createHash('sha256')
  const summary: MovementsSummary = { rows: 0, bytes: 0, sha256: '' }
  const count = (rows: number): void => {
    summary.rows = rows
  }

  const { chunkBytes } = limits
  const room = task.encoding === 'identity' ? (bytes: number) => channel.room(bytes) : sameRoom()

  async function* hashed(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for await (const chunk of renderMovements(
      movements,
      entries,
      renderer,
      task.form,
      chunkBytes,
      room,
      count,
    )) {
      hash.update(chunk)
      summary.bytes += chunk.length
      yield chunk
    }
  }
  if (task.encoding === 'identity') {
    for await (const chunk of hashed()) await channel.write(chunk)
  } else {
    await pipeline(hashed, compressor(task.encoding), async (compressed: AsyncIterable<Uint8Array>) => {
      // Copied: a pooled buffer must not be transferred. After compression it is a twentieth of the body.
      for await (const piece of compressed) await channel.write(new Uint8Array(piece))
    })
  }
  summary.sha256 = hash.digest('hex')
  return summary
}

async function resolve(
  { selection, after }: MovementsTask,
  { first }: Snapshot,
  accounts: { id: string; number: string }[],
): Promise<ResolvedSelection> {
  const exercices = await findExercices(first, selection)
  if (selection.exerciceId !== undefined && exercices.length === 0)
    throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const position = after === undefined ? undefined : await findPosition(first, selection, after)
  if (after !== undefined && !position) throw invalid('after', 'no movement of this folder has this id')
  const { accountRoots } = selection
  const inRoots = ({ number }: { number: string }) => accountRoots.some((root) => number.startsWith(root))
  const resolved: ResolvedSelection = {
    selection,
    exerciceIds: exercices.map(({ id }) => id),
    accountIds: accountRoots.length > 0 ? accounts.filter(inRoots).map(({ id }) => id) : undefined,
    after: position,
    entrySpan: undefined,
  }
  if (!picksEntries(selection)) return resolved
  return { ...resolved, entrySpan: (await findEntrySpan(first, resolved)) ?? noEntry }
}

/** One buffer again and again, for chunks that the compressor reads here. */
function sameRoom(): (bytes: number) => Uint8Array<ArrayBuffer> {
  let room = new Uint8Array(0)
  return (bytes) => {
    if (room.length < bytes) room = new Uint8Array(bytes)
    return room
  }
}

/** Level 1 of both: 890 MB/s (zstd) and 450 MB/s (gzip) on ledgers; gzip 6 makes an export 3.7 times slower. */
function compressor(encoding: 'gzip' | 'zstd') {
  // Full with any chunk, so that pipeline() asks for the next one when this one is compressed: until then small chunks
  // would queue here, and the next one be rendered over them.
  const options = { chunkSize: compressedPieceBytes, writableHighWaterMark: 1 }
  return encoding === 'gzip'
    ? createGzip({ ...options, level: 1 })
    : createZstdCompress({ ...options, params: { [zlibConstants.ZSTD_c_compressionLevel]: 1 } })
}
