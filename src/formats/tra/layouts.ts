/**
 * The records of a TRA file, version 011, by the columns of the public descriptor (`columns.json`): each field's name,
 * first column, length, kind, `M` if it is mandatory, and the source of its value where exports fill it; if a record has a
 * name twice, both are followed by their column. Each record has its page and the length of its line.
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
  const fields = (rows as [string, number, number, TraKind, 'M' | '-', string?][]).map(
    ([name, at, length, kind, mark, from]) => ({
      /** The descriptor's spelling; if a record has a name twice, followed by the column. */
      name,
      /** First column, from 1. */
      at,
      length,
      kind,
      mandatory: mark === 'M',
      /** Source of the value. Absent if exports never fill the field. */
      from,
    }),
  )
  const end = (field: { at: number; length: number } | undefined) =>
    field === undefined ? 0 : field.at + field.length - 1
  return {
    record,
    /** Columns 4 to 6; null for the header and for entry lines, which have none. */
    identifier: fields[1]?.name === 'IDENTIFIANT' && record !== 'HEADER' ? record : null,
    /** Whether a file of type DOS must contain it, at least as a bare identifier (p. 2). */
    mandatory,
    /** Ascending, without gaps. */
    fields,
    fieldsByName: new Map(fields.map((field) => [field.name, field])),
    /** Length of the whole line, and up to the end of its last mandatory field. */
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
 * In the order of the file. NSA and SPA, sections of the new analytics, follow the sections that they would replace;
 * exports leave them bare.
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

/** The columns of a day that is absent. */
export const noDay = '01011900'

const valueCharactersShown = 60

/** A value is too long for its columns and must not be cut. */
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
 * Writes one line, field by field, at the columns of its layout. Fields that are not written stay blank, except days
 * (01011900) and booleans (`-`), which are never blank.
 */
export class LineWriter {
  readonly #layout: TraLayout
  readonly #bytes: Buffer

  constructor(layout: TraLayout) {
    this.#layout = layout
    this.#bytes = Buffer.alloc(layout.length, blank)
    if (layout.identifier !== null) this.text('FIXE', '***').text('IDENTIFIANT', layout.identifier)
    for (const { kind, length, at } of layout.fields) {
      if (kind === 'b') this.#bytes.write('-', at - 1, 'latin1')
      if (kind === 'd' && length === noDay.length) this.#bytes.write(noDay, at - 1, 'latin1')
    }
  }

  /** Writes a text, cut to the length of its field. */
  text(name: string, value: string | null | undefined): this {
    const field = this.#field(name, 'a')
    return this.#put(field, toWindows1252(value ?? '').subarray(0, field.length), 'left')
  }

  /** Writes a name to a mandatory field. A blank name is replaced by `otherwise`, such as the code of what it names. */
  name(name: string, value: string, otherwise: string): this {
    return this.text(name, toWindows1252(value).every((byte) => byte === blank) ? otherwise : value)
  }

  /**
   * Writes an account number or code that other lines cite. It is never cut: a cut one could name another thing, or
   * two.
   * @throws {TraOverflow}
   */
  key(name: string, value: string | null | undefined, side: 'left' | 'right' = 'left'): this {
    const field = this.#field(name, 'a')
    const bytes = toWindows1252(value ?? '')
    if (bytes.length > field.length) throw new TraOverflow(this.#layout, field, value!)
    return this.#put(field, bytes, side)
  }

  /**
   * @param digits written as they are
   * @throws {TraOverflow}
   */
  number(name: string, digits: string): this {
    const field = this.#field(name, 'n')
    if (digits.length > field.length) throw new TraOverflow(this.#layout, field, digits)
    return this.#put(field, Buffer.from(digits, 'latin1'), 'right')
  }

  /**
   * @param minor hundredths
   * @throws {TraOverflow}
   */
  amount(name: string, minor: bigint): this {
    return this.number(name, inUnits(minor, ','))
  }

  /** @param iso `YYYY-MM-DD` */
  date(name: string, iso: string | null): this {
    return this.#put(this.#field(name, 'd'), Buffer.from(dayText(iso), 'latin1'), 'left')
  }

  /** @param iso `YYYY-MM-DDTHH:MM`; the rest is ignored */
  moment(name: string, iso: string): this {
    const digits = `${dayText(iso)}${iso.slice(11, 13)}${iso.slice(14, 16)}`
    return this.#put(this.#field(name, 'd'), Buffer.from(digits, 'latin1'), 'left')
  }

  flag(name: string, value: boolean): this {
    const field = fieldOf(this.#layout, name)
    assert(field.length === 1, `${this.#layout.record}.${name} is no flag`)
    return this.#put(field, Buffer.from(value ? 'X' : '-', 'latin1'), 'left')
  }

  /** Returns the line with CR LF, cut after its last column that is not blank or mandatory. */
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

/** An identifier alone: the folder has no values for this record (p. 2). */
export function bareLine(layout: TraLayout): Buffer {
  return Buffer.from(`***${layout.identifier}\r\n`, 'latin1')
}

/** `2024-02-29` as `29022024`. */
export function dayText(iso: string | null): string {
  return iso === null ? noDay : `${iso.slice(8, 10)}${iso.slice(5, 7)}${iso.slice(0, 4)}`
}
