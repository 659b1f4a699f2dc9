/**
 * Checks the chain of the audit from its start to its head, in one state of the database and with little memory: every
 * number follows the one before, and every hash is that of the row and the hash before.
 */
import type { ClientBase } from 'pg'
import { type Link, readAudit, readHead, readStart, type Start } from './audit.sql.ts'
import type { AuditRow } from './audit-row.ts'
import { hashOfRow, noHash } from './row-hash.ts'
import { isSigned } from './start-signature.ts'

export interface Verification {
  /** Number and hash of the last row. */
  head: Link
  start: Start
  /** The first thing that is wrong; undefined if the chain is whole. */
  problem: string | undefined
}

interface VerifyOptions {
  /** 32 bytes. */
  masterKey: Buffer
  /** A head that was noted earlier. */
  anchor?: Link | undefined
  onProgress?: (checked: number, all: number) => void
}

/** @param client as the owner, in a transaction that sees one state of the database */
export async function verifyAudit(client: ClientBase, options: VerifyOptions): Promise<Verification> {
  const start = await readStart(client)
  const head = await readHead(client)
  if (!start || !head)
    throw new Error('The audit has lost its start or its head: restore the database from a backup')
  return { head, start, problem: await firstProblem(client, start, head, options) }
}

async function firstProblem(
  client: ClientBase,
  start: Start,
  head: Link,
  { masterKey, anchor, onProgress }: VerifyOptions,
): Promise<string | undefined> {
  let problem = startProblem(start, masterKey)
  if (anchor && !problem) problem = anchorProblem(anchor, start, start)
  let last: Link = start
  for await (const rows of readAudit(client)) {
    // After a problem the rest is read all the same: the connection is free again only after the last row.
    for (const row of rows) {
      problem ??= rowProblem(row, last)
      last = { count: row.number, hash: row.hash }
      if (anchor) problem ??= anchorProblem(anchor, last, start)
    }
    onProgress?.(Number(last.count) - Number(start.count), Number(head.count) - Number(start.count))
  }
  problem ??= endProblem(last, head)
  if (anchor && !problem && Number(anchor.count) > Number(head.count))
    return `The anchor names row ${anchor.count}, and the audit ends at row ${head.count}: its end was cut off`
  return problem
}

function startProblem(start: Start, masterKey: Buffer): string | undefined {
  const isNew = start.count === '0' && start.hash === noHash && start.signature === null
  if (isNew || isSigned(start, masterKey)) return undefined
  return (
    `The start, after row ${start.count}, is not signed with this MASTER_KEY: the rows before it were not removed by ` +
    'retention, or the service has another key'
  )
}

function rowProblem(row: AuditRow, last: Link): string | undefined {
  const expected = Number(last.count) + 1
  const number = Number(row.number)
  if (number > expected) return `Row ${expected} is missing: the next one is row ${number}`
  if (number < expected) return `Row ${number} does not belong where it stands, after row ${last.count}`
  if (hashOfRow(last.hash, row) === row.hash) return undefined
  return `Row ${number} was changed after it was written, or the hash of row ${last.count} was: they do not fit together`
}

/** Whether a place in the chain contradicts the anchor, as far as it can be compared there. */
function anchorProblem(anchor: Link, { count, hash }: Link, start: Link): string | undefined {
  if (Number(anchor.count) < Number(start.count))
    return (
      `The anchor names row ${anchor.count}, which retention has deleted: the audit starts after row ${start.count}. ` +
      'Use a later anchor'
    )
  if (anchor.count !== count || anchor.hash === hash) return undefined
  return `Row ${count} has the hash ${hash}, and the anchor has ${anchor.hash}: rows up to it were replaced`
}

function endProblem(last: Link, head: Link): string | undefined {
  if (last.count === head.count && last.hash === head.hash) return undefined
  if (last.count === head.count)
    return `The head has another hash than row ${head.count}: one of them was changed`
  return Number(last.count) < Number(head.count)
    ? `Row ${Number(last.count) + 1} is missing: the audit should end at row ${head.count}`
    : `Row ${Number(head.count) + 1} was added without the lock: the head ends at row ${head.count}`
}
