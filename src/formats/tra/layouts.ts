/**
 * The records of a TRA file, version 011, by the columns of the public descriptor (`columns.json`). A field has a name,
 * a first column, a length, a kind, `M` if it is mandatory, and the source of its value if exports fill it. After the
 * source `constant` comes the value that every export writes. If a record has a name twice, the column follows both
 * names. A record has its page in the descriptor and the length of its line.
 */

import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { UnsupportedByFormat } from '../file-formats.ts'
import { inUnits } from '../minor-units.ts'
import { toWindows1252 } from '../single-byte.ts'
import columns from './columns.json' with { type: 'json' }

const { blank } = ascii

/** `a` text, left-aligned; `n` number, right-aligned; `d` day, DDMMYYYY; `b` boolean, `X` or `-`. */
type TraKind = 'a' | 'n' | 'd' | 'b'

function layout(record: string, { mandatory, fields: rows }: { mandatory: boolean; fields: unknown[][] }) {
  const fields = (rows as [string, number, number, TraKind, 'M' | '-', string?, string?][]).map(
    ([name, at, length, kind, mark, from, constant]) => ({
      /** The name as the descriptor spells it, followed by the column if the record has the name twice. */
      name,
      /** The first column, from 1. */
      at,
      length,
      kind,
      mandatory: mark === 'M',
      /** The source of the value. Absent if exports never fill the field. */
      from,
      /** The value in every export; absent if the value varies, or if exports never fill the field. */
      constant,
    }),
  )
  const end = (field: { at: number; length: number } | undefined) =>
    field === undefined ? 0 : field.at + field.length - 1
  return {
    record,
    /** The identifier in columns 4 to 6. Null for the header and for entry lines, which have none. */
    identifier: fields[1]?.name === 'IDENTIFIANT' && record !== 'HEADER' ? record : null,
    /** Whether a file of type DOS must contain the record, at least as a bare identifier (p. 2). */
    mandatory,
    /** In ascending order, without gaps. */
    fields,
    fieldsByName: new Map(fields.map((field) => [field.name, field])),
    /** The length of the whole line, and its length up to the end of its last mandatory field. */
    length: end(fields.at(-1)),
    mandatoryEnd: end(fields.findLast((field) => field.mandatory)),
  }
}
export type TraLayout = ReturnType<typeof layout>
export type TraField = TraLayout['fields'][number]

const { ENTRY, ENTRY_EXT, ANALYTIC_EXT, ...parameters } = columns
const line = (extended: typeof ENTRY) => ({ ...ENTRY, fields: [...ENTRY.fields, ...extended.fields] })
const records = { ...parameters, ENTRY: line(ENTRY_EXT), ANALYTIC: line(ANALYTIC_EXT) }

export type TraRecord = keyof typeof records

/**
 * The layouts in the order of records in the file. NSA and SPA, sections of the new analytics, come after the sections
 * that they would replace; exports leave them bare.
 */
export const layouts = Object.fromEntries(
  Object.entries(records).map(([record, described]) => [record, layout(record, described)]),
) as Record<TraRecord, TraLayout>

export function fieldOf(layout: TraLayout, name: string): TraField {
  const field = layout.fieldsByName.get(name)
  if (field === undefined) throw new Error(`${layout.record} has no field ${name}`)
  return field
}

/** Writes lines of fixed columns (docs/spec/tra.md#form-of-the-file). */

/** The columns of a field without a day. */
export const noDay = '01011900'

const valueCharactersShown = 60

/** Thrown if a value is too long for its columns and must not be cut. */
export class TraOverflow extends UnsupportedByFormat {
  override name = 'TraOverflow'
  readonly record: string
  readonly field: string

  constructor(layout: TraLayout, field: TraField, value: string) {
    const shown = value.length > valueCharactersShown ? `${value.slice(0, valueCharactersShown)}...` : value
    super(
      `${layout.record}.${field.name} of a TRA file has ${field.length} columns and cannot hold "${shown}"`,
    )
    this.record = layout.record
    this.field = field.name
  }
}

/**
 * Writes one line, field by field, at the columns of its layout. Constants are written without a call. Any other field
 * that is not written stays blank, except that a day becomes 01011900 and a boolean `-`, because these are never blank.
 */
export class LineWriter {
  readonly #layout: TraLayout
  readonly #bytes: Buffer

  constructor(layout: TraLayout) {
    this.#layout = layout
    this.#bytes = Buffer.alloc(layout.length, blank)
    if (layout.identifier !== null) this.text('FIXE', '***').text('IDENTIFIANT', layout.identifier)
    for (const field of layout.fields) {
      const { kind, length, at, constant } = field
      if (kind === 'b') this.#bytes.write('-', at - 1, 'latin1')
      if (kind === 'd' && length === noDay.length) this.#bytes.write(noDay, at - 1, 'latin1')
      if (constant !== undefined)
        this.#put(field, Buffer.from(constant, 'latin1'), kind === 'n' ? 'right' : 'left')
    }
  }

  /** Writes a text, cut to the length of its field. */
  text(name: string, value: string | null | undefined): this {
    const field = this.#field(name, 'a')
    return this.#put(field, toWindows1252(value ?? '').subarray(0, field.length), 'left')
  }

  /**
   * Writes a name to a mandatory field. @param otherwise written if the name is blank, such as the code of the named
   * item
   */
  name(name: string, value: string, otherwise: string): this {
    return this.text(name, toWindows1252(value).every((byte) => byte === blank) ? otherwise : value)
  }

  /**
   * Writes an account number or code that other lines cite. It is never cut, because a cut code could name another
   * item.
   * @throws {TraOverflow} if it does not fit
   */
  key(name: string, value: string | null | undefined, side: 'left' | 'right' = 'left'): this {
    const field = this.#field(name, 'a')
    const bytes = toWindows1252(value ?? '')
    if (bytes.length > field.length) throw new TraOverflow(this.#layout, field, value!)
    return this.#put(field, bytes, side)
  }

  /**
   * @param digits written unchanged
   * @throws {TraOverflow} if they do not fit
   */
  number(name: string, digits: string): this {
    const field = this.#field(name, 'n')
    if (digits.length > field.length) throw new TraOverflow(this.#layout, field, digits)
    return this.#put(field, Buffer.from(digits, 'latin1'), 'right')
  }

  /**
   * @param minor the amount in hundredths
   * @throws {TraOverflow} if it does not fit
   */
  amount(name: string, minor: bigint): this {
    return this.number(name, inUnits(minor, ','))
  }

  /** @param iso `YYYY-MM-DD`, with `THH:MM` for the moment in the header */
  date(name: string, iso: string | null): this {
    const digits = `${dayText(iso)}${iso?.slice(11).replace(':', '') ?? ''}`
    return this.#put(this.#field(name, 'd'), Buffer.from(digits, 'latin1'), 'left')
  }

  flag(name: string, value: boolean): this {
    return this.#put(this.#field(name, 'b'), Buffer.from(value ? 'X' : '-', 'latin1'), 'left')
  }

  /** The line with CR LF, cut after its last column that is mandatory or not blank. */
  line(): Buffer {
    let end = this.#layout.length
    while (end > this.#layout.mandatoryEnd && this.#bytes[end - 1] === blank) end -= 1
    return Buffer.concat([this.#bytes.subarray(0, end), Buffer.from('\r\n', 'latin1')])
  }

  #field(name: string, kind: TraKind): TraField {
    const field = fieldOf(this.#layout, name)
    assert(field.kind === kind, `${this.#layout.record}.${name} is of kind ${field.kind}, not ${kind}`)
    return field
  }

  #put({ at, length }: TraField, bytes: Uint8Array, side: 'left' | 'right'): this {
    assert(bytes.length <= length)
    this.#bytes.fill(blank, at - 1, at - 1 + length)
    this.#bytes.set(bytes, side === 'left' ? at - 1 : at - 1 + length - bytes.length)
    return this
  }
}

/** A line with only the identifier: the folder has no values for this record (p. 2). */
export function bareLine(layout: TraLayout): Buffer {
  return Buffer.from(`***${layout.identifier}\r\n`, 'latin1')
}

/** Converts `2024-02-29` to `29022024`. */
export function dayText(iso: string | null): string {
  return iso === null ? noDay : `${iso.slice(8, 10)}${iso.slice(5, 7)}${iso.slice(0, 4)}`
}
