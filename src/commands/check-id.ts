import { readId } from '../db/id.ts'

/** @throws {Error} where nothing can have this id */
export function checkId(id: string): void {
  if ((readId(id) ?? '0') === '0') throw new Error(`An id is a number such as 1000, not "${id}"`)
}

/** @throws {Error} where it is no number of lines */
export function checkMost(most: string): number {
  if (!/^[1-9]\d{0,5}$/.test(most)) throw new Error(`--most takes a number from 1 to 999999, not "${most}"`)
  return Number(most)
}
