/**
 * The lines that prove rows of a ledger: one after at most 1 MiB of rows, or after one longer row, and one after the last
 * (docs/spec/ledgers.md#proofs).
 */
import { createHash, type Hash } from 'node:crypto'

/** Bytes of rows between two proofs, unless a single row has more. */
export const provenBytesMax = 1024 * 1024

const lineFeed = 10

/** Of one table. Bytes are hashed once up to the first proof, and twice from there on. */
export class RowProofs {
  /** Rows in all. */
  rows = 0
  #part: Hash = createHash('sha256')
  #partRows = 0
  #partBytes = 0
  /** Undefined until the first proof: up to there it is the same as `#part`. */
  #all: Hash | undefined

  /** Whether a proof has to come before that many bytes more. */
  isDue(bytes: number): boolean {
    return this.#partBytes > 0 && this.#partBytes + bytes > provenBytesMax
  }

  /** @param lines whole lines, `rows` of them */
  add(lines: Uint8Array, rows: number): void {
    this.#part.update(lines)
    this.#all?.update(lines)
    this.#partBytes += lines.length
    this.#partRows += rows
    this.rows += rows
  }

  /** The proof of the rows since the one before, as a line. */
  line(): string {
    this.#all ??= this.#part.copy()
    const line = `{"rows":${this.#partRows},"sha256":"${this.#part.digest('hex')}"}\n`
    this.#part = createHash('sha256')
    this.#partRows = 0
    this.#partBytes = 0
    return line
  }

  /** The last line, and the SHA-256 of all rows. */
  end(): { line: string; sha256: string } {
    const line = this.line()
    return { line, sha256: this.#all!.digest('hex') }
  }
}

/**
 * The same chunks of whole lines, with the proofs between them. The one after the last is left to the caller.
 * @param counted rows of the chunks so far; absent: their line feeds are counted
 */
export async function* proven(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
  proofs: RowProofs,
  counted?: () => number,
): AsyncGenerator<Uint8Array<ArrayBuffer> | string> {
  for await (const chunk of chunks) {
    if (chunk.length <= provenBytesMax) {
      if (proofs.isDue(chunk.length)) yield proofs.line()
      proofs.add(chunk, counted ? counted() - proofs.rows : linesIn(chunk))
      yield chunk
      continue
    }
    for (const lines of shortEnough(chunk)) {
      if (proofs.isDue(lines.length)) yield proofs.line()
      proofs.add(lines, linesIn(lines))
      // A chunk may be transferred to another thread with its buffer, which is that of the others.
      yield lines.slice()
    }
  }
}

/** Cuts a chunk where lines end. */
function* shortEnough(chunk: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let from = 0, to: number; from < chunk.length; from = to) {
    const last = chunk.subarray(0, from + provenBytesMax).lastIndexOf(lineFeed)
    to = (last >= from ? last : chunk.indexOf(lineFeed, from)) + 1
    yield chunk.subarray(from, to)
  }
}

function linesIn(chunk: Uint8Array): number {
  let lines = 0
  for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) lines++
  return lines
}
