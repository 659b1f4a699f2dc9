/**
 * Deletes the rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs what is left: `audit verify` then
 * begins at a row whose hash only a holder of MASTER_KEY can have named. Each deletion is a row of the audit itself.
 */
import type { Pool } from 'pg'
import { forgetAudit, readExpired } from './audit.sql.ts'
import { signStart } from './start-signature.ts'

export interface AuditRetentionParts {
  /** Connects as the service role. */
  database: Pool
  /** Months for which rows are kept. */
  months: number
  /** 32 bytes. */
  masterKey: Buffer
}

/** Rows per transaction: a second on a busy machine. Only its end keeps others from appending. */
const rowsAtOnce = 50_000

/** One sweep. @returns the rows that it deleted */
export async function sweepAudit(
  { database, months, masterKey }: AuditRetentionParts,
  stopped?: AbortSignal,
): Promise<number> {
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
