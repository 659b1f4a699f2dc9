/**
 * Deletes the rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs what is left: `audit verify` then
 * begins at a row whose hash only a holder of MASTER_KEY can have named. Each deletion is a row of the audit itself.
 */
import type { ClientBase, Pool } from 'pg'
import { inTransaction } from '../db/pool.ts'
import { forgetAudit, readExpired } from './audit.sql.ts'
import { signStart } from './start-signature.ts'

/** Rows per transaction: a second on a busy machine. Only its end keeps others from appending. */
const rowsAtOnce = 50_000

/**
 * One sweep.
 * @param kept with a database that connects as the service role, the months for which rows are kept, and what finds the
 *   key that signs until the end of a transaction
 * @returns the rows that it deleted
 */
export async function sweepAudit(
  kept: { database: Pool; months: number; signingKey: (client: ClientBase) => Promise<Buffer> },
  stopped?: AbortSignal,
): Promise<number> {
  const { database, months, signingKey } = kept
  let forgotten = 0
  for (;;) {
    stopped?.throwIfAborted()
    const last = await readExpired(database, months, rowsAtOnce)
    if (!last) return forgotten
    const now = Date.now()
    forgotten += await inTransaction(database, async (client) => {
      const signature = signStart(last, (now / 1000).toFixed(6), await signingKey(client))
      return forgetAudit(client, { last, at: new Date(now), signature, months })
    })
  }
}
