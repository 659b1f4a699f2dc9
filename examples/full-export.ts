/**
 * Triggers a full export, waits for its file, downloads it, and checks size and SHA-256, of a compressed file also those
 * of its content.
 * `npx node examples/full-export.ts --help` shows how to run it.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createGunzip, createZstdDecompress } from 'node:zlib'
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

const help = `Usage: npx node examples/full-export.ts [options] [format ...]

Exports a whole folder on the service, downloads the file of each format, and
checks its size and SHA-256. Formats: JSON (default), TRA, CSV and PARQUET.

Options:
  --compression <how>  have the files compressed: gzip or zstd. They stay so;
                       the content is read back and checked, too
  --out <folder>       where the files go (default: out)
  --help               show this help

${environmentHelp}

Example:
  GRANDLIVRE_URL=http://127.0.0.1:8080 GRANDLIVRE_TOKEN=glv_api_... \\
    GRANDLIVRE_SECRET=glv_secret_... npx node examples/full-export.ts JSON TRA`

/**
 * Polls often at first, since a small folder is exported in less than a second, then less often: a token may send 20
 * requests in 10 seconds.
 */
const pollsMs = [100, 200, 400, 700]
/** Another process resumes the export of a dead one within half a minute; without progress for longer it is stuck. */
const standstillMs = 90_000

interface Progress {
  /** Movements. */
  rows: number
  /** Null until counted. */
  rowsTotal: number | null
  bytes: number
}

type Status = { id: string } & (
  | { status: 'INIT'; progress: Progress }
  | { status: 'FAILED'; reason: string }
  | {
      status: 'DONE'
      url: string
      /** Of the file. */
      size: number
      fileSha256: string
      /** Of its content: the same, unless the file is compressed. */
      contentSize: number
      sha256: string
      rows: number
    }
)

/** How a file can be compressed: the second ending of its name, and what reads it. */
const compressions = {
  gzip: { ending: '.gz', decompressor: createGunzip },
  zstd: { ending: '.zst', decompressor: createZstdDecompress },
}
type Compression = keyof typeof compressions

export type Done = Extract<Status, { status: 'DONE' }> & {
  /** Sums as decimal text: as doubles, two large sums that differ by a cent may be equal. */
  debit: string
  credit: string
  /** The trigger returned an export that had already ended. */
  wasThere: boolean
  /** Time from the trigger to the complete file. */
  ms: number
}

/** @throws {Error} if the export fails or stops making progress, with the reason from the service */
export async function exportFolder(
  partner: Partner,
  format: string,
  compression?: Compression,
): Promise<Done> {
  const started = performance.now()
  const compressed = compression === undefined ? '' : `&compression=${compression}`
  let body = await bodyOf(partner, `/api/v1/mad/all?version=1.0.0&format=${format}${compressed}`)
  let status: Status = JSON.parse(body)
  const path = `/api/v1/mad/all/status?exportId=${status.id}`
  let movedAt = started
  let polls = 0
  for (; status.status === 'INIT'; polls += 1) {
    const { rows, rowsTotal, bytes } = status.progress
    const ofAll = rowsTotal === null ? '' : ` of ${rowsTotal.toLocaleString('en')}`
    showProgress(`Full export in ${format}: ${rows.toLocaleString('en')}${ofAll} rows, ${sizeOf(bytes)}`)
    await delay(pollsMs[polls] ?? pollsMs.at(-1))
    const next = await bodyOf(partner, path)
    if (next !== body) movedAt = performance.now()
    if (performance.now() - movedAt > standstillMs)
      throw new Error(`The full export ${status.id} has made no progress for ${standstillMs / 1000} s`)
    body = next
    status = JSON.parse(body)
  }
  if (status.status === 'FAILED') throw new Error(`The full export ${status.id} failed: ${status.reason}`)
  const [, debit = '', credit = ''] = /"totals":\{"debit":([-\d.]+),"credit":([-\d.]+)\}/.exec(body) ?? []
  if (debit === '') throw new Error(`The status of the full export has no totals: ${body}`)
  return { ...status, debit, credit, wasThere: polls === 0, ms: performance.now() - started }
}

async function bodyOf(partner: Partner, path: string): Promise<string> {
  return text(await ask(partner, path))
}

/** The address is enough: it needs neither token nor secret. */
export async function download(done: Done, name: string, compression?: Compression): Promise<void> {
  const { url, size, contentSize, rows } = done
  const started = performance.now()
  const response = await fetch(url)
  if (response.status !== 200 || !response.body)
    throw new Error(
      `The file of the full export was answered with ${response.status}: ${await response.text()}`,
    )
  const file = await open(name, 'w')
  const counted = counter()
  try {
    for await (const chunk of response.body) {
      counted.add(chunk)
      await file.appendFile(chunk)
      showProgress(`Its file: ${sizeOf(counted.bytes)} of ${sizeOf(size)}`)
    }
  } finally {
    await file.close()
  }
  const found = counted.end()
  expectSame('file', found, { bytes: size, sha256: done.fileSha256 })
  const ms = performance.now() - started
  printResult(
    compression === undefined ? '  downloaded from its address' : `  downloaded, in ${compression}`,
    {
      ms,
      wireBytes: size,
      bytes: contentSize,
      rows,
    },
  )
  const content = compression === undefined ? found : await decompress(name, compression)
  expectSame('content of the file', content, { bytes: contentSize, sha256: done.sha256 })
}

interface Found {
  bytes: number
  sha256: string
}

function counter() {
  const hash = createHash('sha256')
  const counted = {
    bytes: 0,
    add: (chunk: Uint8Array) => {
      counted.bytes += chunk.length
      hash.update(chunk)
    },
    end: (): Found => ({ bytes: counted.bytes, sha256: hash.digest('hex') }),
  }
  return counted
}

function expectSame(what: string, found: Found, stated: Found): void {
  if (found.bytes !== stated.bytes)
    throw new Error(`The ${what} has ${found.bytes} bytes, and its status says ${stated.bytes}`)
  if (found.sha256 !== stated.sha256) throw new Error(`The ${what} has another SHA-256 than its status says`)
}

/** Reads what a compressed file contains, with one chunk in memory at a time. */
async function decompress(name: string, compression: Compression): Promise<Found> {
  const started = performance.now()
  const counted = counter()
  const decompressor = compressions[compression].decompressor()
  await pipeline(createReadStream(name), decompressor, async (content: AsyncIterable<Uint8Array>) => {
    for await (const chunk of content) counted.add(chunk)
  })
  printResult('  decompressed', { ms: performance.now() - started, bytes: counted.bytes })
  return counted.end()
}

async function exportFolderToFiles(): Promise<void> {
  const options = {
    compression: { type: 'string' },
    out: { type: 'string', default: 'out' },
    help: { type: 'boolean', default: false },
  } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) return print(help)
  const formats = positionals.length === 0 ? ['JSON'] : positionals
  const { compression } = values
  if (compression !== undefined && !isCompression(compression))
    throw new Error(`--compression takes ${Object.keys(compressions).join(' or ')}, not "${compression}"`)
  const partner = partnerFrom(process.env)
  await mkdir(values.out, { recursive: true })
  printHeading(compression === undefined ? 'The whole folder' : 'The whole folder, compressed')
  const files: string[] = []
  const sums = new Set<string>()
  for (const format of formats) {
    const done = await exportFolder(partner, format, compression)
    // An export that existed already has no rate.
    const { ms, rows, contentSize, debit, credit, wasThere } = done
    if (wasThere) printResult(`Full export in ${format}, made before`, { ms, rows })
    else printResult(`Full export in ${format}, made`, { ms, bytes: contentSize, rows })
    const ending = compression === undefined ? '' : compressions[compression].ending
    const file = join(values.out, `full-export.${format.toLowerCase()}${ending}`)
    await download(done, file, compression)
    files.push(file)
    sums.add(debit).add(credit)
  }
  if (sums.size > 1) throw new Error(`Debits and credits differ: ${[...sums].join(', ')}`)
  print(`Debit and credit are both ${[...sums].join('')}. Files:`)
  for (const file of files) print(`  ${file}`)
}

function isCompression(word: string): word is Compression {
  return Object.hasOwn(compressions, word)
}

if (import.meta.main) await run(exportFolderToFiles)
