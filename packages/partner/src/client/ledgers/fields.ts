/** Reads rows of PostgreSQL's COPY as texts. */
import { clientError } from '../errors.ts'

/**
 * Characters that COPY writes as a backslash and a letter: the letter, then the character. The backslash itself is
 * first: characters are escaped one after the other, and the backslashes of later escapes must stay single.
 */
export const escapes: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ['b', '\b'],
  ['t', '\t'],
  ['n', '\n'],
  ['v', '\v'],
  ['f', '\f'],
  ['r', '\r'],
])

/**
 * The fields of a row, in the order of its columns; null for a field without a value.
 * @param line without its line feed
 * @throws {GrandlivreError} NOT-PROVEN for an escape that COPY does not write
 */
export function readRow(line: string): (string | null)[] {
  const fields: (string | null)[] = line.split('\t')
  // Nearly every row contains `\N`, but few contain another escape.
  for (let column = 0; column < fields.length; column += 1) {
    const field = fields[column] as string
    if (field.includes('\\')) fields[column] = field === '\\N' ? null : unescaped(field)
  }
  return fields
}

/** @throws {GrandlivreError} NOT-PROVEN */
export function unescaped(field: string): string {
  return field.replace(/\\(.?)/gs, (written: string, letter: string) => {
    const meant = escapes.get(letter)
    if (meant === undefined)
      throw clientError('NOT-PROVEN', `A row has ${written}, which COPY does not write`)
    return meant
  })
}

/** The rows of proven bytes, one after the other. Each is a list of its fields. */
export function* readRows(bytes: Uint8Array): Generator<(string | null)[], void, undefined> {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  for (let start = 0, end: number; start < text.length; start = end + 1) {
    end = text.indexOf('\n', start)
    yield readRow(text.slice(start, end))
  }
}
