/**
 * Checks a line against its layout: its length, its characters, and each field by its kind
 * (docs/spec/tra.md#form-of-the-file).
 */
import { ascii } from '../../ascii.ts'
import { layouts, noDay } from '../layouts.ts'
import type { TraLine, TraProblems } from './parse.ts'
import rules from './rules.json' with { type: 'json' }

const { blank } = ascii

interface RecordRules {
  /** Fields that the descriptor calls mandatory, but that are blank if there is no value (docs/spec/tra.md#checks). */
  mayBeBlank?: readonly string[]
  /** A pattern for each field that takes only certain values. */
  values?: Readonly<Record<string, string>>
  /** Fields that cite a code, each with the records that may define this code. */
  cites?: Readonly<Record<string, readonly string[]>>
}

export const rulesOf = (record: string): RecordRules =>
  (rules as Readonly<Record<string, RecordRules>>)[record] ?? {}

const yesOrNo = /^[X-]$/

const amountFields = new Set(['MONTANT1', 'MONTANT2', 'MONTANT3', 'CAPITAL'])
const undefinedBytes = new Set([0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d])

/** The checks for the fields of each record. Most fields of entry lines are free text and need no check. */
const rulesByLayout = new Map(
  Object.entries(layouts).map(([record, layout]) => {
    const { mayBeBlank = [], values = {} } = rulesOf(record)
    const fields = layout.fields.map((field) => {
      const pattern = values[field.name]
      return {
        field,
        isRequired: field.mandatory && !mayBeBlank.includes(field.name),
        pattern,
        values: pattern === undefined ? undefined : new RegExp(`^(?:${pattern})$`),
      }
    })
    return [layout, fields.filter((rule) => rule.isRequired || rule.values || rule.field.kind !== 'a')]
  }),
)
type FieldRule = NonNullable<ReturnType<(typeof rulesByLayout)['get']>>[number]

/** Adds the problems in the form of a line to `problems`. */
export function checkForm(line: TraLine, problems: TraProblems): void {
  const { layout, bytes } = line
  const origin = { line: line.number, field: '', value: '' }
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!
    if (byte >= blank && (byte < 0x7f || !undefinedBytes.has(byte))) continue
    const value = `0x${byte.toString(16).padStart(2, '0')}`
    problems.add({ ...origin, column: i + 1, value, message: 'not a printable character of Windows-1252' })
  }
  if (bytes.length > layout.length)
    problems.add({
      ...origin,
      column: layout.length + 1,
      value: bytes.toString('latin1', layout.length, layout.length + 20),
      message: `the line is longer than its ${layout.length} columns`,
    })
  if (line.isBare) return
  if (bytes.length < layout.mandatoryEnd) {
    const message = `the line ends before its last mandatory column, ${layout.mandatoryEnd}`
    problems.add({ ...origin, column: bytes.length + 1, message })
  }
  for (const rule of rulesByLayout.get(layout)!) {
    const message = line.isBlank(rule.field) ? problemOfBlank(rule) : problemOfValue(line, rule)
    if (message !== undefined) line.refuse(problems, rule.field, message)
  }
}

function problemOfBlank({ isRequired, pattern, values }: FieldRule): string | undefined {
  if (isRequired) return 'a value is required'
  return values?.test('') === false ? `one of ${pattern} is expected` : undefined
}

function problemOfValue(line: TraLine, { field, pattern, values }: FieldRule): string | undefined {
  if (values?.test(line.code(field)) === false) return `one of ${pattern} is expected`
  const columns = line.columns(field)
  if (field.kind === 'b') return yesOrNo.test(columns) ? undefined : 'X or - is expected'
  if (field.kind === 'd') return isDay(columns) ? undefined : 'a day written DDMMYYYY is expected'
  if (field.kind !== 'n') return undefined
  if (columns.length < field.length || !/^ *-?\d+(?:,\d+)?$/.test(columns))
    return 'a right-aligned number is expected'
  return !amountFields.has(field.name) || /,\d\d$/.test(columns)
    ? undefined
    : 'an amount with a comma and two decimals is expected'
}

/** A cache of valid days: a ledger has a few hundred days in millions of fields. */
const knownDays = new Set<string>([noDay])

/** Whether the columns hold a day, DDMMYYYY. In the header, HHMM follows it. */
export function isDay(columns: string): boolean {
  if (knownDays.has(columns)) return true
  const [, day, month, year] = /^(\d\d)(\d\d)(\d{4})(?:[01]\d|2[0-3])?(?:[0-5]\d)?$/.exec(columns) ?? []
  if (year === undefined) return false
  const iso = `${year}-${month}-${day}`
  const date = new Date(`${iso}T00:00:00Z`)
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== iso) return false
  if (knownDays.size < 10_000) knownDays.add(columns)
  return true
}
