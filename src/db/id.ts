/**
 * What an id is (contract, section 1): 1 to 16 decimal digits, and below 2^53, as JSON clients hold numbers as doubles.
 * Nothing has a larger one, as the domain `id` of the database sees to; a column takes 16 digits for a question all the same.
 */
export const idPattern = /^\d{1,16}$/

export const notAnId = 'must be an id: 1 to 16 digits'

export function isId(text: string): boolean {
  return idPattern.test(text)
}

/** The id that a text means, without leading zeros; undefined where it is none. */
export function readId(text: string): string | undefined {
  return isId(text) ? String(BigInt(text)) : undefined
}
