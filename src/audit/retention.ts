/**
 * Deletes the rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs what is left: `audit verify` then
 * begins at a row whose hash only a holder of MASTER_KEY can have named. Each deletion is a row of the audit itself.
 */
import type { Pool } from 'pg'
import { forgetAudit, readExpired } from './audit.sql.ts'
import { signStart } from './start-signature.ts'

/** Rows per transaction: a second on a busy machine. Only its end keeps others from appending. */
const rowsAtOnce = 50_000

/**
 * One sweep.
 * @param kept with a database that connects as the service role, and the months for which rows are kept
 * @returns the rows that it deleted
 */
export async function sweepAudit(
  kept: { database: Pool; months: number; masterKey: Buffer },
  stopped?: AbortSignal,
): Promise<number> {
  const { database, months, masterKey } = kept
  let forgotten = 0
  for (;;) {
    stopped?.throwIfAborted()
    const last = await readExpired(database, months, rowsAtOnce)
    if (!last) return forgotten
    const now = Date.now()
    const signature = signStart(last, (now / 1000).toFixed(6), masterKey)
    forgotten += await forgetAudit(database, { last, at: new Date(now), signature, months })
  }
}
