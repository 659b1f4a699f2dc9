/**
 * Checks the chain of the audit from its start to its head, in one state of the database and with little memory. Every
 * number must follow the one before it, and every hash must be the hash of the row and the hash before it. Numbers may
 * jump only at a row `epoch`, and only as far as the database makes them jump at that time.
 */
import { createHash } from 'node:crypto'
import type { ClientBase } from 'pg'
import {
  type AuditRow,
  countAudit,
  type Head,
  type Link,
  readAudit,
  readHead,
  readStart,
  type Start,
} from './audit.sql.ts'
import { isSigned } from './retention.ts'

export type Verification = Awaited<ReturnType<typeof verifyAudit>>

/**
 * @param client connects as the owner, in a transaction that sees one state of the database
 * @param asked.masterKeys 32 bytes each
 * @param asked.anchor a head that was noted earlier
 */
export async function verifyAudit(
  client: ClientBase,
  asked: {
    masterKeys: readonly Buffer[]
    anchor?: Link | undefined
    onProgress?: (checked: number, all: number) => void
  },
) {
  const { masterKeys, anchor, onProgress } = asked
  const start = await readStart(client)
  const head = await readHead(client)
  if (!start || !head)
    throw new Error('The audit has lost its start or its head: restore the database from a backup')
  const rows = await countAudit(client)
  const began: EpochRow[] = []
  let problem = startProblem(start, masterKeys)
  if (anchor) problem ??= anchorProblem(anchor, start, start)
  let last: Link = start
  let checked = 0
  for await (const batch of readAudit(client)) {
    // Even after a problem, all rows are read: the connection is free again only after the last row.
    for (const row of batch) {
      problem ??= rowProblem(row, last, began.at(-1))
      const beginning = epochRowOf(row)
      if (beginning) began.push(beginning)
      last = { count: row.number, hash: row.hash }
      if (anchor) problem ??= anchorProblem(anchor, last, start)
    }
    checked += batch.length
    onProgress?.(checked, rows)
  }
  problem ??= endProblem(last, head, began.at(-1))
  if (anchor && Number(anchor.count) > Number(head.count))
    problem ??= `The anchor names row ${anchor.count}, and the audit ends at row ${head.count}: its end was cut off`
  const isLost = ({ last, number }: EpochRow) =>
    anchor && Number(last) < Number(anchor.count) && Number(anchor.count) < Number(number)
  return {
    head,
    start,
    /** Number of rows between start and head. */
    rows,
    /** Rows that began an epoch. */
    began,
    /** The row that began an epoch and in whose jump the anchor lies: the anchor's own row was lost then. */
    lostIn: problem ? undefined : began.find(isLost),
    /** The first problem that was found; undefined if the chain is whole. */
    problem,
  }
}

function startProblem(start: Start, masterKeys: readonly Buffer[]): string | undefined {
  const isNew = start.count === '0' && start.hash === noHash && start.signature === null
  if (isNew || isSigned(start, masterKeys)) return undefined
  return (
    `The start, after row ${start.count}, is not signed with this MASTER_KEY: the rows before it were not removed by ` +
    'retention, or the service has another key'
  )
}

/** Returns what is wrong with a row. @param before the last row that began an epoch */
function rowProblem(row: AuditRow, last: Link, before: EpochRow | undefined): string | undefined {
  const problem = row.act === epochAct ? epochProblem(row, last, before) : orderProblem(row, last)
  if (problem || hashOfRow(last.hash, row) === row.hash) return problem
  return `Row ${row.number} was changed after it was written, or the hash of row ${last.count} was: they do not fit together`
}

function orderProblem({ number }: AuditRow, last: Link): string | undefined {
  const expected = Number(last.count) + 1
  if (Number(number) > expected) return `Row ${expected} is missing: the next one is row ${number}`
  if (Number(number) < expected) return `Row ${number} is out of order: it follows row ${last.count}`
  return undefined
}

function epochProblem(row: AuditRow, last: Link, before: EpochRow | undefined): string | undefined {
  const beginning = epochRowOf(row)
  if (!beginning) return `Row ${row.number} begins an epoch, and its details are not those of such a row`
  if (beginning.last !== last.count)
    return `Row ${row.number} begins an epoch after row ${beginning.last}, but follows row ${last.count}`
  if (!jumpsFarEnough(beginning))
    return `Row ${row.number} begins an epoch, and its number is not one that follows row ${last.count} at its time`
  if (beginning.former === beginning.epoch || (before && before.epoch !== beginning.former))
    return `Row ${row.number} begins epoch ${beginning.epoch} after epoch ${beginning.former}, which is not the one before`
  return undefined
}

/**
 * Returns how a place in the chain contradicts the anchor; undefined if it does not, or if the two cannot be compared.
 */
function anchorProblem(anchor: Link, { count, hash }: Link, start: Link): string | undefined {
  if (Number(anchor.count) < Number(start.count))
    return (
      `The anchor names row ${anchor.count}, which retention has deleted: the audit starts after row ${start.count}. ` +
      'Use a later anchor'
    )
  if (anchor.count !== count || anchor.hash === hash) return undefined
  return `Row ${count} has the hash ${hash}, and the anchor has ${anchor.hash}: rows up to it were replaced`
}

function endProblem(last: Link, head: Head, before: EpochRow | undefined): string | undefined {
  if (last.count === head.count && last.hash === head.hash) {
    if (before === undefined || before.epoch === head.epoch) return undefined
    return `The head names epoch ${head.epoch}, and row ${before.number} began epoch ${before.epoch}: one of them was changed`
  }
  if (last.count === head.count)
    return `The head has another hash than row ${head.count}: one of them was changed`
  return Number(last.count) < Number(head.count)
    ? `Row ${Number(last.count) + 1} is missing: the audit should end at row ${head.count}`
    : `Row ${Number(head.count) + 1} was added without the lock: the head ends at row ${head.count}`
}

/** The hash before the first row, hexadecimal. */
const noHash = '0'.repeat(64)

/**
 * The hash of a row, hexadecimal: SHA-256 of a JSON array of strings and nulls. The array has the columns in the order
 * in which `readAudit` returns them. The database computes the same hash (audit_hash). The two share no code, so that
 * each checks the other.
 */
function hashOfRow(previous: string, { hash: _, ...columns }: AuditRow): string {
  const hashed = JSON.stringify([previous, ...Object.values(columns)])
  return createHash('sha256').update(hashed).digest('hex')
}

/**
 * The act of the first row after one server replaced another. Its number jumps far beyond all numbers that the former
 * server may have given to rows that are lost. The database writes this row (append_audit).
 */
export const epochAct = 'epoch'

/** The content of a row that began an epoch. Numbers are decimal digits. */
export interface EpochRow {
  /** Seconds since 1970 with six decimals. */
  at: string
  /** Number of this row. */
  number: string
  /** Number of the row before it. */
  last: string
  former: string
  epoch: string
}

/** Returns undefined for any other row, and for one that the database did not write itself. */
export function epochRowOf({ act, at, number, details }: AuditRow): EpochRow | undefined {
  const form = /^\{"epoch":(\d{1,9}),"former":(\d{1,9}),"last":(\d{1,16})\}$/
  const [, epoch, former, last] = act === epochAct ? (form.exec(details) ?? []) : []
  return epoch && former && last ? { at, number, last, former, epoch } : undefined
}

/** Whether `beyond_lost` (functions/epoch.sql) gives this number at that time after the row before it. */
function jumpsFarEnough({ at, number, last }: EpochRow): boolean {
  const seconds = Math.floor(Number(at) - Date.UTC(2026, 0) / 1_000)
  const least = Math.max(Number(last) + 4_000_000_000, 2_000_000 * seconds)
  return Number(number) >= least && Number(number) < least + 2 ** 40
}
