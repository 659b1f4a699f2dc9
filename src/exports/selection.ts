/** What an export of movements or entries is asked for, checked: which of them, of which folder. Pure. */
import { createHash } from 'node:crypto'
import { movementFormatRevision } from '../formats/mad/movement.ts'

export type DateFilter = 'document' | 'platform' | 'accounting'
export type LetteringState = 'none' | 'partial' | 'complete'

/** Both days inclusive, `YYYY-MM-DD`. */
export interface Period {
  start: string
  end: string
  dateFilter: DateFilter
}

export interface Selection {
  schemaId: string
  folderId: string
  /** Exactly one of `exerciceId` and `period` is there. */
  exerciceId: string | undefined
  period: Period | undefined
  /** True: only entries awaiting validation. False: only validated ones. */
  draft: boolean
  source: string | undefined
  /** Roots of account numbers, upper case, sorted, each once; empty: every account. */
  accountRoots: string[]
  lettering: LetteringState | undefined
  /** Sorted, each once; empty: every journal. */
  journalIds: string[]
  /** Where a day of the platform timestamp begins and ends. */
  timeZone: string
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
  const named = JSON.stringify([what, movementFormatRevision, ledgerVersion, selection])
  return createHash('sha256').update(named).digest('base64url').slice(0, 22)
}

/**
 * True when `end` lies `months` calendar months or more after `start`: 2024-01-01 to 2024-12-31 is not 12 months. A day
 * that the month of `end` does not have counts as its last: 2024-02-29 to 2025-02-28 is.
 */
export function spansMonths(start: string, end: string, months: number): boolean {
  const [startYear, startMonth, startDay] = partsOf(start)
  const [endYear, endMonth, endDay] = partsOf(end)
  const apart = 12 * (endYear - startYear) + endMonth - startMonth
  return apart > months || (apart === months && endDay >= Math.min(startDay, lastDayOf(endYear, endMonth)))
}

function partsOf(date: string): [year: number, month: number, day: number] {
  return date.split('-').map(Number) as [number, number, number]
}

function lastDayOf(year: number, month: number): number {
  // Leap years come round every 400 years; Date takes years below 100 for those of the 20th century.
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}
