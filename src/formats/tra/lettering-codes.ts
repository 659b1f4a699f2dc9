/**
 * Fits lettering codes into the four columns of a TRA file, in upper case; for a partial state they are written in
 * lower case. The result depends on the set of an account's codes, not on the order of its movements.
 */
import { TraOverflow } from './layouts/fixed-width.ts'
import { fieldOf, layouts } from './layouts/layouts.ts'

const columns = 4
const letters = 26
const codesMax = letters ** columns

/**
 * A code that fits is kept, in upper case. Three kinds are replaced by four unique letters: longer codes, codes that
 * are not plain text, and codes that differ from another only in letter case. The letters come from a hash of the code,
 * so that one more lettering in the account leaves nearly all others unchanged.
 * @param codes all codes of one account; repetitions are allowed
 * @throws {TraOverflow} an account with more letterings than there are codes, 456,976
 */
export function letteringCodes(codes: Iterable<string>): Map<string, string> {
  const result = new Map<string, string>()
  const taken = new Set<string>()
  const give = (code: string, written: string) => {
    result.set(code, written)
    taken.add(written)
  }
  // In the order of their characters, capitals first: of AB and ab, AB is kept.
  const sorted = [...new Set(codes)].toSorted()
  for (const code of sorted) {
    const written = code.toUpperCase()
    if (isPlainLettering(code) && !taken.has(written)) give(code, written)
  }
  let free = codesMax - [...taken].filter((code) => /^[A-Z]{4}$/.test(code)).length
  for (const code of sorted) {
    if (result.has(code)) continue
    if (free === 0) throw new TraOverflow(layouts.ENTRY, fieldOf(layouts.ENTRY, 'LETTRAGE'), code)
    let number = hash(code) % codesMax
    while (taken.has(lettered(number))) number = (number + 1) % codesMax
    give(code, lettered(number))
    free -= 1
  }
  return result
}

/**
 * Whether the file can hold the code unchanged, provided that no other code of the account differs only in letter case.
 */
export function isPlainLettering(code: string): boolean {
  return /^[!-~]{1,4}$/.test(code)
}

/** 0 is AAAA, 456,975 is ZZZZ. */
function lettered(number: number): string {
  let text = ''
  for (let rest = number; text.length < columns; rest = Math.floor(rest / letters))
    text = String.fromCharCode(0x41 + (rest % letters)) + text
  return text
}

/** FNV-1a of 32 bits: short, and even enough over 456,976 codes. */
function hash(text: string): number {
  let bits = 0x811c9dc5
  for (let i = 0; i < text.length; i++) bits = Math.imul(bits ^ text.charCodeAt(i), 0x01000193)
  return bits >>> 0
}
