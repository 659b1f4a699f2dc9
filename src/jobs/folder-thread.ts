/**
 * A full export in its thread, in any format. It renders one snapshot, compresses it if the trigger asked for that,
 * writes it to the store, and has a hash thread hash it, chunk by chunk. The main thread sends at most one message,
 * stop; then the attempt removes what it wrote.
 *
 * Both transactions commit before the file is completed. So a read that fails at its end creates no file, and a store
 * that is slow to join parts blocks neither connections nor the database's vacuum.
 */
import { strict as assert } from 'node:assert'
import { type MessagePort, threadId } from 'node:worker_threads'
import { eachBesideNext } from '../exports/chunks.ts'
import { NotAdmitted, type Snapshot } from '../exports/read/snapshot.ts'
import { dayIn } from '../exports/render/collections.ts'
import { countFileMovements, fileRenderers } from '../exports/render/file-renderers.ts'
import { FileTally } from '../exports/render/render-rows.ts'
import { type Selection, wholeFolder } from '../exports/selection.ts'
import type { ExportSources } from '../exports/sources/export-sources.ts'
import { mediaTypeOf } from '../formats/file-formats.ts'
import { observedStore } from '../store/observed-store.ts'
import { openStore } from '../store/open-store.ts'
import type { ObjectWriter } from '../store/store.ts'
import { type ExportFacts, StageTimes, type StoreRequest } from '../telemetry/telemetry.ts'
import type { ThreadSettings } from '../threads/pool.ts'
import { ThreadHash } from '../threads/thread-hash.ts'
import { compressedWriter } from './compressed-writer.ts'
import { type Failure, failureOf } from './failure.ts'
import { freshFileKey } from './file-key.ts'
import type { ClaimedExport, StoredFile } from './jobs.sql.ts'
import { clearEarlier } from './retention/leftovers.ts'

export interface FolderTask {
  claimed: ClaimedExport
  /** Whether a replica has failed this attempt, so that it reads the main database. */
  isAgain: boolean
  /**
   * Four numbers: movements so far, movements in total (NaN until they are counted), bytes before compression, and the
   * number of the thread. In shared memory, because a message for each chunk took 60 ms of the 1.7 s that the service
   * needs for 600,000 movements.
   */
  progress: Float64Array
  port: MessagePort
  /** The hash thread has the other end of this port. */
  hash: MessagePort
  /** When it was sent, as `monotonicSeconds`. */
  sentAt: number
}

/**
 * How an attempt ended. `replicaFailed`: it must start over on the main database. `noConnections`: it did not start,
 * because for too long no connections were free. `axesLeftOut`: codes of the analytic axes that the format cannot
 * represent. `facts` is for telemetry; missing if the thread died.
 */
export type FolderOutcome = (
  | { stored: StoredFile; axesLeftOut: string[] }
  | { failed: Failure }
  | { replicaFailed: true }
  | { noConnections: true }
) & { facts?: ExportFacts }

/** Never rejects: on the way to the main thread, an error would lose its class, which `failureOf` needs. */
export async function storeFolder(
  sources: ExportSources,
  settings: ThreadSettings,
  task: FolderTask,
): Promise<FolderOutcome> {
  const stop = new AbortController()
  const stopped = () => stop.abort(new Error('the export was stopped'))
  task.port.on('message', stopped)
  task.port.on('close', stopped)
  const times = new StageTimes(task.sentAt)
  times.end('wait')
  const facts = { stages: times.seconds, store: [] as StoreRequest[] }
  task.progress[3] = threadId
  try {
    return { ...(await produce(sources, settings, task, times, facts.store, stop.signal)), facts }
  } catch (error) {
    if (!stop.signal.aborted) sources.count(error)
    return error instanceof NotAdmitted ? { noConnections: true } : { failed: failureOf(error), facts }
  } finally {
    task.port.close()
    task.hash.close()
  }
}

async function produce(
  sources: ExportSources,
  settings: ThreadSettings,
  task: FolderTask,
  times: StageTimes,
  storeRequests: StoreRequest[],
  stopped: AbortSignal,
): Promise<FolderOutcome> {
  const { claimed } = task
  const { schemaId, folderId, format, compression } = claimed
  const selection = selectionOf(claimed, settings.timeZone)
  const fileKey = freshFileKey(claimed, format, compression ?? undefined)
  const opened = await openStore(settings.store, settings.storeTiming)
  const store = observedStore(opened, (request) => storeRequests.push(request))
  await times.during('store', clearEarlier(store, claimed))
  const seen = claimed.seen === null ? undefined : { schemaId, folderId, cursor: claimed.seen }
  const snapshot = await sources.open({ schemaId, seen, isAgain: task.isAgain })
  times.end('snapshot')
  let writer: ObjectWriter | undefined
  // Stops the attempt at once, whether it is waiting for a row or for the store.
  const abort = () => {
    void snapshot.close(stopped.reason)
    void writer?.abort()
  }
  stopped.addEventListener('abort', abort)
  try {
    stopped.throwIfAborted()
    const rowsTotal = await countFileMovements(format, snapshot.second, selection)
    task.progress[1] = rowsTotal
    const object = await times.during('store', store.create(fileKey, mediaTypeOf(fileKey)!))
    const compressed = compression && compressedWriter(object, compression)
    writer = compressed ?? object
    const content = await writeContent(snapshot, task, selection, writer, times, stopped)
    await snapshot.close()
    stopped.throwIfAborted()
    const { rows, bytes, sha256, debit, credit, notes, axesLeftOut } = content
    assert(rows === rowsTotal, `the file has ${rows} of ${rowsTotal} movements`)
    await times.during('store', writer.complete({ bytes }))
    times.end('render')
    const { bytes: fileBytes, sha256: fileSha256 } = compressed?.stored() ?? content
    const snapshotOn = dayIn(settings.timeZone, snapshot.at)
    const stored = { fileKey, rows, bytes, sha256, fileBytes, fileSha256, debit, credit, snapshotOn, notes }
    return { stored, axesLeftOut }
  } catch (error) {
    await snapshot.close(error as Error)
    await writer?.abort()
    if (stopped.aborted) throw stopped.reason
    if (sources.failed(snapshot, error)) return { replicaFailed: true }
    throw error
  } finally {
    stopped.removeEventListener('abort', abort)
  }
}

/** The part of the folder that the file holds. */
function selectionOf(claimed: ClaimedExport, timeZone: string): Selection {
  const { exerciceId, periodStart: start, periodEnd: end, journalIds } = claimed
  const period = start !== null && end !== null ? { start, end, dateFilter: 'document' as const } : undefined
  return { ...wholeFolder(claimed, timeZone), exerciceId: exerciceId ?? undefined, period, journalIds }
}

async function writeContent(
  snapshot: Snapshot,
  task: FolderTask,
  selection: Selection,
  writer: ObjectWriter,
  times: StageTimes,
  stopped: AbortSignal,
) {
  const { exportId, version, format, withEmployees, encoding, columns } = task.claimed
  const hash = new ThreadHash(task.hash)
  const tally = new FileTally()
  const options = {
    selection,
    exportId,
    version,
    withEmployees,
    encoding: encoding ?? undefined,
    columns: columns ?? undefined,
    now: snapshot.at,
    buffer: (bytesNeeded?: number) => hash.buffer(bytesNeeded),
    stopped,
  }
  let bytes = 0
  let isFirst = true
  await eachBesideNext(fileRenderers[format](snapshot, options, tally), async (chunk) => {
    if (isFirst) times.end('first_row')
    isFirst = false
    bytes += chunk.length
    task.progress[0] = tally.movements
    task.progress[2] = bytes
    await times.during('store', writer.write(chunk))
    await hash.update(chunk)
  })
  const { movements: rows, notes, axesLeftOut } = tally
  const [debit, credit] = [tally.debit.total, tally.credit.total]
  return { rows, bytes, sha256: await hash.digest('hex'), debit, credit, notes, axesLeftOut }
}
