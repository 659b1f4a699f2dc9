/** How often a property is tried on random data, and how it fails. */
import type fc from 'fast-check'

const seed = Number(process.env['SEED'] ?? 1)
const path = process.env['SEED_PATH']
/** A run that failed is made smaller for at most this time. */
const shrinkMs = 120_000

/**
 * The same data each time. A failure shows the smallest data that fail, with seed and path: `SEED=7 SEED_PATH=0:1` repeats it.
 * @param runMs no run takes longer
 */
export function tries(numRuns: number, runMs = 60_000): fc.Parameters<unknown> {
  return {
    numRuns,
    // The first runs are as any: a few of them have to show much.
    unbiased: true,
    seed,
    ...(path && { path }),
    interruptAfterTimeLimit: numRuns * runMs + shrinkMs,
    markInterruptAsFailure: true,
  }
}
