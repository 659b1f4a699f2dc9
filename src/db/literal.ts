/** Values as SQL literals, for statements that take no bind parameters (COPY). */
import { isId } from './id.ts'

/**
 * A text literal that means exactly `text`, whatever `standard_conforming_strings` says.
 * @throws for a NUL, which no PostgreSQL text can hold
 */
export function textLiteral(text: string): string {
  if (text.includes('\0')) throw new Error('a text with a NUL character has no SQL literal')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** @throws for anything but decimal digits: an id that reaches SQL was checked at the edge */
export function idLiteral(id: string): string {
  if (!isId(id)) throw new Error(`an id consists of digits, 16 at the most, unlike ${JSON.stringify(id)}`)
  return id
}
