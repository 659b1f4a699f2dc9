/** How fast counters rise, from the times at which pages looked at them. */

/** A rate covers this time: over shorter spans rates jump, over longer ones they lag. */
const spanMs = 5_000
/** A counter that nobody has looked at for this long is forgotten: it has ended, or its page was closed. */
const forgottenMs = 60_000

/**
 * @param clock returns milliseconds
 * @returns function that returns by how much a counter rises in a second; `since` is when the counter was 0, in
 *   milliseconds
 */
export function ratesOf(clock: () => number) {
  const looks = new Map<string, { at: number; count: number }[]>()
  return (name: string, count: number, since: number): number => {
    const now = clock()
    for (const [each, seen] of looks) if (now - seen.at(-1)!.at > forgottenMs) looks.delete(each)
    const seen = looks.get(name) ?? [{ at: since, count: 0 }]
    seen.push({ at: now, count })
    // Keeps one look from before the span: the rise is measured from there.
    while (seen.length > 2 && now - seen[1]!.at >= spanMs) seen.shift()
    looks.set(name, seen)
    const [first] = seen
    const ms = now - first!.at
    return ms <= 0 ? 0 : Math.max(0, ((count - first!.count) * 1000) / ms)
  }
}
