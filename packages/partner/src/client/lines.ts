/** NDJSON: cuts the bytes of an answer into whole lines. */
import { Buffer } from 'node:buffer'
import { clientError } from './errors.ts'

const lineFeed = 10

/** Every item of the service is shorter. A longer line comes from another server. */
const itemBytesMax = 256 * 1024 * 1024

/**
 * Cuts a stream of bytes at line feeds. It searches each chunk once, and gives out all lines up to the last line feed
 * together. So it costs little more than joining the chunks, even for long lines.
 */
export class WholeLines {
  readonly #gatherBytes: number
  readonly #lineBytesMax: number
  #pieces: Uint8Array[] = []
  /** Index of the last piece that contains a line feed; -1 if none does. */
  #last = -1
  /** Bytes that have arrived and have not been given out. */
  restBytes = 0

  /** @param gatherBytes bytes to gather before lines are given out: few large pieces cost their reader less than many */
  constructor({ gatherBytes = 0, lineBytesMax = itemBytesMax } = {}) {
    this.#gatherBytes = gatherBytes
    this.#lineBytesMax = lineBytesMax
  }

  /** @returns whole lines, each with its line feed; undefined if there are none yet, or too few */
  push(chunk: Uint8Array): Uint8Array | undefined {
    if (chunk.includes(lineFeed)) this.#last = this.#pieces.length
    this.#pieces.push(chunk)
    this.restBytes += chunk.length
    return this.restBytes < this.#gatherBytes ? undefined : this.flush()
  }

  /** @returns all lines that are whole; undefined if there are none */
  flush(): Uint8Array | undefined {
    const place = this.#last
    if (place === -1) {
      if (this.restBytes > this.#lineBytesMax)
        throw clientError('UNEXPECTED-ANSWER', `A line has more than ${this.#lineBytesMax} bytes`)
      return undefined
    }
    const last = this.#pieces[place]!
    const end = last.lastIndexOf(lineFeed) + 1
    const whole = [...this.#pieces.slice(0, place), last.subarray(0, end)]
    const lines = whole.length === 1 ? whole[0]! : Buffer.concat(whole)
    this.#pieces = [last.subarray(end), ...this.#pieces.slice(place + 1)].filter(({ length }) => length > 0)
    this.#last = -1
    this.restBytes -= lines.length
    return lines
  }
}

/** Counts line feeds. Each line feed ends a line, because line breaks inside texts are escaped. */
export function countLines(chunk: Uint8Array): number {
  let lines = 0
  for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, at + 1)) lines += 1
  return lines
}

/** A copy of the last line of these whole lines. */
export function lastLineOf(lines: Uint8Array): Uint8Array {
  // The slice method of a Buffer would share its memory.
  return Uint8Array.prototype.slice.call(lines, lines.lastIndexOf(lineFeed, lines.length - 2) + 1)
}

/** The `producerId` of the item in a line. */
export function idOf(line: Uint8Array): string {
  const id = parseLine(new TextDecoder().decode(line), 0)?.producerId
  if (typeof id !== 'string') throw clientError('NOT-PROVEN', 'The last line has no producerId')
  return id
}

/**
 * The items in chunks of whole lines, one after the other.
 * @throws {GrandlivreError} NOT-PROVEN for a line that is not JSON in UTF-8
 */
export async function* itemsOf<Item>(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Item> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let row = 0
  for await (const chunk of chunks) {
    let text: string
    try {
      text = decoder.decode(chunk)
    } catch (cause) {
      throw clientError('NOT-PROVEN', `A line after row ${row} is not UTF-8`, { cause })
    }
    // Cuts only at line feeds: texts may contain U+2028.
    for (let start = 0; start < text.length; ) {
      const end = text.indexOf('\n', start)
      row += 1
      yield parseLine(text.slice(start, end), row) as Item
      start = end + 1
    }
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the reader of a line checks what it holds
function parseLine(line: string, row: number): any {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw clientError('NOT-PROVEN', row === 0 ? 'The last line is not JSON' : `Row ${row} is not JSON`, {
      cause,
    })
  }
}
