/** Sends an export to the main thread: one snapshot, rendered, hashed where the task says, and compressed, by chunks. */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { limits } from '../../config.ts'
import { unavailableIfMissing } from '../../db/outage.ts'
import { ChannelWriter } from '../../threads/channel.ts'
import { ThreadHash } from '../../threads/thread-hash.ts'
import { type ChunkBuffer, twoChunkBuffers } from '../chunk-buffer.ts'
import { Compressor } from '../compressor.ts'
import { eachBesideNext } from '../each-beside-next.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { openSnapshot } from '../read/snapshot.ts'
import {
  type Encoding,
  type ExportHead,
  type ExportSummary,
  type ExportTask,
  type Produced,
  type SentTask,
  schemaOf,
} from './task.ts'

type Channel = ChannelWriter<ExportHead, ExportSummary>

interface BodyHash {
  update(chunk: Uint8Array<ArrayBuffer>): unknown
  digest(encoding: 'hex'): string | Promise<string>
}

/**
 * Resolves when the export is over; its result or error goes through the channel.
 * @param produce resolves the task and renders its chunks, each into a `buffer`
 */
export async function sendExport(
  pool: pg.Pool,
  { task, port, hash: where, buffers }: SentTask,
  produce: (snapshot: Snapshot, task: ExportTask, buffer: ChunkBuffer) => Promise<Produced>,
): Promise<void> {
  const channel: Channel = new ChannelWriter(port, limits.channelWindowBytes, buffers)
  const hash: BodyHash | undefined =
    where && (where === 'here' ? createHash('sha256') : new ThreadHash(where))
  try {
    const snapshot = await openSnapshot(pool, schemaOf(task))
    const abort = () => void snapshot.close(channel.signal.reason)
    channel.signal.addEventListener('abort', abort)
    try {
      channel.signal.throwIfAborted()
      const produced = await produce(snapshot, task, chunkBuffer(task, channel, hash))
      channel.head(produced.head)
      const summary = await sendChunks(produced, task.encoding, channel, hash)
      await snapshot.close()
      channel.end(summary)
    } catch (error) {
      await snapshot.close(error as Error)
      throw error
    }
  } catch (error) {
    channel.fail(unavailableIfMissing(error))
  } finally {
    if (hash instanceof ThreadHash) hash.close()
  }
}

function chunkBuffer({ encoding }: ExportTask, channel: Channel, hash: BodyHash | undefined): ChunkBuffer {
  // Transferred to the main thread.
  if (encoding === 'identity')
    return (bytesNeeded = 0) => channel.buffer(Math.max(limits.chunkBytes, bytesNeeded))
  // A compressor reads each chunk in this thread; then it may be transferred to a hash thread.
  return hash instanceof ThreadHash ? (bytesNeeded) => hash.buffer(bytesNeeded) : twoChunkBuffers()
}

async function sendChunks(
  { chunks, rows, blocks }: Produced,
  encoding: Encoding,
  channel: Channel,
  hash: BodyHash | undefined,
): Promise<ExportSummary> {
  let bytes = 0
  if (encoding === 'identity') {
    for await (const chunk of chunks) {
      bytes += chunk.length
      await hash?.update(chunk)
      await channel.write(chunk)
    }
  } else {
    const compressor = new Compressor(encoding, (pieces) => sendPieces(pieces, channel))
    try {
      await eachBesideNext(chunks, async (chunk) => {
        bytes += chunk.length
        await compressor.write(chunk)
        await hash?.update(chunk)
      })
      await compressor.end()
    } catch (error) {
      compressor.abort(error as Error)
      throw error
    }
  }
  return { rows: rows(), bytes, sha256: await hash?.digest('hex'), blocks: blocks?.() }
}

async function sendPieces(compressed: AsyncIterable<Uint8Array>, channel: Channel): Promise<void> {
  for await (const piece of compressed) {
    // Copied, because a pooled buffer must not be transferred. Compressed data is a twentieth of the body.
    const buffer = channel.buffer(piece.length)
    buffer.set(piece)
    await channel.write(buffer)
  }
}
