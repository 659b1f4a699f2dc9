/**
 * Detects the encoding of a FEC. Nothing in the file states it. The regulation allows ASCII, UTF-8 and ISO-8859-15, and
 * old DOS programs write code page 850. The whole file is examined, not only its first lines, since the first accent
 * may be anywhere.
 *
 * 1. If every byte sequence is valid UTF-8, it is UTF-8. Text in another encoding is practically never valid UTF-8 by
 *    chance; pure ASCII is UTF-8 as well.
 * 2. If many characters beyond ASCII are sequences of UTF-8, it is UTF-8 as well. Programs cut labels in the middle of
 *    a character and join lines of two sources; one such byte must not spoil all accents of a ledger.
 * 3. Otherwise the bytes above 0x7F that are French letters are counted. The accented letters of ISO-8859-15 and
 *    Windows-1252 are at 0xC0 and above. Those of CP850 are from 0x80 to 0x97, where ISO-8859-15 has nothing and
 *    Windows-1252 only punctuation. The encoding with more French letters wins; with equal counts it is not CP850.
 * 4. ISO-8859-15 and Windows-1252 give the same letters. Printed characters from 0x80 to 0x9F (curly quotes,
 *    the euro at 0x80) exist only in Windows-1252; without any it is ISO-8859-15, where the euro is 0xA4.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'
import { FecError } from './problem.ts'

export type FecEncoding = 'utf-8' | 'iso-8859-15' | 'windows-1252' | 'cp850'

// The degree sign of "n° 12" is often the only one of these in a label.
const latinLetters = iconv.encode('àâäçéèêëîïôöùûüÀÂÇÉÈÊËÎÏÔÙÛ°', 'windows-1252')
const dosLetters = iconv.encode('àâäçéèêëîïôöùûüÀÂÇÉÈÊËÎÏÔÙÛ°', 'cp850')

/**
 * Reads all the bytes of a file and decides its encoding.
 * @throws {FecError} if the file is empty or is not text (NUL bytes)
 */
export async function detectEncoding(bytes: AsyncIterable<Uint8Array>): Promise<FecEncoding> {
  const counts = new Float64Array(256)
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  let isAllUtf8 = true
  /** Bytes in the whole file that continue a character of UTF-8. */
  let continuing = 0
  let expected = 0
  let line = 1
  let empty = true
  for await (const chunk of bytes) {
    empty &&= chunk.length === 0
    const nul = chunk.indexOf(0)
    if (nul >= 0) throw notText(line + lineFeedsIn(chunk.subarray(0, nul)))
    line += lineFeedsIn(chunk)
    isAllUtf8 &&= decodes(utf8, chunk, true)
    if (isAscii(chunk)) continue
    // By index: an iterator takes three times as long.
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at]!
      counts[byte]! += 1
      if (byte < 0x80 || byte >= 0xc0) expected = continuationsOf(byte)
      else if (expected > 0) {
        expected -= 1
        continuing += 1
      }
    }
  }
  if (empty)
    throw new FecError([
      { line: 1, column: 'file', value: '', message: 'the file is empty, a FEC is expected' },
    ])
  if (isAllUtf8 && decodes(utf8, new Uint8Array(), false)) return 'utf-8'
  // In UTF-8 half or more of the high bytes continue a character; in the other encodings few do, such as a quote after
  // a capital with an accent.
  const high = counts.subarray(0x80).reduce((sum, count) => sum + count, 0)
  return continuing * 4 > high ? 'utf-8' : singleByteEncoding(counts)
}

/**
 * How many bytes continue the UTF-8 character that this byte begins: French letters or, after E2, quotes, dashes and
 * the euro. 0 for all others: in the other encodings they are small letters with an accent, and a no-break space or a
 * quote may follow.
 */
function continuationsOf(byte: number): number {
  if (byte === 0xe2) return 2
  return byte >= 0xc2 && byte <= 0xdf ? 1 : 0
}

/** @param counts how often each byte occurs */
function singleByteEncoding(counts: Float64Array): FecEncoding {
  const sum = (letters: Iterable<number>) =>
    Array.from(letters).reduce((total, byte) => total + counts[byte]!, 0)
  if (sum(dosLetters) > sum(latinLetters)) return 'cp850'
  return counts.subarray(0x80, 0xa0).some((count) => count > 0) ? 'windows-1252' : 'iso-8859-15'
}

/** Decodes whole lines. In a UTF-8 text (see above), each byte that is not valid UTF-8 is read as Windows-1252. */
export function decodeLines(bytes: Buffer, encoding: FecEncoding): string {
  if (encoding !== 'utf-8') return iconv.decode(bytes, encoding)
  if (isUtf8(bytes)) return bytes.toString()
  return bytes.toString('latin1').replace(sequenceOrByte, (found) => {
    const piece = Buffer.from(found, 'latin1')
    return isUtf8(piece) ? piece.toString() : iconv.decode(piece, 'windows-1252')
  })
}

const sequenceOrByte =
  /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g

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
