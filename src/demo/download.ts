/**
 * Movements from the service into a file, with flat memory, and the proof that they arrived whole: what is received
 * is counted and hashed on its way to the disk and compared with the trailers behind the last byte.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { createZstdDecompress } from 'node:zlib'
import { ask, type Partner } from './partner.ts'

export interface Order {
  /** With its query. */
  path: string
  headers?: Record<string, string>
  /** Where the bytes go as they come, compressed where they are; `append` behind what the file has. */
  file: string
  append?: boolean
  onProgress: (soFar: { bytes: number; rows: number }) => void
}

export interface Download {
  etag: string
  /** As they came over the wire. */
  wireBytes: number
  /** After decompression. */
  bytes: number
  rows: number
  /** Of the body after decompression, hexadecimal. */
  sha256: string
  ms: number
}

/** @throws {Error} where the transfer broke off, or does not agree with its trailers */
export async function download(partner: Partner, order: Order): Promise<Download> {
  const started = performance.now()
  const answer = await ask(partner, order.path, order.headers)
  const file = await open(order.file, order.append ? 'a' : 'w')
  try {
    const received = await receive(answer, file, order)
    const download = { etag: answer.headers.etag ?? '', ...received, ms: performance.now() - started }
    verify(answer, download, order.path)
    return download
  } finally {
    await file.close()
  }
}

async function receive(
  answer: IncomingMessage,
  file: FileHandle,
  { onProgress }: Order,
): Promise<Pick<Download, 'wireBytes' | 'bytes' | 'rows' | 'sha256'>> {
  const hash = createHash('sha256')
  const counter = new RowCounter()
  let wireBytes = 0
  let bytes = 0
  async function* kept(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      wireBytes += chunk.length
      await file.write(chunk)
      yield chunk
    }
  }
  async function read(chunks: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of chunks) {
      bytes += chunk.length
      hash.update(chunk)
      counter.add(chunk)
      onProgress({ bytes, rows: counter.rows })
    }
  }
  if (answer.headers['content-encoding'] === 'zstd')
    await pipeline(answer, kept, createZstdDecompress(), read)
  else await pipeline(answer, kept, read)
  return { wireBytes, bytes, rows: counter.rows, sha256: hash.digest('hex') }
}

function verify({ trailers }: IncomingMessage, { rows, sha256 }: Download, path: string): void {
  const { 'x-row-count': rowsSaid, 'x-content-sha256': sha256Said } = trailers
  if (sha256Said !== sha256)
    throw new Error(`GET ${path}: the body has the SHA-256 ${sha256}, and its trailer says ${sha256Said}`)
  if (rowsSaid !== String(rows))
    throw new Error(`GET ${path}: ${rows} movements arrived, and the trailer says ${rowsSaid}`)
}

/** Every movement has this once, in JSON and NDJSON alike; inside a text its quotes would be escaped. */
const mark = Buffer.from('"lettering":{"state":')

/** Counts movements without parsing them, wherever the chunks are cut. */
export class RowCounter {
  rows = 0
  #rest: Buffer = Buffer.alloc(0)

  add(chunk: Buffer): void {
    // A mark across the cut lies within twice its length.
    const seam = Buffer.concat([this.#rest, chunk.subarray(0, mark.length - 1)])
    this.#count(seam)
    this.#count(chunk)
    const tail = chunk.length >= mark.length ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = Buffer.from(tail.subarray(Math.max(0, tail.length - mark.length + 1)))
  }

  #count(bytes: Buffer): void {
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + mark.length)) this.rows += 1
  }
}

/**
 * Starts the same download and leaves in the middle of it, as a partner whose line drops. The file keeps whole lines.
 * @param atBytes where the line drops; behind the first movement
 * @returns the producerId of the last movement in the file, and the ETag that the rest has to match
 */
export async function breakOff(
  partner: Partner,
  { path, headers, file: name }: Omit<Order, 'onProgress' | 'append'>,
  atBytes: number,
): Promise<{ etag: string; lastMovement: string; ms: number }> {
  const started = performance.now()
  const answer = await ask(partner, path, headers)
  const file = await open(name, 'w+')
  try {
    let bytes = 0
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      const taken = chunk.subarray(0, atBytes - bytes)
      await file.write(taken)
      bytes += taken.length
      if (bytes === atBytes) break
    }
    return {
      etag: answer.headers.etag ?? '',
      lastMovement: await keepWholeLines(file, bytes),
      ms: performance.now() - started,
    }
  } finally {
    // Leaving the loop closes no connection over which all has come already.
    answer.destroy()
    await file.close()
  }
}

/** More than the longest line. */
const tailBytes = 256 * 1024

/** @returns the producerId of the last movement that is left */
async function keepWholeLines(file: FileHandle, size: number): Promise<string> {
  const start = Math.max(0, size - tailBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  const tail = buffer.subarray(0, bytesRead)
  const end = tail.lastIndexOf('\n')
  const line = tail.subarray(tail.lastIndexOf('\n', end - 1) + 1, end).toString()
  await file.truncate(start + end + 1)
  return JSON.parse(line).producerId
}
