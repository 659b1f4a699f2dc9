/**
 * Reads a TRA file: bytes in, batches of lines out, one chunk in memory at a time. Each line comes with the layout of
 * its record. Malformed lines are reported with line and column, and reading continues.
 */
import { Buffer } from 'node:buffer'
import { ascii } from '../../ascii.ts'
import { fieldOf, layouts, noDay, type TraField, type TraLayout } from '../layouts.ts'

const { blank, capitalA, carriageReturn, lineFeed } = ascii

/** A longer line cannot belong to a TRA file: its lines have at most 1,407 columns. */
const lineBytesMax = 64 * 1024

const accountType = fieldOf(layouts.ENTRY, 'TYPE CPTE')
const byIdentifier = new Map<string, TraLayout>(
  Object.values(layouts).flatMap((layout) =>
    layout.identifier === null ? [] : [[layout.identifier, layout]],
  ),
)
const windows1252 = new TextDecoder('windows-1252')

/**
 * One line without its line end. Columns beyond its end count as blank. Fields are named as in the layout of the
 * record.
 */
export class TraLine {
  readonly number: number
  readonly layout: TraLayout
  readonly bytes: Buffer
  /** Whether the line has only an identifier: the folder then has no values for this record. */
  readonly isBare: boolean

  constructor(number: number, layout: TraLayout, bytes: Buffer) {
    this.number = number
    this.layout = layout
    this.bytes = bytes
    this.isBare = layout.identifier !== null && bytes.length === 6
  }

  /** The columns of a field as far as the line has them, one character per byte. */
  columns(field: TraField | string): string {
    const { at, length } = this.#field(field)
    return this.bytes.toString('latin1', at - 1, Math.min(at - 1 + length, this.bytes.length))
  }

  /** The field without padding on either side, for comparisons: characters above 0x7f are not decoded. */
  code(field: TraField | string): string {
    return this.columns(field).trim()
  }

  /** The decoded field, without padding. */
  text(field: TraField | string): string {
    const { at, length } = this.#field(field)
    return windows1252.decode(this.bytes.subarray(at - 1, at - 1 + length)).trim()
  }

  /** The decoded field without the blanks after it. Blanks at the beginning belong to the value. */
  value(field: TraField | string): string {
    const { at, length } = this.#field(field)
    let end = Math.min(at - 1 + length, this.bytes.length)
    while (end > at - 1 && this.bytes[end - 1] === blank) end -= 1
    return windows1252.decode(this.bytes.subarray(at - 1, end))
  }

  valueOrNull(field: string): string | null {
    return this.value(field) || null
  }

  /** A day as `YYYY-MM-DD`; null if the field has no day. */
  day(field: string): string | null {
    const columns = this.code(field)
    return columns === '' || columns === noDay ? null : isoDay(columns)
  }

  isBlank(field: TraField | string): boolean {
    const { at, length } = this.#field(field)
    const end = Math.min(at - 1 + length, this.bytes.length)
    for (let i = at - 1; i < end; i++) if (this.bytes[i] !== blank) return false
    return true
  }

  /** A copy to keep. The line itself is a view of its chunk, so it would keep the whole chunk in memory. */
  kept(): TraLine {
    return new TraLine(this.number, this.layout, Buffer.from(this.bytes))
  }

  /** Adds a problem with one field. */
  refuse(problems: TraProblems, field: TraField | string, message: string): void {
    const { at, name } = this.#field(field)
    problems.add({
      line: this.number,
      column: at,
      field: `${this.layout.record}.${name}`,
      value: this.text(field),
      message,
    })
  }

  #field(field: TraField | string): TraField {
    return typeof field === 'string' ? fieldOf(this.layout, field) : field
  }
}

/**
 * Yields the lines of known records, and skips all others. Stops at once if the file does not begin like a TRA file.
 * @param problems receives the problems in the form of lines
 */
export async function* parseTra(
  bytes: AsyncIterable<Uint8Array>,
  problems: TraProblems,
): AsyncGenerator<TraLine[]> {
  let number = 0
  const addProblem = (column: number, value: string, message: string) =>
    problems.add({ line: number, column, field: '', value, message })
  for await (const texts of splitLines(bytes)) {
    const batch: TraLine[] = []
    for (const text of texts) {
      number += 1
      const layout = layoutOf(text, number)
      if (number === 1 && layout === undefined) {
        addProblem(1, text.toString('latin1', 0, 60).trim(), 'this is not a TRA file, which begins with ***')
        return
      }
      const columns = columnsOf(text)
      if (text.length > lineBytesMax) {
        addProblem(lineBytesMax, '', 'a line without an end: the rest of the file is not read')
        return
      }
      if (text.length - columns !== 2) addProblem(columns + 1, '', 'the line does not end with CR LF')
      if (layout !== undefined) batch.push(new TraLine(number, layout, text.subarray(0, columns)))
      else addProblem(4, text.toString('latin1', 3, 6), 'not a record of TRA files of version 011')
    }
    yield batch
  }
  if (number > 0) return
  number = 1
  addProblem(1, '', 'the file is empty')
}

function layoutOf(text: Buffer, number: number): TraLayout | undefined {
  const isRecord = text.toString('latin1', 0, 3) === '***'
  if (number === 1) return isRecord ? layouts.HEADER : undefined
  if (isRecord) return byIdentifier.get(text.toString('latin1', 3, 6))
  return text[accountType.at - 1] === capitalA ? layouts.ANALYTIC : layouts.ENTRY
}

/** The length of a line without its line end, which may be CR LF, LF or missing. */
function columnsOf(text: Buffer): number {
  if (text.at(-1) !== lineFeed) return text.length
  return text.at(-2) === carriageReturn ? text.length - 2 : text.length - 1
}

/** Yields lines with their line ends. Stops at a line that is too long, after the part of it that was read. */
async function* splitLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer[]> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const piece of bytes) {
    // Copied in either case, because the source may write to the piece again.
    const chunk = rest.length === 0 ? Buffer.from(piece) : Buffer.concat([rest, piece])
    const lines: Buffer[] = []
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      lines.push(chunk.subarray(start, end + 1))
      start = end + 1
    }
    rest = chunk.subarray(start)
    yield lines
    if (rest.length > lineBytesMax) break
  }
  if (rest.length > 0) yield [rest]
}

/** Converts `29022024` to `2024-02-29`. */
export function isoDay(columns: string): string {
  return `${columns.slice(4, 8)}-${columns.slice(2, 4)}-${columns.slice(0, 2)}`
}

/** A problem of a TRA file, for the author of the file. */
interface TraProblem {
  /** The number of the line, from 1, as editors count. */
  line: number
  /** The number of the column, from 1, as the descriptor counts. */
  column: number
  /** The record and field, such as `ENTRY.MONTANT1`. Empty if the problem is not in a field. */
  field: string
  /** The value in the file, without padding. */
  value: string
  message: string
}

/**
 * The most problems that are kept. One mistake of a program appears in every line of a file, and a few examples are
 * enough.
 */
const keptMax = 100

export class TraProblems {
  readonly kept: TraProblem[] = []
  count = 0

  add(problem: TraProblem): void {
    this.count += 1
    if (this.kept.length < keptMax) this.kept.push(problem)
  }

  /** The kept problems in the order of the file. */
  sorted(): TraProblem[] {
    return this.kept.toSorted((one, other) => one.line - other.line || one.column - other.column)
  }
}

/** Describes a problem, such as `line 12, column 4, ENTRY.SENS "X": D or C is expected`. */
export function problemText({ line, column, field, value, message }: TraProblem): string {
  return `line ${line}, column ${column}${field && `, ${field}`}${value && ` "${value}"`}: ${message}`
}
