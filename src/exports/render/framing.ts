import type { JsonForm } from '../../formats/file-formats.ts'
import { bytesOf } from '../../formats/text-bytes.ts'

/** What stands around items, and between them. */
export interface Framing {
  open: string
  /** Before each item but the first. */
  separator: string
  /** After each item. */
  terminator: string
  close: string
}

/** An array of JSON items, or an item a line. */
export const framings: Record<JsonForm, Framing> = {
  json: { open: '[', separator: ',', terminator: '', close: ']' },
  ndjson: { open: '', separator: '', terminator: '\n', close: '' },
}

export function framingBytes(form: JsonForm): Record<keyof Framing, Uint8Array> {
  const { open, separator, terminator, close } = framings[form]
  return {
    open: bytesOf(open),
    separator: bytesOf(separator),
    terminator: bytesOf(terminator),
    close: bytesOf(close),
  }
}
