/**
 * Which characters the bytes of a FEC stand for. Nothing in the file says so; the regulation allows ASCII,
 * UTF-8 and ISO-8859-15, and old DOS programs write code page 850. The whole file is the evidence, not its
 * first lines: the first accent may stand anywhere.
 *
 * 1. Every byte sequence is valid UTF-8: UTF-8 (text in another encoding is practically never valid UTF-8 by
 *    chance; pure ASCII is UTF-8 as well).
 * 2. Otherwise the bytes above 0x7F are counted, as French would use them. The accented letters of
 *    ISO-8859-15 and Windows-1252 lie from 0xC0 up; those of CP850 lie from 0x80 to 0x97, where ISO-8859-15
 *    has nothing and Windows-1252 only punctuation. Whichever explains more bytes as French letters wins; in
 *    doubt it is not CP850.
 * 3. ISO-8859-15 and Windows-1252 give the same letters. Printed characters from 0x80 to 0x9F (curly quotes,
 *    the euro at 0x80) exist only in Windows-1252; without any it is ISO-8859-15, where the euro is 0xA4.
 */
import { isAscii } from 'node:buffer'
import iconv from 'iconv-lite'
import { FecError } from './problem.ts'

export type FecEncoding = 'utf-8' | 'iso-8859-15' | 'windows-1252' | 'cp850'

// The degree sign stands in "n° 12", often the only one of these in a label.
const latinLetters = iconv.encode('àâäçéèêëîïôöùûüÀÂÇÉÈÊËÎÏÔÙÛ°', 'windows-1252')
const dosLetters = iconv.encode('àâäçéèêëîïôöùûüÀÂÇÉÈÊËÎÏÔÙÛ°', 'cp850')

/**
 * Reads all the bytes of a file and decides its encoding.
 * @throws {FecError} where the file is empty or is no text (NUL bytes)
 */
export async function detectEncoding(bytes: AsyncIterable<Uint8Array>): Promise<FecEncoding> {
  const counts = new Float64Array(256)
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  let isUtf8 = true
  let line = 1
  let empty = true
  for await (const chunk of bytes) {
    empty &&= chunk.length === 0
    const nul = chunk.indexOf(0)
    if (nul >= 0) throw notText(line + lineFeedsIn(chunk.subarray(0, nul)))
    line += lineFeedsIn(chunk)
    isUtf8 &&= decodes(utf8, chunk, true)
    // By index: iterating takes three times as long.
    if (!isAscii(chunk)) for (let at = 0; at < chunk.length; at += 1) counts[chunk[at]!]! += 1
  }
  if (empty)
    throw new FecError([
      { line: 1, column: 'file', value: '', message: 'the file is empty, a FEC is expected' },
    ])
  if (isUtf8 && decodes(utf8, new Uint8Array(), false)) return 'utf-8'
  return singleByteEncoding(counts)
}

/** @param counts how often each byte occurs */
function singleByteEncoding(counts: Float64Array): FecEncoding {
  const sum = (letters: Iterable<number>) =>
    Array.from(letters).reduce((total, byte) => total + counts[byte]!, 0)
  if (sum(dosLetters) > sum(latinLetters)) return 'cp850'
  return counts.subarray(0x80, 0xa0).some((count) => count > 0) ? 'windows-1252' : 'iso-8859-15'
}

/** A decoder for a file read piece by piece; it drops a byte-order mark. */
export function decoderOf(encoding: FecEncoding): { write(chunk: Uint8Array): string; end(): string } {
  if (encoding !== 'utf-8') {
    const decoder = iconv.getDecoder(encoding)
    return {
      write: (chunk) => decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)),
      end: () => '',
    }
  }
  const decoder = new TextDecoder('utf-8')
  return { write: (chunk) => decoder.decode(chunk, { stream: true }), end: () => decoder.decode() }
}

function decodes(decoder: TextDecoder, chunk: Uint8Array, stream: boolean): boolean {
  try {
    decoder.decode(chunk, { stream })
    return true
  } catch (error) {
    if (error instanceof TypeError) return false
    throw error
  }
}

function lineFeedsIn(chunk: Uint8Array): number {
  let count = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count += 1
  return count
}

function notText(line: number): FecError {
  const message =
    'a binary file (or text in UTF-16): a FEC is text in UTF-8, ISO-8859-15, Windows-1252 or CP850'
  return new FecError([{ line, column: 'file', value: '0x00', message }])
}
