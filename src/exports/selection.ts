/** What an export of movements or entries is asked for, checked: which of them, of which folder. Pure. */
import { createHash } from 'node:crypto'
import { formatRevisions } from '../formats/mad/revisions.ts'
import type { FolderKey, LetteringState, Period } from '../formats/rows.ts'

export type DateFilter = 'document' | 'platform' | 'accounting'

export interface DatePeriod extends Period {
  dateFilter: DateFilter
}

export interface Selection extends FolderKey {
  /** Not with a period. Without either: every exercice. */
  exerciceId: string | undefined
  period: DatePeriod | undefined
  /** True: only entries awaiting validation. False: only validated ones. Undefined: both. */
  draft: boolean | undefined
  source: string | undefined
  /** Roots of account numbers, upper case, sorted, each once; empty: every account. */
  accountRoots: string[]
  lettering: LetteringState | undefined
  /** Sorted, each once; empty: every journal. */
  journalIds: string[]
  /** Where a day of the platform timestamp begins and ends. */
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
  const { exerciceId, draft, lettering, accountRoots } = selection
  const picksMovements = lettering !== undefined || accountRoots.length > 0
  return exerciceId === undefined && draft === undefined && !picksMovements && !picksEntries(selection)
}

/** Whether few of an exercice's entries may be meant. Without that, drafts are few and the merge drops them. */
export function picksEntries({ period, source, draft, journalIds }: Selection): boolean {
  return period !== undefined || source !== undefined || draft === true || journalIds.length > 0
}

/** Source codes of entries (contract, section 6). */
// biome-ignore format: a table
export const sourceCodes = [
  'E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET',
  'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA',
  'VIRT_SEPA', 'API',
] as const

/**
 * Names the selected data at one ledger version: the same for every representation of it, and the part of an ETag
 * that `If-Match` compares.
 */
export function selectionTag(
  what: 'movements' | 'entries',
  selection: Selection,
  ledgerVersion: string,
): string {
  const named = JSON.stringify([what, formatRevisions[what], ledgerVersion, selection])
  return createHash('sha256').update(named).digest('base64url').slice(0, 22)
}
