/** A full export as a partner has it made and fetches it: trigger, status until it has ended, file. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { createProgressBar } from '../commands/terminal/progress-bar.ts'
import { ask, type Partner } from './partner.ts'
import { minorUnits } from './read-back.ts'
import { sizeOf } from './table.ts'

/**
 * Soon at first, as a small folder is exported in less than a second. On the whole this stays below the 20 requests
 * that a token may send in 10 seconds.
 */
const pollsMs = [100, 200, 400, 700]
/** A service that died goes on with an export within half a minute; one that says nothing for longer is stuck. */
const standstillMs = 90_000

export interface MadeExport {
  url: string
  /** Bytes. */
  size: number
  /** Movements. */
  rows: number
  /** Hexadecimal. */
  sha256: string
  /** Sums in minor units. */
  debit: bigint
  credit: bigint
  /** The trigger was answered with an export that had ended already. */
  wasThere: boolean
  /** From the trigger until the file was there. */
  ms: number
}

interface Progress {
  rows: number
  rowsTotal: number | null
  bytes: number
}

interface Status {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  progress?: Progress
  url?: string
  size?: number
  rows?: number
  sha256?: string
  reason?: string
}

/** @throws {Error} where the export fails or stands still, with the reason the service gives */
export async function makeFullExport(partner: Partner, format: 'JSON' | 'TRA'): Promise<MadeExport> {
  const started = performance.now()
  const bar = createProgressBar(process.stdout)
  try {
    const first = await askForStatus(partner, `/api/v1/mad/all?version=1.0.0&format=${format}`)
    const last = await waitForEnd(partner, first, ({ rows, rowsTotal, bytes }) => {
      const ofAll = rowsTotal === null ? '' : ` of ${rowsTotal.toLocaleString('en')}`
      const soFar = `${rows.toLocaleString('en')}${ofAll} rows, ${sizeOf(bytes)}`
      bar.show(rowsTotal ? rows / rowsTotal : 0, `Full export, ${format}: ${soFar}`)
    })
    const { id, status, reason, url, size, rows, sha256 } = last.status
    if (status === 'FAILED') throw new Error(`The full export ${id} failed: ${reason}`)
    if (url === undefined || size === undefined || rows === undefined || sha256 === undefined)
      throw new Error(`The status of ${id} lacks what names its file: ${last.body}`)
    const wasThere = first.status.status === 'DONE'
    return { url, size, rows, sha256, ...totalsOf(last.body), wasThere, ms: performance.now() - started }
  } finally {
    bar.clear()
  }
}

interface Told {
  status: Status
  body: string
}

async function waitForEnd(partner: Partner, first: Told, show: (progress: Progress) => void): Promise<Told> {
  const path = `/api/v1/mad/all/status?exportId=${first.status.id}`
  let told = first
  let movedAt = performance.now()
  for (let poll = 0; told.status.status === 'INIT'; poll += 1) {
    show(told.status.progress!)
    await delay(pollsMs[poll] ?? pollsMs.at(-1))
    const next = await askForStatus(partner, path)
    if (next.body !== told.body) movedAt = performance.now()
    if (performance.now() - movedAt > standstillMs)
      throw new Error(`The full export ${first.status.id} has not moved for ${standstillMs / 1000} s`)
    told = next
  }
  return told
}

async function askForStatus(partner: Partner, path: string): Promise<Told> {
  const body = await text(await ask(partner, path))
  return { status: JSON.parse(body), body }
}

const totals = /"totals":\{"debit":(-?\d+)(?:\.(\d+))?,"credit":(-?\d+)(?:\.(\d+))?\}/

/** From the digits: as doubles, two large sums that differ by a cent may be the same. */
function totalsOf(body: string): Pick<MadeExport, 'debit' | 'credit'> {
  const found = totals.exec(body)
  if (!found) throw new Error(`The status of the full export has no totals: ${body}`)
  return { debit: minorUnits(found[1]!, found[2]), credit: minorUnits(found[3]!, found[4]) }
}

export interface FetchedFile {
  bytes: number
  /** Hexadecimal. */
  sha256: string
  ms: number
}

/**
 * Its address is all that is needed: neither token nor secret goes along.
 * @param received told each chunk
 */
export async function downloadFile(
  { url, size }: MadeExport,
  name: string,
  received: (chunk: Buffer) => void,
): Promise<FetchedFile> {
  const started = performance.now()
  const progress = createProgressBar(process.stdout)
  const answer = await fetch(url)
  if (answer.status !== 200 || !answer.body)
    throw new Error(`The file of the full export was answered with ${answer.status}: ${await answer.text()}`)
  const hash = createHash('sha256')
  let bytes = 0
  const file = await open(name, 'w')
  try {
    for await (const part of answer.body) {
      const chunk = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
      bytes += chunk.length
      hash.update(chunk)
      received(chunk)
      await file.write(chunk)
      progress.show(bytes / size, `Its file: ${sizeOf(bytes)} of ${sizeOf(size)}`)
    }
  } finally {
    progress.clear()
    await file.close()
  }
  return { bytes, sha256: hash.digest('hex'), ms: performance.now() - started }
}
