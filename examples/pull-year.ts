/**
 * Pulls the newest fiscal year of a folder into a file, one movement per line, and verifies that it is complete: it
 * compares its own row count and SHA-256 with the trailers. A broken transfer is resumed after the last complete line,
 * provided that the ledger has not changed. `npx node examples/pull-year.ts --help` shows how to run it.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { createZstdDecompress } from 'node:zlib'
import {
  ask,
  environmentHelp,
  type Partner,
  partnerFrom,
  print,
  printHeading,
  printResult,
  run,
  showProgress,
  sizeOf,
} from './partner.ts'

const help = `Usage: npx node examples/pull-year.ts [options]

Pulls the newest fiscal year of a folder into a file, one movement per line, and
verifies that it is complete. A broken transfer is resumed.

Options:
  --out <folder>  where the file goes (default: out)
  --tour          show more: the year compressed, cut off half-way on purpose,
                  and requested again unchanged
  --help          show this help

${environmentHelp}

Example:
  GRANDLIVRE_URL=http://127.0.0.1:8080 GRANDLIVRE_TOKEN=glv_api_... \\
    GRANDLIVRE_SECRET=glv_secret_... npx node examples/pull-year.ts --out out`

export interface Order {
  /** Path of the movements, with its query. */
  path: string
  file: string
  /** Label of the progress line. */
  label: string
  encoding?: 'identity' | 'zstd'
  /** Drops the first connection after this many bytes, but not before the first movement. */
  cutAtBytes?: number
}

export interface Pulled {
  etag: string
  /** Bytes received over all connections. */
  wireBytes: number
  /** More than one if the transfer was resumed. */
  connections: number
  ms: number
}

const connectionsMax = 10

/**
 * Pulls movements as NDJSON into a file, over as many connections as needed.
 * @throws {Error} if a body differs from its trailers, or the ledger changed between two connections
 */
export async function pull(partner: Partner, order: Order): Promise<Pulled> {
  const started = performance.now()
  // Append mode: after a cut, writing continues after the last complete line.
  const file = await open(order.file, 'a+')
  await file.truncate()
  let [etag, after, wireBytes] = ['', '', 0]
  const count = (bytes: number) => {
    wireBytes += bytes
  }
  try {
    for (let connections = 1; ; connections += 1) {
      const headers = {
        Accept: 'application/x-ndjson',
        'Accept-Encoding': order.encoding ?? 'identity',
        ...(etag === '' ? {} : { 'If-Match': etag }),
      }
      const response = await ask(partner, after === '' ? order.path : `${order.path}&after=${after}`, headers)
      etag = response.headers.etag ?? ''
      try {
        await receive(response, file, connections === 1 ? order : { ...order, cutAtBytes: Infinity }, count)
        return { etag, wireBytes, connections, ms: performance.now() - started }
      } catch (error) {
        if (!brokeOff(error) || connections === connectionsMax) throw error
        after = await keepWholeLines(file)
      }
    }
  } finally {
    await file.close()
  }
}

/** The connection was lost before the end of the body. */
class Cut extends Error {
  readonly code = 'ECONNRESET'
}

function brokeOff(error: unknown): boolean {
  return ['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'].includes((error as NodeJS.ErrnoException).code ?? '')
}

/** Writes a body to the end of the file and compares it with its trailers. */
async function receive(
  response: IncomingMessage,
  file: FileHandle,
  { path, label, cutAtBytes = Infinity }: Order,
  counted: (wireBytes: number) => void,
): Promise<void> {
  const started = performance.now()
  const { socket } = response
  const hash = createHash('sha256')
  let [bytes, rows] = [0, 0]
  async function* count(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      counted(chunk.length)
      yield chunk
    }
  }
  async function keep(chunks: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of chunks) {
      await file.appendFile(chunk.subarray(0, cutAtBytes - bytes))
      bytes += chunk.length
      if (bytes >= cutAtBytes) throw new Cut('cut off')
      hash.update(chunk)
      // Line breaks inside texts are escaped.
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) rows += 1
      const rate = bytes / 1000 / Math.max(performance.now() - started, 1)
      showProgress(`${label}: ${sizeOf(bytes)}, ${rate.toFixed(0)} MB/s, ${rows.toLocaleString('en')} rows`)
    }
  }
  try {
    if (response.headers['content-encoding'] === 'zstd')
      await pipeline(response, count, createZstdDecompress(), keep)
    else await pipeline(response, count, keep)
  } finally {
    // If the whole body has already arrived, leaving it unread would keep the connection open forever.
    if (bytes >= cutAtBytes) socket.destroy()
  }
  const { 'x-row-count': rowsSent, 'x-content-sha256': sha256Sent } = response.trailers
  const sha256 = hash.digest('hex')
  if (sha256Sent !== sha256)
    throw new Error(`GET ${path}: the body has the SHA-256 ${sha256}, and its trailer says ${sha256Sent}`)
  if (rowsSent !== String(rows))
    throw new Error(`GET ${path}: ${rows} movements arrived, and the trailer says ${rowsSent}`)
}

/** More than the longest line. */
const tailBytes = 256 * 1024

/** @returns the `producerId` of the last complete movement; empty if there is none */
async function keepWholeLines(file: FileHandle): Promise<string> {
  const { size } = await file.stat()
  const start = Math.max(0, size - tailBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  const tail = buffer.subarray(0, bytesRead)
  const end = tail.lastIndexOf('\n') + 1
  await file.truncate(start + end)
  if (end === 0) return ''
  const line = tail.subarray(tail.lastIndexOf('\n', end - 2) + 1, end)
  return JSON.parse(line.toString()).producerId
}

export interface ReadBack {
  /** SHA-256 of the file, hexadecimal. */
  sha256: string
  bytes: number
  rows: number
  /** Sums in cents. */
  debit: number
  credit: number
}

/**
 * Reads a file of movements, one per line, with one chunk in memory at a time.
 * @throws {Error} for a line that is not a movement
 */
export async function readBack(file: string): Promise<ReadBack> {
  const hash = createHash('sha256')
  const sums = { bytes: 0, rows: 0, debit: 0, credit: 0 }
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    sums.bytes += chunk.length
    const text = Buffer.concat([rest, chunk])
    const end = text.lastIndexOf('\n') + 1
    rest = text.subarray(end)
    // Does not use node:readline, which also ends lines at U+2028, a character that texts may contain.
    for (const line of text.toString('utf8', 0, end).split('\n').slice(0, -1)) {
      sums.rows += 1
      const { value } = JSON.parse(line)
      if (!value) throw new Error(`Line ${sums.rows} of ${file} is not a movement`)
      // Whole cents add up exactly, as doubles with decimals do not.
      sums.debit += Math.round(value.debit * 100)
      sums.credit += Math.round(value.credit * 100)
    }
  }
  if (rest.length > 0) throw new Error(`${file} ends in the middle of a line`)
  return { sha256: hash.digest('hex'), ...sums }
}

interface Exercice {
  producerId: string
  period: { start: string; end: string }
}

async function pullYear(): Promise<void> {
  const options = {
    out: { type: 'string', default: 'out' },
    tour: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const
  const { out, tour, help: showHelp } = parseArgs({ options }).values
  if (showHelp) return print(help)
  const partner = partnerFrom(process.env)
  await mkdir(out, { recursive: true })
  const exercices = (await json(await ask(partner, '/api/v1/mad/exercices?version=1.0.0'))) as Exercice[]
  const exercice = exercices.at(-1)
  if (!exercice) throw new Error('The folder has no fiscal year')
  const year = exercice.period.start.slice(0, 4)
  const path = `/api/v1/mad/movements?version=1.0.0&idExercice=${exercice.producerId}`
  const order = { path, label: `${year} as NDJSON`, file: join(out, `movements-${year}.ndjson`) }
  printHeading(`Movements of ${year}`)
  const plain = await pulled(partner, order)
  if (plain.debit !== plain.credit)
    throw new Error(`${order.file} has ${plain.debit} cents of debit and ${plain.credit} of credit`)
  const files = [order.file, ...(tour ? await showMore(partner, order, plain) : [])]
  print(`Debit and credit are both ${(plain.debit / 100).toFixed(2)}. Files:`)
  for (const file of files) print(`  ${file}`)
}

/** @returns further files with the same content */
async function showMore(partner: Partner, order: Order, plain: Pulled & ReadBack): Promise<string[]> {
  const named = (suffix: string) => order.file.replace('.ndjson', `-${suffix}.ndjson`)
  const others: Order[] = [
    { ...order, label: '  compressed with zstd', encoding: 'zstd', file: named('zstd') },
    {
      ...order,
      label: '  cut off half-way, resumed',
      cutAtBytes: Math.ceil(plain.bytes / 2),
      file: named('resumed'),
    },
  ]
  for (const other of others) {
    const { sha256 } = await pulled(partner, other)
    if (sha256 !== plain.sha256) throw new Error(`${other.file} has other bytes than ${order.file}`)
  }
  await askAgain(partner, order.path, plain.etag)
  return others.map(({ file }) => file)
}

async function pulled(partner: Partner, order: Order): Promise<Pulled & ReadBack> {
  const transfer = await pull(partner, order)
  const found = await readBack(order.file)
  printResult(order.label, { ...transfer, ...found })
  return { ...transfer, ...found }
}

async function askAgain(partner: Partner, path: string, etag: string): Promise<void> {
  const started = performance.now()
  const headers = { Accept: 'application/x-ndjson', 'Accept-Encoding': 'identity', 'If-None-Match': etag }
  const response = await ask(partner, path, headers)
  response.resume()
  if (response.statusCode !== 304)
    throw new Error(`The service returned ${response.statusCode} for an unchanged ledger`)
  printResult('  requested again: 304, unchanged', { ms: performance.now() - started })
}

if (import.meta.main) await run(pullYear)
