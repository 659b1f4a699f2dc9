/** How often a property is tried on random data, and how it fails. */
import type fc from 'fast-check'

const seed = Number(process.env['SEED'] ?? 1)
const path = process.env['SEED_PATH']
/** A run may cost seconds, and the search for a smaller one that fails has hundreds. */
const shrinkMs = 30_000

/**
 * The same data each time. A failure shows its seed and path, and `SEED=7 SEED_PATH=0:1` repeats it.
 * @param offset of the seed, for other data than another call of the same test
 */
export function tries(numRuns: number, offset = 0): fc.Parameters<unknown> {
  // Unbiased: the first runs are as any, because there are few of them.
  return { numRuns, seed: seed + offset, unbiased: true, ...(path && { path }) }
}

/** Ends the search for smaller data that fail: some time after the first failure, all data pass. */
export function shrinking<Drawn extends unknown[]>(
  run: (...drawn: Drawn) => Promise<void>,
): (...drawn: Drawn) => Promise<void> {
  let failedAt = Number.POSITIVE_INFINITY
  return async (...drawn) => {
    if (Date.now() - failedAt > shrinkMs) return
    try {
      await run(...drawn)
    } catch (error) {
      failedAt = Math.min(failedAt, Date.now())
      throw error
    }
  }
}
