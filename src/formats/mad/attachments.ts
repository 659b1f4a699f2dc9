import { bytesOf, decodeCopyText, isNull, writePiece } from './json-bytes.ts'

const none = bytesOf('{}')

/** `{"<file name>":{"type":"URL","value":"<address>"}}`. Rare: two entries in a hundred have one. */
export function writeAttachments(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (isNull(bytes, start, end)) return writePiece(out, at, none)
  const addresses: Record<string, string> = JSON.parse(decodeCopyText(bytes, start, end))
  const files = Object.entries(addresses).map(([name, value]) => [name, { type: 'URL', value }])
  return writePiece(out, at, bytesOf(JSON.stringify(Object.fromEntries(files))))
}
