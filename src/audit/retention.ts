/**
 * Deletes the rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs what is left: `audit verify` then
 * begins at a row whose hash only a holder of MASTER_KEY can have named. Each deletion is a row of the audit itself.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ClientBase, Pool } from 'pg'
import { inTransaction } from '../db/pool.ts'
import { inParts } from '../db/sweeping.ts'
import { forgetAudit, type Link, readExpired, type Start } from './audit.sql.ts'

/** Rows per transaction: a second on a busy machine. Only its end keeps others from appending. */
const rowsAtOnce = 50_000

/**
 * One sweep.
 * @param kept with a database that connects as the service role, the months for which rows are kept, and what finds the
 *   key that signs until the end of a transaction
 * @returns the rows that it deleted
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
 * Signs the start of what retention has left, with a key derived from MASTER_KEY: the database alone cannot make another.
 * @param at seconds since 1970 with six decimals
 */
export function signStart({ count, hash }: Link, at: string, masterKey: Buffer): Buffer {
  const key = createHmac('sha256', masterKey).update('grandlivre audit start').digest()
  return createHmac('sha256', key)
    .update(JSON.stringify([count, hash, at]))
    .digest()
}

/** @param masterKeys one of which has to have signed it */
export function isSigned({ signature, at, ...link }: Start, masterKeys: readonly Buffer[]): boolean {
  if (signature === null || at === null) return false
  return masterKeys.some((masterKey) => {
    const expected = signStart(link, at, masterKey)
    return signature.length === expected.length && timingSafeEqual(signature, expected)
  })
}
