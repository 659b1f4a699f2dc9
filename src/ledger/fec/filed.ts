/**
 * The fields of a line that the ledger's own columns do not give back (docs/spec/imports.md#kept-as-filed). They are
 * stored as JSON beside the entry, where all its lines share them, or beside the movement, and cost nothing where a line
 * has none. A reader takes a field from the movement's JSON, else from the entry's, else from the ledger.
 */
import type { DatedLine } from './survey/entries.ts'

/** A column of the FEC, and the value in the standard's form: days as YYYYMMDD, a comma in amounts, '' for none. */
export type Field = readonly [column: string, value: string]
export type SharedFields = ReadonlyMap<string, string>

/** What the ledger gives back for a line. */
export interface LedgerFields {
  entry: {
    /** Null if it was filed blank: it may get a number here, and keeps the blank as filed. */
    number: string | null
    /** YYYY-MM-DD. */
    date: string
    validatedAt: string | null
  }
  journal: { label: string }
  account: { filedName: string; auxiliaryNumber: string | null; auxiliaryName: string | null }
}

const none: Field[] = []

/**
 * @param furtherColumns names for `line.further`
 * @param shared the fields already stored with the entry, which stand for the ledger's
 */
export function fieldsApart(
  line: DatedLine,
  { entry, journal, account }: LedgerFields,
  furtherColumns: readonly string[],
  shared: SharedFields,
): Field[] {
  let fields = none
  const compare = (column: string, value: string, derived: string | null) => {
    // The usual case: most entries share no field.
    if (shared.size === 0 ? value === derived : value === (shared.get(column) ?? derived)) return
    if (fields === none) fields = []
    fields.push([column, value])
  }
  const compareDay = (column: string, day: string | null | undefined, derived: string | null) => {
    // The usual case, and faster than writing both days.
    if (day === derived && shared.size === 0) return
    compare(column, fecDay(day), fecDay(derived))
  }
  compare('JournalLib', line.journalName, journal.label)
  compare('EcritureNum', line.entryNumber, entry.number)
  compareDay('EcritureDate', line.originalDate ?? line.date, entry.date)
  compare('CompteLib', line.accountName, account.filedName)
  compare('CompAuxNum', line.thirdPartyNumber, account.auxiliaryNumber ?? '')
  compare('CompAuxLib', line.thirdPartyName, account.auxiliaryName ?? '')
  compareDay('PieceDate', line.pieceDate, entry.date)
  compareDay('DateLet', line.letteredOn ?? null, null)
  compareDay('ValidDate', line.validatedOn ?? null, entry.validatedAt)
  compare('Montantdevise', line.amountInCurrencyAsFiled, '')
  compare('Idevise', line.currencyAsFiled, '')
  compareDay('DateRglt', line.settledOn ?? null, null)
  compare('ModeRglt', line.paymentMode, '')
  compare('NatOp', line.operationNature, '')
  compare('IdClient', line.clientId, '')
  for (let at = 0; at < furtherColumns.length; at += 1) compare(furtherColumns[at]!, line.further[at]!, '')
  return fields
}

/**
 * The columns that all lines of an entry share in most programs. Of an entry whose other lines are still to come only
 * these are stored with it: each line that differs has to say so.
 */
const ofEntries = new Set(['JournalLib', 'EcritureDate', 'PieceDate', 'ValidDate', 'Idevise', 'NatOp'])

/**
 * The fields that all these lines have in common, and a blank number of the first: the entry then gets a number here, and
 * the blank tells it from one that was filed.
 * @param isWhole whether these are all the lines of the entry
 */
export function sharedFields(lines: readonly Field[][], isWhole: boolean): SharedFields {
  const [first = none, ...others] = lines
  const common = first.filter(
    ([column, value]) =>
      (column === 'EcritureNum' && value === '') ||
      ((isWhole || ofEntries.has(column)) &&
        others.every((fields) => fields.some((field) => field[0] === column && field[1] === value))),
  )
  return common.length === 0 ? noFields : new Map(common)
}

export const noFields: SharedFields = new Map()

/** The text of a JSON object, with the columns in their order; null for no field. */
export function asJson(fields: Iterable<Field>): string | null {
  let text = ''
  for (const [column, value] of fields)
    text += `${text === '' ? '{' : ','}${JSON.stringify(column)}:${JSON.stringify(value)}`
  return text === '' ? null : `${text}}`
}

/** `2023-01-31` as `20230131`. */
function fecDay(day: string | null | undefined): string {
  return day ? day.slice(0, 4) + day.slice(5, 7) + day.slice(8) : ''
}

/** Attachments of movements: the addresses in the columns PJ and PieceJointe (docs/spec/imports.md#movements). */

export const attachmentColumn = /^(PJ|PieceJointe)$/i

/**
 * Addresses are separated by `*`; any text but an http(s) address only stays in its column. A name that several addresses
 * want gets ` (2)`, ` (3)` before its ending.
 * @returns null without an address
 */
export function attachmentsIn(values: readonly string[]): Record<string, string> | null {
  const found = new Map<string, string>()
  for (const address of values.flatMap((value) => value.split('*'))) {
    const text = address.trim()
    if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) continue
    if (![...found.values()].includes(text)) found.set(freeName(nameIn(text), found), text)
  }
  return found.size === 0 ? null : Object.fromEntries(found)
}

/** The last segment of the path, or the host if the path has none. */
function nameIn(address: string): string {
  const { pathname, host } = new URL(address)
  const segment = pathname.split('/').findLast((part) => part !== '') ?? host
  try {
    const decoded = decodeURIComponent(segment)
    // A NUL could not be stored, and a name with a slash would lead who saves the file under it to another folder.
    return /[\p{Cc}/\\]/u.test(decoded) ? segment : decoded
  } catch {
    return segment
  }
}

function freeName(name: string, taken: ReadonlyMap<string, string>): string {
  const dot = name.lastIndexOf('.')
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  let free = name
  for (let copy = 2; taken.has(free); copy += 1) free = `${stem} (${copy})${ending}`
  return free
}
