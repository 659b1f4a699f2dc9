import type { JsonForm } from '../../formats/file-formats.ts'
import { type Piece, pieceOf } from '../../formats/mad/words.ts'

/** The text around and between items. */
export interface Framing {
  open: string
  /** Before each item except the first. */
  separator: string
  /** After each item. */
  terminator: string
  close: string
}

/** An array of JSON items, or one item per line. */
export const framings: Record<JsonForm, Framing> = {
  json: { open: '[', separator: ',', terminator: '', close: ']' },
  ndjson: { open: '', separator: '', terminator: '\n', close: '' },
}

/** A single item, which is not in an array. */
export const itemFramings: Record<JsonForm, Framing> = {
  json: { open: '', separator: '', terminator: '', close: '' },
  ndjson: framings.ndjson,
}

export function framingPieces({ open, separator, terminator, close }: Framing): Record<keyof Framing, Piece> {
  return {
    open: pieceOf(open),
    separator: pieceOf(separator),
    terminator: pieceOf(terminator),
    close: pieceOf(close),
  }
}

/**
 * Items as JSON texts, a batch in each.
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
