/**
 * The fields of a line that cannot be derived from the ledger's own columns (docs/spec/imports.md#kept-as-filed). They
 * are stored as JSON: with the entry, if all its lines share them, or else with the movement. A line without such
 * fields costs nothing. A reader takes a field from the movement's JSON, else from the entry's JSON, else from the
 * ledger.
 */
import type { DatedLine } from './survey/entries.ts'

/**
 * A column of the FEC, and its value as the standard writes it: days as YYYYMMDD, a comma in amounts, '' for no value.
 */
export type Field = readonly [column: string, value: string]
export type SharedFields = ReadonlyMap<string, string>

/** The values that can be derived from the ledger for a line. */
export interface LedgerFields {
  entry: {
    /**
     * Null if the number was filed blank. The entry may get a number from the ledger, but the blank is kept as filed.
     */
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
 * The fields of a line that differ from what a reader would find without them.
 * @param furtherColumns the names of the columns in `line.further`
 * @param shared the fields already stored with the entry, which a reader finds in place of the ledger's
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
    // The usual case, and faster than writing both days as texts.
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
 * Most programs write the same value of these columns into all lines of an entry. If further lines of an entry are
 * still to come, only these are stored with it, because each line that differs has to store its own value.
 */
const ofEntries = new Set(['JournalLib', 'EcritureDate', 'PieceDate', 'ValidDate', 'Idevise', 'NatOp'])

/**
 * The fields that all these lines have in common, and the number of the first line if it is blank: the entry then gets
 * a number from the ledger, and the stored blank tells that this number was not filed.
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

/** The text of a JSON object that has the columns in the given order; null if there is no field. */
export function asJson(fields: Iterable<Field>): string | null {
  let text = ''
  for (const [column, value] of fields)
    text += `${text === '' ? '{' : ','}${JSON.stringify(column)}:${JSON.stringify(value)}`
  return text === '' ? null : `${text}}`
}

/** Converts `2023-01-31` to `20230131`. */
function fecDay(day: string | null | undefined): string {
  return day ? day.slice(0, 4) + day.slice(5, 7) + day.slice(8) : ''
}

/** Attachments of movements: the addresses in the columns PJ and PieceJointe (docs/spec/imports.md#movements). */

export const attachmentColumn = /^(PJ|PieceJointe)$/i

/**
 * Finds the addresses, which are separated by `*`. A text that is not an http(s) address becomes no attachment. If
 * several addresses have the same file name, the later ones get ` (2)`, ` (3)` before the ending.
 * @returns null if there is no address
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

/** The file name in an address: the last segment of the path, or the host if the path is empty. */
function nameIn(address: string): string {
  const { pathname, host } = new URL(address)
  const segment = pathname.split('/').findLast((part) => part !== '') ?? host
  try {
    const decoded = decodeURIComponent(segment)
    // A NUL cannot be stored. A slash could make a program that saves the file under this name write to another folder.
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
