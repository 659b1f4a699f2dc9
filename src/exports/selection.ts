/** What an export selects: which movements or entries of which folder, checked. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { LetteringState } from '../formats/items/movement.ts'
import { formatRevisions } from '../formats/mad/revisions.ts'
import type { FolderKey, Period } from '../formats/rows.ts'
import { blockSizes } from './blocks/block-sizes.ts'
import { tagOf } from './tag.ts'

export type DateFilter = 'document' | 'platform' | 'accounting'

export interface DatePeriod extends Period {
  dateFilter: DateFilter
}

export interface Selection extends FolderKey {
  /** Not combined with a period. Without either: every exercice. */
  exerciceId: string | undefined
  period: DatePeriod | undefined
  /** True: only entries awaiting validation. False: only validated ones. Undefined: both. */
  draft: boolean | undefined
  source: string | undefined
  /** Roots of account numbers, upper case, sorted, without duplicates; empty: every account. */
  accountRoots: string[]
  lettering: LetteringState | undefined
  /** Sorted, without duplicates; empty: every journal. */
  journalIds: string[]
  /** The time zone in which days of the platform timestamp begin and end. */
  timeZone: string
}

export function wholeFolder({ schemaId, folderId }: FolderKey, timeZone: string): Selection {
  return {
    schemaId,
    folderId,
    exerciceId: undefined,
    period: undefined,
    draft: undefined,
    source: undefined,
    accountRoots: [],
    lettering: undefined,
    journalIds: [],
    timeZone,
  }
}

export function isWholeFolder(selection: Selection): boolean {
  return isDeepStrictEqual(selection, wholeFolder(selection, selection.timeZone))
}

/**
 * Whether the selection may have few of an exercice's entries. If only drafts are excluded, the merge drops them:
 * they are few.
 */
export function picksEntries({ period, source, draft, journalIds }: Selection): boolean {
  return period !== undefined || source !== undefined || draft === true || journalIds.length > 0
}

/** What a route makes of a selection. */
export type SelectedItems = 'movements' | 'entries' | 'balance' | 'blocks'

/** Identifies the selected data at one state of the ledger. @param extended entries with what a FEC says of them */
export function selectionTag(
  what: SelectedItems,
  selection: Selection,
  cursor: string,
  extended = false,
): string {
  const revision = what === 'blocks' ? blockSizes : formatRevisions[what]
  return tagOf(what, revision, cursor, selection, ...(extended ? ['extended'] : []))
}
