/** The segments in which entries of several exercices are read in the order of their ids. Pure. */

/** The range of ids of an exercice's selected entries. */
export interface ExerciceSpan {
  exerciceId: string
  /** The lowest and the highest selected id. */
  least: string
  greatest: string
  /**
   * At least half of the exercice's entries in this range are selected: then one scan of all movements is faster than
   * lookups.
   */
  dense: boolean
}

/** Ids from `least` to `greatest`, both inclusive, of entries of these exercices. */
export interface EntrySegment {
  exerciceIds: string[]
  least: string
  greatest: string
  dense: boolean
}

/**
 * An answer has entries by id; the database has them by exercice, then by id. So the ids are cut where an exercice
 * begins or ends. Nearly all segments have one exercice: there the key gives the order and nothing is sorted (a sort
 * takes 1.5 s and the disk for 300,000 movements). Only segments in which the ids of two exercices interleave, as
 * around the end of a year, are sorted.
 */
export function entrySegments(spans: ExerciceSpan[]): EntrySegment[] {
  const cuts = spans.flatMap(({ least, greatest }) => [BigInt(least), BigInt(greatest) + 1n])
  const sorted = [...new Set(cuts)].sort((a, b) => (a < b ? -1 : 1))
  return sorted.slice(1).flatMap((end, i) => {
    const least = sorted[i]!
    const inside = spans.filter((span) => BigInt(span.least) <= least && BigInt(span.greatest) >= end - 1n)
    if (inside.length === 0) return []
    return {
      exerciceIds: inside.map(({ exerciceId }) => exerciceId),
      least: String(least),
      greatest: String(end - 1n),
      dense: inside.every(({ dense }) => dense),
    }
  })
}
