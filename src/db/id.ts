/**
 * Ids (docs/spec/interface.md#values): 1 to 16 decimal digits, below 2^53 because JSON clients store numbers as
 * doubles. The domain `id` of the database rejects larger ones; a parameter may still have any 16 digits, and then
 * matches no row.
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
