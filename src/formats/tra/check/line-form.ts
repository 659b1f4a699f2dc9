/**
 * Checks a line against its layout: length, characters, and each field by its kind (docs/spec/tra.md#form-of-the-file).
 */
import { ascii } from '../../ascii.ts'
import { noDay } from '../layouts/fixed-width.ts'
import { layouts, type TraField, type TraLayout, type TraRecord } from '../layouts/layouts.ts'
import type { TraLine } from './parse.ts'
import type { TraProblems } from './problem.ts'

const { blank } = ascii

/** Mandatory in the descriptor, but blank if there is no value (docs/spec/tra.md#checks). */
const mayBeBlank: Partial<Record<TraRecord, readonly string[]>> = {
  HEADER: ['N° DOSSIER CAB', 'SO_NEWANALYTIQUE'],
  PS5: ['JALECC', 'CPTECCD', 'CPTECCC'],
  EXO: ['DATECREATION'],
  CAE: [
    'ADRESSE 1',
    'ADRESSE 2',
    'DOMICILIATION',
    'ETABLISSEMENT',
    'GUICHET',
    'COMPTE',
    'CLE',
    'PAYS',
    'REGIME TVA',
    'MODE REGLEMENT',
  ],
  RIB: ['AUXILIAIRE'],
  ENTRY: ['TYPE CPTE', 'AXE', 'REGIMETVA', 'TVA', 'TPF', 'REFGUID'],
  ANALYTIC: ['REGIMETVA', 'TVA', 'TPF', 'REFGUID'],
}

const yesOrNo = /^[X-]$/

/** Fields with a fixed set of values. */
const expectedValues: Partial<Record<TraRecord, Readonly<Record<string, RegExp>>>> = {
  HEADER: {
    IDENTIFIANT: /^(?:S1|S3|S5|SI|QU|WS|WT)$/,
    'ORIGINE FICHIER': /^(?:CLI|EXP)$/,
    'TYPE FICHIER': /^(?:JRL|DOS|BAL|SYN|EXO)$/,
    FORMAT: /^ETE$/,
    VERSION: /^011$/,
    SO_READYGUID: yesOrNo,
  },
  PS5: { DEVISE: /^[A-Z]{3}$/, TENUEEURO: yesOrNo, GEREANA: yesOrNo },
  EXO: { ETATCPTA: /^(?:OUV|CDE|CPR|NON)$/, ETATANO: /^(?:OAN|H)$/ },
  DEV: { CODE: /^[A-Z]{3}$/ },
  SAT: { AXE: /^A[1-5]$/ },
  CRR: { TYPE: /^(?:GE|AU|A)\d/ },
  CGN: { NATURE: /^(?:BQE|CAI|CHA|CO[CDFS]|DIV|EXT|IMO|PRO|TIC|TID)$/ },
  CAE: { NATURE: /^(?:AUC|AUD|CLI|DIV|FOU|SAL)$/ },
  JAL: { NATURE: /^(?:ACH|ANA|BQE|CAI|CLO|ECC|EXT|OD|ODA|REG|VTE|ANO)$/, MODESAISIE: /^(?:-|BOR|LIB)$/ },
  ENTRY: entryValues({ 'TYPE CPTE': /^X?$/, AXE: /^$/, ETATLETTRAGE: /^(?:RI|AL|PL|TL)$/ }),
  ANALYTIC: entryValues({ AXE: /^A[1-5]$/ }),
}

function entryValues(own: Record<string, RegExp>): Record<string, RegExp> {
  return {
    'TYPE PIECE': /^(?:FC|AC|RC|FF|AF|RF|OD|OC|OF)$/,
    SENS: /^[DC]$/,
    'TYPE ECRITURE': /^[NSUR]$/,
    CODEMONTANT: /^[ED][ED-][ED-]$/,
    ECRANOUVEAU: /^(?:N|OAN|H)$/,
    VALIDE: /^[X-]?$/,
    ...own,
  }
}

const amountFields = new Set(['MONTANT1', 'MONTANT2', 'MONTANT3', 'CAPITAL'])
const undefinedBytes = new Set([0x7f, 0x81, 0x8d, 0x8f, 0x90, 0x9d])

/** A check of one field. Most fields of entry lines are free text and need none. */
interface FieldRule {
  field: TraField
  isRequired: boolean
  values: RegExp | undefined
  isAmount: boolean
}

const rulesByLayout = new Map<TraLayout, FieldRule[]>(
  Object.entries(layouts).map(([record, layout]) => {
    const free = mayBeBlank[record as TraRecord] ?? []
    const values = expectedValues[record as TraRecord] ?? {}
    const rules = layout.fields.map((field) => ({
      field,
      isRequired: field.mandatory && !free.includes(field.name),
      values: values[field.name],
      isAmount: amountFields.has(field.name),
    }))
    return [layout, rules.filter((rule) => rule.isRequired || rule.values || rule.field.kind !== 'a')]
  }),
)

/** Adds the problems of form of one line. */
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

function problemOfBlank({ isRequired, values }: FieldRule): string | undefined {
  if (isRequired) return 'a value is required'
  return values !== undefined && !values.test('') ? `one of ${listOf(values)} is expected` : undefined
}

function problemOfValue(line: TraLine, { field, values, isAmount }: FieldRule): string | undefined {
  if (values !== undefined && !values.test(line.code(field))) return `one of ${listOf(values)} is expected`
  const columns = line.columns(field)
  if (field.kind === 'b') return yesOrNo.test(columns) ? undefined : 'X or - is expected'
  if (field.kind === 'd') return isDay(columns) ? undefined : 'a day written DDMMYYYY is expected'
  if (field.kind !== 'n') return undefined
  if (columns.length < field.length || !/^ *-?\d+(?:,\d+)?$/.test(columns))
    return 'a right-aligned number is expected'
  return !isAmount || /,\d\d$/.test(columns)
    ? undefined
    : 'an amount with a comma and two decimals is expected'
}

function listOf(values: RegExp): string {
  return values.source.replace(/^\^\(?(?:\?:)?/, '').replace(/\)?\$$/, '')
}

/** Cache: a ledger has a few hundred days in millions of fields. */
const knownDays = new Set<string>([noDay])

/** DDMMYYYY, followed by HHMM in the header. */
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
