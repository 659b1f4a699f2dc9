/** Computes digests in blocks from a copy, as a client does (docs/spec/changes.md#blocks). */
import { createHash } from 'node:crypto'

export interface BlockItem {
  from: string
  to: string
  rows: number
  sha256: string
}

/** Computes the blocks of a copy with the given bounds. @param copy movements in NDJSON */
export function plainBlocks(copy: string, bounds: readonly BlockItem[]): BlockItem[] {
  const lines = (copy.match(/[^\n]*\n/g) ?? []).map((line) => ({
    line,
    entryId: Number(JSON.parse(line).entry.producerId),
  }))
  return bounds.map(({ from, to }) => {
    const inside = lines.filter(({ entryId }) => Number(from) <= entryId && entryId <= Number(to))
    const text = inside.map(({ line }) => line).join('')
    return { from, to, rows: inside.length, sha256: createHash('sha256').update(text).digest('hex') }
  })
}

/** The digest of all digests. */
export function plainDigest(blocks: readonly BlockItem[]): string {
  return createHash('sha256')
    .update(Buffer.concat(blocks.map(({ sha256 }) => Buffer.from(sha256, 'hex'))))
    .digest('hex')
}

/** Throws unless the ranges follow one another from the first id to the last. */
export function checkBounds(blocks: readonly BlockItem[]): void {
  const starts = blocks.map(({ from }) => from)
  const ends = ['-1', ...blocks.map(({ to }) => to)]
  const expected = ends.slice(0, -1).map((end) => String(Number(end) + 1))
  if (blocks.length === 0 || starts.join() !== expected.join() || ends.at(-1) !== '9007199254740991')
    throw new Error(`not consecutive ranges of all ids: ${JSON.stringify(blocks)}`)
}
