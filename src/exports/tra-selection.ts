/** Which entries a TRA file holds, and in which pieces they are read. Pure. */
import type { FolderKey } from '../ledger/rows.ts'

/** Validated entries and those awaiting validation alike. Nothing given: the whole folder. */
export interface TraSelection extends FolderKey {
  /** Not with a period. */
  exerciceId: string | undefined
  /** Days of the entry, both inclusive, `YYYY-MM-DD`. */
  period: { start: string; end: string } | undefined
  /** Empty: every journal. */
  journalIds: string[]
}

export function isWholeFolder({ exerciceId, period, journalIds }: TraSelection): boolean {
  return exerciceId === undefined && period === undefined && journalIds.length === 0
}

/** Whether few of an exercice's entries may be meant. */
export function picksEntries({ period, journalIds }: TraSelection): boolean {
  return period !== undefined || journalIds.length > 0
}

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
 * A file has its entries by id, and the database has them by exercice, then by id. So ids are cut where an exercice
 * begins or ends: within a segment of one exercice, which nearly all are, the order of the file is that of the key, and
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
