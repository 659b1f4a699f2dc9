/**
 * A copy of movements on disk: one per line, in the order of their entries, beside the cursor that names the state of
 * the ledger that it shows. Needs only Node 24.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'

export interface Copy {
  /** Path of the movements, with its query. */
  path: string
  /** The movements. */
  file: string
  /** A file with the cursor. */
  cursorFile: string
}

/** Ids of entries, both included, as decimal digits. */
export type EntryRange = [from: string, to: string]

/** A range of entries and what the ledger has in it. */
export interface Block {
  from: string
  to: string
  rows: number
  /** Of the lines in the range, each with its line feed; hexadecimal. */
  sha256: string
}

/** The cursor of the copy; undefined if there is no copy. */
export async function readCursor({ file, cursorFile }: Copy): Promise<string | undefined> {
  try {
    await (await open(file)).close()
    return await readFile(cursorFile, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Replaces the copy at once. The movements come first: if the program ends before the cursor is there, the next changes
 * begin at the older cursor. They name all entries that have changed since, so they also fit the newer movements.
 * @param draft a file with all movements
 */
export async function keep({ file, cursorFile }: Copy, draft: string, cursor: string): Promise<void> {
  await moveWritten(draft, file)
  await keepCursor({ cursorFile }, cursor)
}

export async function keepCursor({ cursorFile }: Pick<Copy, 'cursorFile'>, cursor: string): Promise<void> {
  await writeLines(`${cursorFile}.part`, [Buffer.from(cursor)])
  await moveWritten(`${cursorFile}.part`, cursorFile)
}

export async function dropCopy({ file, cursorFile }: Copy): Promise<void> {
  for (const path of [cursorFile, file]) await rm(path, { force: true })
}

/** Otherwise a machine that fails may keep the name and lose the content. */
async function moveWritten(draft: string, file: string): Promise<void> {
  const handle = await open(draft, 'r+')
  await handle.sync()
  await handle.close()
  await rename(draft, file)
}

/**
 * The copy without its lines in the ranges, and with these in their places. A line that stays never belongs to an entry
 * of a new line, so the ids of entries alone decide the order. Lines that are not movements are left out: the digests
 * of their block differ from the ledger's then, too, until it is read again.
 * @param added lines of entries in the ranges, in order
 * @param ranges ascending and disjoint
 */
export async function* changed(
  copy: AsyncIterable<Buffer>,
  added: AsyncIterator<Buffer>,
  ranges: EntryRange[],
): AsyncGenerator<Buffer> {
  const next = async () => {
    const { value, done } = await added.next()
    return done ? undefined : { line: value, entry: entryOf(value) ?? 0 }
  }
  let first = await next()
  for await (const line of copy) {
    const entry = entryOf(line)
    if (entry === undefined) continue
    for (; first && first.entry < entry; first = await next()) yield first.line
    if (!isIn(ranges, entry)) yield line
  }
  for (; first; first = await next()) yield first.line
}

function isIn(ranges: EntryRange[], entry: number): boolean {
  const place = placeOf(ranges, entry)
  return place < ranges.length && Number(ranges[place]![0]) <= entry
}

/** The first range that does not end before the entry. There may be thousands, so it halves them until one is left. */
function placeOf(ranges: EntryRange[], entry: number): number {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (Number(ranges[middle]![1]) < entry) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The copy's own digests for the bounds of these blocks, hexadecimal. A line that comes after those of later blocks
 * counts twice, so that its block is read again, which also puts the line in its place.
 */
export async function digestsOf(copy: AsyncIterable<Buffer>, blocks: Block[]): Promise<string[]> {
  const hashes = blocks.map(() => createHash('sha256'))
  const ranges = blocks.map(({ from, to }): EntryRange => [from, to])
  let latest = 0
  for await (const line of copy) {
    const entry = entryOf(line)
    const place = entry === undefined ? latest : placeOf(ranges, entry)
    hashes[place]!.update(line)
    if (place < latest) hashes[place]!.update(line)
    else latest = place
  }
  return hashes.map((hash) => hash.digest('hex'))
}

/** The SHA-256 of all digests, as bytes, in order; hexadecimal. */
export function digestOf(digests: string[]): string {
  const hash = createHash('sha256')
  for (const digest of digests) hash.update(digest, 'hex')
  return hash.digest('hex')
}

/** Undefined for what is not a whole movement. Ids are below 2^53. */
function entryOf(line: Buffer): number | undefined {
  try {
    return Number(JSON.parse(line.toString()).entry.producerId)
  } catch {
    return undefined
  }
}

/** The lines of a file, each with its line feed, if it has one. Not by node:readline, which also ends lines at U+2028. */
export async function* linesOf(file: string): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of createReadStream(file, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
    const bytes = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
      yield bytes.subarray(start, end + 1)
      start = end + 1
    }
    rest = bytes.subarray(start)
  }
  if (rest.length > 0) yield rest
}

const chunkBytes = 1024 * 1024

/** Writes a file of its own; nothing of a former one stays. */
export async function writeLines(
  file: string,
  lines: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<void> {
  const handle = await open(file, 'w')
  try {
    let [pending, bytes]: [Buffer[], number] = [[], 0]
    for await (const line of lines) {
      pending.push(line)
      bytes += line.length
      if (bytes < chunkBytes) continue
      await handle.appendFile(Buffer.concat(pending))
      pending = []
      bytes = 0
    }
    await handle.appendFile(Buffer.concat(pending))
  } finally {
    await handle.close()
  }
}
