import type { StreamedForm } from '../../formats/file-formats.ts'
import type { ChunkBuffer, Chunks } from '../chunks.ts'

/** The text around and between items. */
export interface Framing {
  open: string
  /** The text before each item except the first. */
  separator: string
  /** The text after each item. */
  terminator: string
  close: string
}

/** An array of JSON items, or one item per line. */
export const framings: Record<StreamedForm, Framing> = {
  json: { open: '[', separator: ',', terminator: '', close: ']' },
  ndjson: { open: '', separator: '', terminator: '\n', close: '' },
}

/** A single item, which is not in an array. */
export const itemFramings: Record<StreamedForm, Framing> = {
  json: { open: '', separator: '', terminator: '', close: '' },
  ndjson: framings.ndjson,
}

/** Joins items to the text of a whole body. */
export function framed(items: readonly string[], { open, separator, terminator, close }: Framing): string {
  return open + items.map((item) => item + terminator).join(separator) + close
}

/** An object as a line of JSON, with its line feed. */
export const jsonLine = (members: object): string => `${JSON.stringify(members)}\n`

/**
 * Frames items as JSON texts, one text per batch.
 * @param counted called with the number of items of each batch
 */
export async function* frameItems(
  batches: AsyncIterable<object[]>,
  { open, separator, terminator, close }: Framing,
  counted: (items: number) => void,
): AsyncGenerator<string> {
  if (open !== '') yield open
  let isFirst = true
  for await (const items of batches) {
    if (items.length === 0) continue
    const text = items.map((item) => JSON.stringify(item) + terminator).join(separator)
    counted(items.length)
    yield isFirst ? text : separator + text
    isFirst = false
  }
  if (close !== '') yield close
}

const encoder = new TextEncoder()

/**
 * Packs as many whole pieces as fit into each chunk, texts as UTF-8. A piece larger than a chunk gets a chunk of its
 * own. Where chunks end depends only on the pieces.
 */
export async function* packPieces(
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  buffer: ChunkBuffer,
): Chunks {
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  for await (const piece of pieces) {
    const bytes = Buffer.byteLength(piece)
    if (at + bytes > out.length) {
      if (at > 0) yield out.subarray(0, at)
      out = buffer(bytes)
      at = 0
    }
    if (typeof piece === 'string') encoder.encodeInto(piece, out.subarray(at))
    else out.set(piece, at)
    at += bytes
  }
  if (at > 0) yield out.subarray(0, at)
}
