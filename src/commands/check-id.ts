/** @throws {Error} where the database would not even take it for an id */
export function checkId(id: string): void {
  if (!/^[1-9]\d{0,17}$/.test(id)) throw new Error(`An id is a number such as 1000, not "${id}"`)
}

/** @throws {Error} where it is no number of lines */
export function checkMost(most: string): number {
  if (!/^[1-9]\d{0,5}$/.test(most)) throw new Error(`--most takes a number from 1 to 999999, not "${most}"`)
  return Number(most)
}
