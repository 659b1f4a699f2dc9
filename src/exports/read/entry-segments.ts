/** In which pieces entries of several exercices are read in the order of their ids. Pure. */

/** Where the selected entries of an exercice stand. */
export interface ExerciceSpan {
  exerciceId: string
  /** The lowest and the highest id among them. */
  least: string
  greatest: string
  /** At least half of the exercice's entries between them are selected: reading all movements beats looking each up. */
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
 * What is sent has its entries by id, and the database has them by exercice, then by id. So ids are cut where an exercice
 * begins or ends: within a segment of one exercice, which nearly all are, the order is that of the key, and
 * nothing is sorted (1.5 s and the disk for 300,000 movements otherwise). Only where the ids of two exercices interleave,
 * as around a year's end, that stretch is sorted.
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
