/**
 * The row `epoch`, the first one after a server took the place of another. Its number jumps far beyond all that the other one
 * may have given to rows that are lost. The database writes it (append_audit). Pure.
 */
import type { AuditRow } from './audit-row.ts'

export const epochAct = 'epoch'

/** What the row says. Decimal digits. */
export interface EpochRow {
  /** Seconds since 1970 with six decimals. */
  at: string
  /** Its own. */
  number: string
  /** Number of the row before it. */
  last: string
  former: string
  epoch: string
}

/** Undefined if it is another row, or none that the database has written. */
export function epochRowOf({ act, at, number, details }: AuditRow): EpochRow | undefined {
  const form = /^\{"epoch":(\d{1,9}),"former":(\d{1,9}),"last":(\d{1,16})\}$/
  const [, epoch, former, last] = act === epochAct ? (form.exec(details) ?? []) : []
  return epoch && former && last ? { at, number, last, former, epoch } : undefined
}

/** Whether the number is one that `beyond_lost` (functions/epoch.sql) gives at that time after that row. */
export function jumpsFarEnough({ at, number, last }: EpochRow): boolean {
  const seconds = Math.floor(Number(at) - Date.UTC(2026, 0) / 1_000)
  const least = Math.max(Number(last) + 4_000_000_000, 2_000_000 * seconds)
  return Number(number) >= least && Number(number) < least + 2 ** 40
}
