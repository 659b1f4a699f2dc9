/** Sends an export to the main thread: one snapshot, rendered, hashed and compressed, chunk by chunk. */
import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { limits } from '../../config.ts'
import { unavailableIfMissing } from '../../db/outage.ts'
import { ChannelWriter } from '../../threads/channel.ts'
import { type ChunkBuffer, sameChunkBuffer } from '../chunk-buffer.ts'
import { compressor } from '../compressor.ts'
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

/**
 * Resolves when the export is over; its result or error goes through the channel.
 * @param produce resolves the task and renders its chunks, each into a `buffer`
 */
export async function sendExport(
  pool: pg.Pool,
  { task, port, buffers }: SentTask,
  produce: (snapshot: Snapshot, task: ExportTask, buffer: ChunkBuffer) => Promise<Produced>,
): Promise<void> {
  const channel: Channel = new ChannelWriter(port, limits.channelWindowBytes, buffers)
  try {
    const snapshot = await openSnapshot(pool, schemaOf(task))
    const abort = () => void snapshot.close(channel.signal.reason)
    channel.signal.addEventListener('abort', abort)
    try {
      channel.signal.throwIfAborted()
      // A compressor reads each chunk in this thread.
      const buffer = task.encoding === 'identity' ? transferredBuffer(channel) : sameChunkBuffer()
      const produced = await produce(snapshot, task, buffer)
      channel.head(produced.head)
      const summary = await sendChunks(produced, task.encoding, channel)
      await snapshot.close()
      channel.end(summary)
    } catch (error) {
      await snapshot.close(error as Error)
      throw error
    }
  } catch (error) {
    channel.fail(unavailableIfMissing(error))
  }
}

async function sendChunks(produced: Produced, encoding: Encoding, channel: Channel): Promise<ExportSummary> {
  const hash = createHash('sha256')
  let bytes = 0
  async function* hashed(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for await (const chunk of produced.chunks) {
      hash.update(chunk)
      bytes += chunk.length
      yield chunk
    }
  }
  if (encoding === 'identity') {
    for await (const chunk of hashed()) await channel.write(chunk)
  } else {
    await pipeline(hashed, compressor(encoding), async (compressed: AsyncIterable<Uint8Array>) => {
      for await (const piece of compressed) {
        // Copied, because a pooled buffer must not be transferred. Compressed data is a twentieth of the body.
        const buffer = channel.buffer(piece.length)
        buffer.set(piece)
        await channel.write(buffer)
      }
    })
  }
  return { rows: produced.rows(), bytes, sha256: hash.digest('hex'), blocks: produced.blocks?.() }
}

/** A buffer for each chunk: it is transferred to the main thread. */
function transferredBuffer(channel: Channel): ChunkBuffer {
  return (bytesNeeded = 0) => channel.buffer(Math.max(limits.chunkBytes, bytesNeeded))
}
