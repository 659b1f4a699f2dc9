/** Parts of SQL texts: literals, for statements without bind parameters (COPY), and times as text. */

/**
 * A literal of exactly `text`, whatever the value of `standard_conforming_strings`.
 * @throws for a NUL, which no PostgreSQL text can hold
 */
export function textLiteral(text: string): string {
  if (text.includes('\0')) throw new Error('a text with a NUL character has no SQL literal')
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** A literal of an id. @throws if it is not an id: ids are checked at the edge, before they reach SQL */
export function idLiteral(id: string): string {
  if (!isId(id)) throw new Error(`an id consists of at most 16 digits, unlike ${JSON.stringify(id)}`)
  return id
}

/** A literal of several ids, as an array of bigint. */
export function idArrayLiteral(ids: readonly string[]): string {
  return `'{${ids.map(idLiteral).join(',')}}'::bigint[]`
}

/** A column of times as text: ISO 8601 to the second, in UTC, `2026-01-31T08:00:00Z`. */
export function utc(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
}

/**
 * Ids (docs/spec/interface.md#values): 1 to 16 decimal digits, below 2^53 because JSON clients store numbers as
 * doubles. The domain `id` of the database rejects larger ones. A parameter of a statement may still have any 16
 * digits; a number from 2^53 on matches no row.
 */
export const idPattern = /^\d{1,16}$/

export const notAnId = 'must be an id: 1 to 16 digits'

export function isId(text: string): boolean {
  return idPattern.test(text)
}

/** The id in a text, without leading zeros; undefined if the text is not an id. */
export function readId(text: string): string | undefined {
  return isId(text) ? String(BigInt(text)) : undefined
}
