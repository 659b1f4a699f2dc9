import { ascii } from '../ascii.ts'
import { bytesOf, escapedAt, isNull, writePiece } from '../text-bytes.ts'

const { backslash, blank, braceClose, colon, quote } = ascii

const none = bytesOf('{}')
const beforeAddress = bytesOf(':{"type":"URL","value":')

/**
 * Writes `{"<file name>":{"type":"URL","value":"<address>"}}` from the row's `{"<file name>": "<address>"}`, in the
 * order of the database. It needs up to six times the range. It works on bytes: parsing and stringifying the
 * attachments of two entries in a hundred took a tenth of the time of everything else.
 */
export function writeAttachments(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (isNull(bytes, start, end)) return writePiece(out, at, none)
  let inString = false
  let isAddress = false
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte === backslash) {
      // COPY doubles each backslash.
      i = escapedAt(bytes, i)
      out[at++] = backslash
      out[at++] = bytes[i]!
    } else if (inString || byte === quote) {
      out[at++] = byte
      if (byte !== quote) continue
      inString = !inString
      if (inString || !isAddress) continue
      out[at++] = braceClose
      isAddress = false
    } else if (byte === colon) {
      at = writePiece(out, at, beforeAddress)
      isAddress = true
    } else if (byte !== blank) out[at++] = byte
  }
  return at
}
