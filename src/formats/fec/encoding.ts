/**
 * Finds the encoding of a FEC, which the file does not state. The regulation allows ASCII, UTF-8 and ISO-8859-15, and
 * old DOS programs write code page 850. The whole file is examined, because the first accent may be anywhere.
 *
 * 1. If every byte sequence is valid UTF-8, the file is UTF-8. Pure ASCII counts as UTF-8. Text in another encoding is
 *    valid UTF-8 only by chance, as `ACTIVITÉ…` is: its É and the sign after it are one phonetic letter in UTF-8.
 * 2. If many characters beyond ASCII are sequences of UTF-8, the file is UTF-8, too. Programs cut labels in the middle
 *    of a character and join lines of two sources; one such byte must not spoil all accents of a ledger.
 * 3. Otherwise each word with a character beyond ASCII is read in the other three encodings and graded as French
 *    (french-words.ts). A word counts once, even if many lines repeat it. The encoding with the highest sum wins, and
 *    Windows-1252 if sums are equal. ISO-8859-15 differs from Windows-1252 in eight characters, and has no printed
 *    characters at 0x80 to 0x9F.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'
import { parseHeader } from './columns.ts'
import { FecError, FecProblems, quotedFields } from './fields.ts'
import { frenchGrade } from './french-words.ts'

/** If words cannot decide, the first encoding is taken. */
const singleByteEncodings = ['windows-1252', 'iso-8859-15', 'cp850'] as const
export const fecEncodings = ['utf-8', ...singleByteEncodings] as const
export type FecEncoding = (typeof fecEncodings)[number]

export interface EncodingChoice {
  encoding: FecEncoding
  /** The most doubtful field of the file: another possible encoding reads it differently. */
  example?: { line: number; text: string; otherEncoding: FecEncoding; otherText: string } | undefined
}

/**
 * Reads all the bytes of a file and decides its encoding.
 * @throws {FecError} if the file is empty or is not text (NUL bytes)
 */
export async function detectEncoding(bytes: AsyncIterable<Uint8Array>): Promise<EncodingChoice> {
  const words = new Map<string, Place>()
  let notUtf8: Block | undefined
  let high = 0
  let acuteCapitals = 0
  /** The number of bytes in the whole file that continue a UTF-8 character. */
  let continuing = 0
  for await (const block of wholeLines(bytes)) {
    if (isAscii(block.lines)) continue
    const isBlockUtf8 = isUtf8(block.lines)
    if (!isBlockUtf8) notUtf8 ??= block
    let expected = 0
    let wordEnd = 0
    let line = block.firstLine
    const isMarked = line === 1 && block.lines.indexOf('\ufeff') === 0
    // A loop over indexes: an iterator takes three times as long.
    for (let at = isMarked ? 3 : 0; at < block.lines.length; at += 1) {
      const byte = block.lines[at]!
      if (byte < 0x80) {
        expected = 0
        if (byte === lineFeed) line += 1
        continue
      }
      high += 1
      if (byte === 0xc9) acuteCapitals += 1
      if (byte >= 0xc0) expected = continuationsOf(byte)
      else if (expected > 0) {
        expected -= 1
        continuing += 1
      }
      if (!isBlockUtf8 && at >= wordEnd) wordEnd = keepWord(words, block.lines, at, line)
    }
  }
  if (notUtf8 === undefined && (high === 0 || acuteCapitals * 2 !== high)) return { encoding: 'utf-8' }
  const choice = byWords(words)
  // In UTF-8 half or more of the high bytes continue a character; in the other encodings few do.
  if (notUtf8 === undefined || continuing * 4 <= high) return choice
  const place = fieldsNotOf('utf-8', notUtf8, (line) => line.split(/[\t|;"]/)).next().value!
  return { encoding: 'utf-8', example: exampleOf(place, 'utf-8', choice.encoding) }
}

/**
 * How many bytes continue the UTF-8 character that this byte begins. Only Latin letters and signs, and the quotes,
 * dashes and euro that begin with E2, count. Any other byte returns 0: in the other encodings it is a letter with an
 * accent, which a no-break space or a quote may follow.
 */
function continuationsOf(byte: number): number {
  if (byte === 0xe2) return 2
  return byte >= 0xc2 && byte <= 0xc5 ? 1 : 0
}

/**
 * Stores the word around a byte, with the first place where it occurs.
 * @returns the end of the word
 */
function keepWord(words: Map<string, Place>, bytes: Buffer, at: number, line: number): number {
  const [start, end] = bounds(bytes, at, isOfWord)
  const text = bytes.toString('latin1', start, end)
  const word =
    text.length > 1
      ? ` ${text.replace(/\d+/g, '0')} `
      : `${kindOfNeighbour(bytes, at, -1)} ${text} ${kindOfNeighbour(bytes, at, 1)}`
  if (words.size < wordsMax && !words.has(word))
    words.set(word, { line, field: Buffer.from(bytes.subarray(...bounds(bytes, at, isOfField))) })
  return end
}

/** Start and end of the run of bytes around `at` for which `belongs` is true. */
function bounds(bytes: Buffer, at: number, belongs: (byte: number) => boolean): [number, number] {
  let [start, end] = [at, at + 1]
  while (start > 0 && at - start < shownBytesMax && belongs(bytes[start - 1]!)) start -= 1
  while (end < bytes.length && end - at < shownBytesMax && belongs(bytes[end]!)) end += 1
  return [start, end]
}

/** The kind of the character before or after a lone character in the same field, in the notation of `frenchGrade`. */
function kindOfNeighbour(bytes: Buffer, at: number, step: 1 | -1): string {
  let neighbour = at + step
  while (bytes[neighbour] === 0x20) neighbour += step
  const byte = bytes[neighbour] ?? 0
  if (!isOfField(byte)) return ' '
  if (byte >= 0x41 && byte <= 0x5a) return '#'
  return byte >= 0x61 ? 'a' : '0'
}

/** Whether a byte can be in a field: it is not a control character, a quote, `|` or `;`. */
const isOfField = (byte: number) => byte >= 0x20 && byte !== 0x22 && byte !== 0x7c && byte !== 0x3b
const isOfWord = (byte: number) => byte > 0x20 && isOfField(byte)

function byWords(words: ReadonlyMap<string, Place>): EncodingChoice {
  const candidates = singleByteEncodings.map((encoding) => {
    const readings = [...words].map(([word, place]) => {
      const text = iconv.decode(Buffer.from(word, 'latin1'), encoding)
      return { text, place, grade: frenchGrade(text) }
    })
    return { encoding, readings, sum: readings.reduce((sum, { grade }) => sum + grade, 0) }
  })
  const [best, ...others] = candidates.toSorted((one, other) => other.sum - one.sum)
  const { encoding, readings } = best!
  for (const other of others) {
    if (other.readings.some(({ text }) => notInLedgers.test(text))) continue
    const lead = (index: number) => other.readings[index]!.grade - readings[index]!.grade
    const [doubtful] = [...readings.keys()]
      .filter((index) => other.readings[index]!.text !== readings[index]!.text)
      .toSorted((one, two) => lead(two) - lead(one))
    if (doubtful !== undefined)
      return { encoding, example: exampleOf(readings[doubtful]!.place, encoding, other.encoding) }
  }
  return { encoding }
}

function exampleOf({ line, field }: Place, encoding: FecEncoding, otherEncoding: FecEncoding) {
  const read = (each: FecEncoding) => decodeLines(field, each).trim()
  return { line, text: read(encoding), otherEncoding, otherText: read(otherEncoding) }
}

/**
 * Reads all the bytes of a file, and checks that its encoding has a character for each.
 * @param isNamed whether --encoding names the encoding; otherwise the words of the file decided
 * @throws {FecError} if the file is empty or not text; or with the fields that have bytes without a character
 */
export async function checkEncoding(
  bytes: AsyncIterable<Uint8Array>,
  encoding: FecEncoding,
  isNamed: boolean,
): Promise<void> {
  const problems = new FecProblems()
  const message = isNamed
    ? `text in ${encoding} is expected, as --encoding says; without it the encoding is detected`
    : `text in ${encoding} is expected, as most words are French in it; correct the field, or name the encoding by --encoding`
  let header: string | undefined
  let separator = ''
  const cut = (line: string) => quotedFields(line, separator) ?? line.split(separator)
  for await (const block of wholeLines(bytes)) {
    if (header === undefined) {
      header = decodeLines(block.lines, encoding).split('\n')[0]!
      separator = parseHeader(header).separator
    }
    for (const { line, column, field } of fieldsNotOf(encoding, block, cut)) {
      const name = cut(header)[column]?.trim() ?? 'line'
      problems.add(line, name, decodeLines(field, encoding).trim(), message)
    }
  }
  problems.throwIfAny()
}

/** @param cut splits a line into its fields */
function* fieldsNotOf(
  encoding: FecEncoding,
  { lines, firstLine }: Block,
  cut: (line: string) => string[],
): Generator<Place & { column: number }, undefined> {
  if (isOf(encoding, lines)) return
  for (const [index, line] of lines.toString('latin1').split('\n').entries())
    for (const [column, text] of cut(line).entries()) {
      const field = Buffer.from(text, 'latin1')
      if (!isOf(encoding, field)) yield { line: firstLine + index, column, field }
    }
}

/**
 * Whether the encoding has a character for each of these bytes. iconv-lite decodes a byte without one as U+FFFD or as a
 * control code.
 */
function isOf(encoding: FecEncoding, bytes: Buffer): boolean {
  if (encoding === 'utf-8' || isAscii(bytes)) return isUtf8(bytes)
  return !/[\u0080-\u009f\ufffd]/.test(iconv.decode(bytes, encoding))
}

/** Characters that no ledger has: control codes, and the boxes and blocks of CP850. */
const notInLedgers = /[\u0080-\u009f\ufffd\u2500-\u25ff]/
/** The most bytes that are kept on either side of a character: of its word, and of the field in a message. */
const shownBytesMax = 40
/** The most different words that are graded. A ledger has some thousands. */
const wordsMax = 50_000
/** A longer line cannot belong to a FEC: real lines have a few hundred bytes. */
export const lineBytesMax = 64 * 1024
const lineFeed = 10

interface Place {
  line: number
  field: Buffer
}

export interface Block {
  /** Whole lines. A line that is too long is cut; it will be refused. */
  lines: Buffer
  firstLine: number
}

/** @throws {FecError} if the file is empty or has a NUL byte */
export async function* wholeLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Block> {
  let rest = Buffer.alloc(0)
  let firstLine = 1
  let isEmpty = true
  for await (const chunk of bytes) {
    isEmpty &&= chunk.length === 0
    const nul = chunk.indexOf(0)
    if (nul >= 0) {
      const line = firstLine + lineFeedsIn(chunk.subarray(0, nul))
      throw new FecError([{ line, column: 'file', value: '0x00', message: binaryFile }])
    }
    const whole = Buffer.concat([rest, chunk])
    const end = whole.lastIndexOf(lineFeed) + 1 || (whole.length > lineBytesMax ? whole.length : 0)
    const lines = whole.subarray(0, end)
    if (end > 0) yield { lines, firstLine }
    firstLine += lineFeedsIn(lines)
    rest = whole.subarray(end)
  }
  const message = 'the file is empty, a FEC is expected'
  if (isEmpty) throw new FecError([{ line: 1, column: 'file', value: '', message }])
  yield { lines: rest, firstLine }
}

/**
 * Decodes whole lines. In a file that counts as UTF-8, a byte that is not valid UTF-8 is read as Windows-1252, or as a
 * control character (such as U+0081) if Windows-1252 has no character for it.
 */
export function decodeLines(bytes: Buffer, encoding: FecEncoding): string {
  if (encoding !== 'utf-8') return iconv.decode(bytes, encoding)
  if (isUtf8(bytes)) return bytes.toString()
  return bytes.toString('latin1').replace(sequenceOrByte, (found) => {
    const piece = Buffer.from(found, 'latin1')
    return isUtf8(piece) ? piece.toString() : iconv.decode(piece, 'windows-1252').replace('\ufffd', found)
  })
}

const sequenceOrByte =
  /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g

export function lineFeedsIn(chunk: Uint8Array): number {
  let count = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count += 1
  return count
}

const binaryFile =
  'a binary file (or text in UTF-16): a FEC is text in UTF-8, ISO-8859-15, Windows-1252 or CP850'
