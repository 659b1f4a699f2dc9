/** Finds the word in a list that a misspelt word most likely means. */

/** @returns undefined if the nearest word differs in more than two letters and in more than a third of them, or in all */
export function nearest(word: string, words: string[]): string | undefined {
  const distances = words.map((other) => ({ other, distance: distanceOf(word, other) }))
  const [best] = distances.sort((a, b) => a.distance - b.distance)
  const differing = Math.max(2, Math.ceil(word.length / 3))
  return best !== undefined && best.distance <= differing && best.distance < word.length
    ? best.other
    : undefined
}

/** Number of letters to insert, delete, replace or swap with their neighbour to turn one word into the other. */
export function distanceOf(from: string, to: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, at) => at)]
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let at = 1; at <= to.length; at += 1) {
      const cost = from[row - 1] === to[at - 1] ? 0 : 1
      const swapped = row > 1 && at > 1 && from[row - 1] === to[at - 2] && from[row - 2] === to[at - 1]
      current[at] = Math.min(
        last[at]! + 1,
        current[at - 1]! + 1,
        last[at - 1]! + cost,
        swapped ? before[at - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, last] = [last, current]
  }
  return last[to.length]!
}
