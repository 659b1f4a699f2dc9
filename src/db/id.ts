/**
 * What an id is (contract, section 1): 1 to 16 decimal digits, below 2^53, as JSON clients hold numbers as doubles. The
 * domain `id` of the database has the same bound.
 */
const largest = 9_007_199_254_740_991n

export const idPattern = /^\d{1,16}$/

export const notAnId = 'must be an id: 1 to 16 digits'

export function isId(text: string): boolean {
  return idPattern.test(text)
}

/**
 * The id that a text means, without leading zeros; undefined where it is none. 16 digits beyond the largest id there can
 * be come out as `0`, which is nobody's.
 */
export function readId(text: string): string | undefined {
  if (!isId(text)) return undefined
  const id = BigInt(text)
  return String(id > largest ? 0n : id)
}
