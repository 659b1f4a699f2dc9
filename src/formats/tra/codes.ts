/**
 * Short codes for the narrow columns of a TRA file. Codes that fit are kept, the others are replaced. The result
 * depends only on the set of codes, not on its order, so that two exports of one folder use the same code for a
 * journal.
 */
import { toWindows1252 } from '../single-byte.ts'
import { fieldOf, layouts, TraOverflow } from './layouts.ts'

interface Coded {
  id: string
  code: string
}

/**
 * Short codes by id: of journals (JAL), of the sections of one axis (SAT), or of VAT (TVA). A long code is shortened to
 * its beginning and its last character (AC01 and AC02 become AC1 and AC2) or, if that code is taken, to its beginning
 * and a number.
 * @throws {TraOverflow} if there are more items than codes
 */
export function shortCodes(items: Iterable<Coded>, record: 'JAL' | 'SAT' | 'TVA'): Map<string, string> {
  const field = fieldOf(layouts[record], 'CODE')
  const codes = new Map<string, string>()
  const used = new Set<string>()
  const give = ({ id }: Coded, code: string) => {
    codes.set(id, code)
    used.add(code)
  }
  const sorted = [...items].toSorted(byCode)
  for (const item of sorted) if (isWritable(item.code, field.length)) give(item, item.code)
  for (const item of sorted.filter(({ id }) => !codes.has(id))) {
    const free = candidates(item.code, field.length).find((code) => !used.has(code))
    if (free === undefined) throw new TraOverflow(layouts[record], field, item.code)
    give(item, free)
  }
  return codes
}

/** Orders items by code. Windows-1252 can make codes equal; these are ordered by their ids as numbers. */
function byCode(one: Coded, other: Coded): number {
  if (one.code !== other.code) return one.code < other.code ? -1 : 1
  return one.id.length - other.id.length || (one.id < other.id ? -1 : 1)
}

/** Whether the code fits unchanged: it is short enough, and a field padded with blanks gives it back unchanged. */
function isWritable(code: string, columns: number): boolean {
  return code.length <= columns && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(code)
}

function* candidates(code: string, columns: number): Generator<string> {
  const plain = toWindows1252(code.normalize('NFKD').replace(/\p{M}/gu, ''))
    .toString('latin1')
    .replace(/[^0-9A-Za-z]/g, '')
  if (plain.length > columns) yield plain.slice(0, columns - 1) + plain.slice(-1)
  else if (plain !== '') yield plain
  for (let digits = 1; digits <= columns; digits++) {
    const beginning = plain.slice(0, columns - digits)
    for (let number = 0; number < 36 ** digits; number++)
      yield beginning + number.toString(36).toUpperCase().padStart(digits, '0')
  }
}

/**
 * Fits lettering codes into the four columns of a TRA file, in upper case. Lines with a partial state have the code in
 * lower case. The result depends on the set of an account's codes, not on the order of its movements.
 */
const columns = 4
const letters = 26
const codesMax = letters ** columns

/**
 * Keeps a code that fits, in upper case. Three kinds are replaced by four unique letters: longer codes, codes that are
 * not plain text, and codes that differ from another only in letter case. The letters come from a hash of the code, so
 * that one more lettering in the account leaves nearly all others unchanged.
 * @param codes all codes of one account; a code may occur several times
 * @throws {TraOverflow} if the account has more letterings than there are codes, 456,976
 */
export function letteringCodes(codes: Iterable<string>): Map<string, string> {
  const result = new Map<string, string>()
  const used = new Set<string>()
  const give = (code: string, written: string) => {
    result.set(code, written)
    used.add(written)
  }
  // Sorted by characters, capitals first: of AB and ab, AB is kept.
  const sorted = [...new Set(codes)].toSorted()
  for (const code of sorted) {
    const written = code.toUpperCase()
    if (isPlainLettering(code) && !used.has(written)) give(code, written)
  }
  let free = codesMax - [...used].filter((code) => /^[A-Z]{4}$/.test(code)).length
  for (const code of sorted) {
    if (result.has(code)) continue
    if (free === 0) throw new TraOverflow(layouts.ENTRY, fieldOf(layouts.ENTRY, 'LETTRAGE'), code)
    let number = hash(code) % codesMax
    while (used.has(lettered(number))) number = (number + 1) % codesMax
    give(code, lettered(number))
    free -= 1
  }
  return result
}

/**
 * Whether the code has a form that the file can hold. Of two codes that differ only in letter case, one is still
 * replaced.
 */
export function isPlainLettering(code: string): boolean {
  return /^[!-~]{1,4}$/.test(code)
}

/** Writes a number as four letters: 0 is AAAA, 456,975 is ZZZZ. */
function lettered(number: number): string {
  let text = ''
  for (let rest = number; text.length < columns; rest = Math.floor(rest / letters))
    text = String.fromCharCode(0x41 + (rest % letters)) + text
  return text
}

/** FNV-1a of 32 bits. It is short, and spreads evenly over 456,976 codes. */
function hash(text: string): number {
  let bits = 0x811c9dc5
  for (let i = 0; i < text.length; i++) bits = Math.imul(bits ^ text.charCodeAt(i), 0x01000193)
  return bits >>> 0
}
