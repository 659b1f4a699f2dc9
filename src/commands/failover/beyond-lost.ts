/**
 * Where ids go on after a failover or a restore, so that none is given out twice. Pure.
 *
 * The state that was lost may have given out any number of ids, and it may itself have begun with a failover from the
 * state that is left. So a fixed distance is not enough: two such states could go the same distance. Time tells them
 * apart. Ids go on from two million for each second since 2026, more than any server gives out, or further on where they
 * have come that far. They stay below 2^53 until the year 2168, or for two million failovers.
 */

const start = Date.UTC(2026, 0, 1)
const perMillisecond = 2_000n
/** More than a server gives out while its clock is an hour behind. */
const leastDistance = 4_000_000_000n
const clockMax = Date.UTC(2100, 0, 1)

/**
 * @param last given out so far, or 0
 * @param now epoch milliseconds
 * @returns the last one that is to count as given out
 * @throws {Error} if the clock is wrong, or there is no room left below 2^53
 */
export function beyondLost(last: bigint, now: number): bigint {
  if (now > clockMax)
    throw new Error(
      `The clock of the database server says ${new Date(now).toISOString()}: set it, and try again. Ids go on from it.`,
    )
  const byClock = BigInt(Math.floor((now - start) / 1000)) * 1000n * perMillisecond
  const next = last + leastDistance
  const beyond = byClock > next ? byClock : next
  if (beyond + leastDistance > BigInt(Number.MAX_SAFE_INTEGER))
    throw new Error(`After ${last} too few ids are left below 2^53 to go beyond those that were lost`)
  return beyond
}
