/**
 * Deletes rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs the start of the remaining ones. So
 * `audit verify` begins at a row whose hash a holder of MASTER_KEY has signed. A row of the audit records each
 * deletion.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ClientBase, Pool } from 'pg'
import { inTransaction } from '../db/pool.ts'
import { inParts } from '../db/sweeping.ts'
import { forgetAudit, type Link, readExpired, type Start } from './audit.sql.ts'

/** Rows per transaction, which takes a second on a busy machine. Others wait to append only during its last part. */
const rowsAtOnce = 50_000

/**
 * One sweep.
 * @param kept `database` connects as the service role; rows are kept for `months`; `signingKey` returns the key to sign
 *   with until the end of a transaction
 * @returns the number of rows that it deleted
 */
export function sweepAudit(
  kept: { database: Pool; months: number; signingKey: (client: ClientBase) => Promise<Buffer> },
  stopped?: AbortSignal,
): Promise<number> {
  const { database, months, signingKey } = kept
  return inParts(stopped, async () => {
    const last = await readExpired(database, months, rowsAtOnce)
    if (!last) return undefined
    const now = Date.now()
    return inTransaction(database, async (client) => {
      const signature = signStart(last, (now / 1000).toFixed(6), await signingKey(client))
      return forgetAudit(client, last, new Date(now), signature, months)
    })
  })
}

/**
 * Signs the start of the rows that retention has left, with a key derived from MASTER_KEY: someone with only the
 * database cannot forge a signature.
 * @param at seconds since 1970 with six decimals
 */
export function signStart({ count, hash }: Link, at: string, masterKey: Buffer): Buffer {
  const key = createHmac('sha256', masterKey).update('grandlivre audit start').digest()
  return createHmac('sha256', key)
    .update(JSON.stringify([count, hash, at]))
    .digest()
}

/** Whether one of these keys signed the start. */
export function isSigned({ signature, at, ...link }: Start, masterKeys: readonly Buffer[]): boolean {
  if (signature === null || at === null) return false
  return masterKeys.some((masterKey) => {
    const expected = signStart(link, at, masterKey)
    return signature.length === expected.length && timingSafeEqual(signature, expected)
  })
}
