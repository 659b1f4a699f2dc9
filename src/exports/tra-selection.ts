/** Which entries a TRA file holds. Pure. */
import type { FolderKey } from '../formats/rows.ts'

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
