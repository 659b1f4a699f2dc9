/**
 * Short codes for the narrow columns of a TRA file: codes that fit are kept, the others are replaced. The result
 * depends only on the set of codes, not on its order, so that two exports of one folder use the same code for a
 * journal.
 */
import { TraOverflow } from './layouts/fixed-width.ts'
import { fieldOf, layouts } from './layouts/layouts.ts'
import { toWindows1252 } from './windows-1252.ts'

interface Coded {
  id: string
  code: string
}

/**
 * Short codes by id, of journals (JAL), of the sections of one axis (SAT), or of VAT (TVA). A long code becomes its beginning and its last character if that is free (AC01 and AC02 become AC1
 * and AC2), or else its beginning and a number.
 * @throws {TraOverflow} if there are more items than codes
 */
export function shortCodes(items: Iterable<Coded>, record: 'JAL' | 'SAT' | 'TVA'): Map<string, string> {
  const field = fieldOf(layouts[record], 'CODE')
  const codes = new Map<string, string>()
  const taken = new Set<string>()
  const give = ({ id }: Coded, code: string) => {
    codes.set(id, code)
    taken.add(code)
  }
  const sorted = [...items].toSorted(byCode)
  for (const item of sorted) if (isWritable(item.code, field.length)) give(item, item.code)
  for (const item of sorted.filter(({ id }) => !codes.has(id))) {
    const free = candidates(item.code, field.length).find((code) => !taken.has(code))
    if (free === undefined) throw new TraOverflow(layouts[record], field, item.code)
    give(item, free)
  }
  return codes
}

/** Equal codes, which Windows-1252 can cause, are ordered by their ids, which are numbers. */
function byCode(one: Coded, other: Coded): number {
  if (one.code !== other.code) return one.code < other.code ? -1 : 1
  return one.id.length - other.id.length || (one.id < other.id ? -1 : 1)
}

/** Whether the code fits unchanged: it is short enough, and reads back the same from a field padded with blanks. */
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
