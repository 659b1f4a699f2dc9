/** Encodes text as Windows-1252, one byte per column (docs/spec/tra.md#form-of-the-file). */

import { Buffer } from 'node:buffer'
import { byteTable, encodeText } from '../single-byte.ts'

export const windows1252Bytes: Uint8Array = byteTable('windows-1252')

export function toWindows1252(text: string): Buffer {
  // Nearly all text is printable ASCII: a label takes 0.1 µs here, 0.5 µs below.
  return /^[ -~]*$/.test(text) ? Buffer.from(text, 'latin1') : encodeText(text, windows1252Bytes).bytes
}
