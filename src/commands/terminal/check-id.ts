import { readId } from '../../db/id.ts'

/**
 * Parses an argument or option: the id without leading zeros, as rows and other programs have it.
 * @throws {Error} if it is not an id
 */
export function checkId(given: string): string {
  const id = readId(given) ?? '0'
  if (id === '0') throw new Error(`An id is a number such as 1000, not "${given}"`)
  return id
}

/** @throws {Error} if it is not a number of lines */
export function checkMost(most: string): number {
  if (!/^[1-9]\d{0,5}$/.test(most)) throw new Error(`--most takes a number from 1 to 999999, not "${most}"`)
  return Number(most)
}
