/** Sends an export to the main thread: renders one snapshot by chunks, hashes them if the task says so, and compresses them. */
import { createHash } from 'node:crypto'
import { limits } from '../../config.ts'
import { unavailableIfMissing } from '../../db/outage.ts'
import { StageTimes } from '../../telemetry/telemetry.ts'
import { ChannelWriter } from '../../threads/channel.ts'
import { ThreadHash } from '../../threads/thread-hash.ts'
import { type ChunkBuffer, Compressor, eachBesideNext, twoChunkBuffers } from '../chunks.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { ExportSnapshot, ExportSources } from '../sources/export-sources.ts'
import type { Encoding, ExportHead, ExportSummary, ExportTask, Produced, SentTask } from './task.ts'

type Channel = ChannelWriter<ExportHead, ExportSummary>

interface BodyHash {
  update(chunk: Uint8Array<ArrayBuffer>): unknown
  digest(encoding: 'hex'): string | Promise<string>
}

/**
 * Resolves when the thread's part is over; its result or error goes through the channel.
 * @param produce resolves the task and renders its chunks, each into a `buffer`
 */
export async function sendExport(
  sources: ExportSources,
  sent: SentTask,
  produce: (snapshot: Snapshot, task: ExportTask, buffer: ChunkBuffer) => Promise<Produced>,
): Promise<void> {
  const { task, port, hash: where, buffers, sentAt } = sent
  const channel: Channel = new ChannelWriter(port, limits.channelWindowBytes, buffers)
  const hash: BodyHash | undefined =
    where && (where === 'here' ? createHash('sha256') : new ThreadHash(where))
  const times = new StageTimes(sentAt)
  times.end('wait')
  try {
    const buffer = () => chunkBuffer(task, channel, hash)
    const { snapshot, produced } = await begin(sources, sent, channel, times, (opened) =>
      produce(opened, task, buffer()),
    )
    try {
      channel.head(produced.head)
      const summary = await sendChunks(produced, task.encoding, channel, hash, times)
      await snapshot.close()
      channel.end(summary)
    } catch (error) {
      await snapshot.close(error as Error)
      if (!channel.signal.aborted) sources.failed(snapshot, error)
      throw error
    }
  } catch (error) {
    if (!channel.signal.aborted) sources.count(error)
    channel.fail(unavailableIfMissing(error))
  } finally {
    if (hash instanceof ThreadHash) hash.close()
  }
}

/**
 * Produces up to the first chunk. Until then nothing of the export is sent, so it can begin again on the main database if
 * a replica fails it.
 */
async function begin(
  sources: ExportSources,
  { schemaId, seen }: SentTask,
  { signal }: Channel,
  times: StageTimes,
  produce: (snapshot: Snapshot) => Promise<Produced>,
): Promise<{ snapshot: ExportSnapshot; produced: Produced }> {
  for (let isAgain = false; ; isAgain = true) {
    const snapshot = await sources.open({ schemaId, seen, isAgain })
    times.end('snapshot')
    const abort = () => void snapshot.close(signal.reason)
    signal.addEventListener('abort', abort)
    try {
      signal.throwIfAborted()
      const produced = await produce(snapshot)
      const chunks = await renderFirst(produced.chunks)
      times.end('first_row')
      return { snapshot, produced: { ...produced, chunks } }
    } catch (error) {
      await snapshot.close(error as Error)
      if (signal.aborted || !sources.failed(snapshot, error)) throw error
    }
  }
}

/** Renders the first chunk, and returns all chunks with it. */
export async function renderFirst<Chunk>(chunks: AsyncIterable<Chunk>): Promise<AsyncGenerator<Chunk, void>> {
  const iterator = chunks[Symbol.asyncIterator]()
  const first = await iterator.next()
  return (async function* () {
    if (first.done) return
    yield first.value
    yield* { [Symbol.asyncIterator]: () => iterator }
  })()
}

export function chunkBuffer(
  { encoding }: Pick<ExportTask, 'encoding'>,
  channel: Channel,
  hash: BodyHash | undefined,
): ChunkBuffer {
  // Each chunk is transferred to the main thread.
  if (encoding === 'identity')
    return (bytesNeeded = 0) => channel.buffer(Math.max(limits.chunkBytes, bytesNeeded))
  // A compressor reads each chunk in this thread; after that, the chunk may be transferred to a hash thread.
  return hash instanceof ThreadHash ? (bytesNeeded) => hash.buffer(bytesNeeded) : twoChunkBuffers()
}

export async function sendChunks(
  { chunks, rows, blocks }: Pick<Produced, 'chunks' | 'rows' | 'blocks'>,
  encoding: Encoding,
  channel: Channel,
  hash: BodyHash | undefined,
  times: StageTimes,
): Promise<ExportSummary> {
  let bytes = 0
  if (encoding === 'identity') {
    for await (const chunk of chunks) {
      bytes += chunk.length
      await hash?.update(chunk)
      await times.during('send', channel.write(chunk))
    }
  } else {
    const compressor = new Compressor(encoding, (pieces) => sendPieces(pieces, channel, times))
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
  times.end('render')
  const facts = { stages: times.seconds }
  return { rows: rows(), bytes, sha256: await hash?.digest('hex'), blocks: blocks?.(), facts }
}

async function sendPieces(compressed: AsyncIterable<Uint8Array>, channel: Channel, times: StageTimes) {
  for await (const piece of compressed) {
    // Copied, because a pooled buffer must not be transferred. Compressed data is a twentieth of the body.
    const buffer = channel.buffer(piece.length)
    buffer.set(piece)
    await times.during('send', channel.write(buffer))
  }
}
