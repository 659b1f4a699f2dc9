import { InvalidArgumentError } from 'commander'
import { readId } from '../../db/id.ts'

/**
 * Parses an argument or option: the id without leading zeros, as rows and other programs have it.
 * @throws {InvalidArgumentError} if it is not an id; commander names the argument or option
 */
export function checkId(given: string): string {
  const id = readId(given)
  if (id === undefined || id === '0') throw new InvalidArgumentError('An id has 1 to 16 digits and is not 0.')
  return id
}

/** @throws {Error} if it is not a number of lines */
export function checkMost(most: string): number {
  if (!/^[1-9]\d{0,5}$/.test(most)) throw new Error(`--most takes a number from 1 to 999999, not "${most}"`)
  return Number(most)
}
