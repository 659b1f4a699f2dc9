/** What an export selects: which movements or entries of which folder, checked. Pure. */

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { formatRevisions } from '../formats/file-formats.ts'
import type { LetteringState } from '../formats/items/entry.ts'
import type { FolderKey, Period } from '../formats/rows.ts'

export interface DatePeriod extends Period {
  dateFilter: 'document' | 'platform' | 'accounting'
}

export interface Selection extends FolderKey {
  /** Not combined with a period. With neither of them, every exercice is selected. */
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
 * Whether the selection may have only few of an exercice's entries. A selection that excludes only drafts has most of
 * them; the merge drops the drafts.
 */
export function picksEntries({ period, source, draft, journalIds }: Selection): boolean {
  return period !== undefined || source !== undefined || draft === true || journalIds.length > 0
}

/** What a route exports of a selection. */
export type SelectedItems = 'movements' | 'entries' | 'balance' | 'blocks'

/**
 * Identifies the selected data at one state of the ledger.
 * @param extended whether entries have the further fields of a FEC
 */
export function selectionTag(
  what: SelectedItems,
  selection: Selection,
  cursor: string,
  extended = false,
): string {
  const revision = what === 'blocks' ? blockSizes : formatRevisions[what]
  return tagOf(what, revision, cursor, selection, ...(extended ? ['extended'] : []))
}

/**
 * Identifies what an answer shows, in any representation: the part of its ETag that `If-Match` compares.
 * @param named all that the answer depends on, with the cursor of the ledger and the revision of its format
 */
export function tagOf(...named: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(named)).digest('base64url').slice(0, 22)
}

/**
 * How many movements a block has. Blocks are small, because changes are scattered: of 600,000 movements, 0.1 % changed
 * entries touch a third of the blocks of 1,000, and two thirds of those of 2,900. The sizes are part of ETags.
 */
export const blockSizes = {
  /** If no other bound applies, a block ends with the entry that reaches this size. */
  usual: 1000,
  /** A block that has grown to this size is cut. */
  most: 2000,
  /** A block smaller than this is joined with the next when either is rendered again. */
  least: 500,
} as const
