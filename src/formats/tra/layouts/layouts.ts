/**
 * The records of a TRA file, version 011, by the columns of the public descriptor (`../columns.json`): each field's name,
 * first column, length, kind, `M` if it is mandatory, and the source of its value where exports fill it; if a record has a
 * name twice, both are followed by their column. Each record has its page and the length of its line.
 */
import columns from '../columns.json' with { type: 'json' }

/** `a` text, left-aligned; `n` number, right-aligned; `d` day, DDMMYYYY; `b` boolean, `X` or `-`. */
export type TraKind = 'a' | 'n' | 'd' | 'b'

export interface TraField {
  /** The descriptor's spelling; if a record has a name twice, followed by the column. */
  name: string
  /** First column, from 1. */
  at: number
  length: number
  kind: TraKind
  mandatory: boolean
  /** Source of the value. Absent if exports never fill the field. */
  from: string | undefined
}

export interface TraLayout {
  record: string
  /** Columns 4 to 6; null for the header and for entry lines, which have none. */
  identifier: string | null
  /** Whether a file of type DOS must contain it, at least as a bare identifier (p. 2). */
  mandatory: boolean
  /** Ascending, without gaps. */
  fields: readonly TraField[]
  fieldsByName: ReadonlyMap<string, TraField>
  /** Length of the whole line, and up to the end of its last mandatory field. */
  length: number
  mandatoryEnd: number
}

function layout(
  record: string,
  { mandatory, fields: rows }: { mandatory: boolean; fields: unknown[][] },
): TraLayout {
  const fields = (rows as [string, number, number, TraKind, 'M' | '-', string?][]).map(
    ([name, at, length, kind, mark, from]) => ({ name, at, length, kind, mandatory: mark === 'M', from }),
  )
  const end = (field: TraField | undefined) => (field === undefined ? 0 : field.at + field.length - 1)
  return {
    record,
    identifier: fields[1]?.name === 'IDENTIFIANT' && record !== 'HEADER' ? record : null,
    mandatory,
    fields,
    fieldsByName: new Map(fields.map((field) => [field.name, field])),
    length: end(fields.at(-1)),
    mandatoryEnd: end(fields.findLast((field) => field.mandatory)),
  }
}

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
