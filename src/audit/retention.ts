/**
 * Deletes the rows of the audit that are older than AUDIT_RETENTION_MONTHS, and signs what is left: `audit verify` then
 * begins at a row whose hash only a holder of MASTER_KEY can have named. Each deletion is a row of the audit itself.
 */
import type { Pool } from 'pg'
import { limits } from '../config.ts'
import { type Sweeps, startSweeping } from '../db/sweeping.ts'
import type { Log } from '../log.ts'
import { forgetAudit, readExpired } from './audit.sql.ts'
import { signStart } from './start-signature.ts'

export interface AuditRetentionParts {
  /** Connects as the service role. */
  database: Pool
  sweeps: Sweeps
  /** Months for which rows are kept. */
  months: number
  /** 32 bytes. */
  masterKey: Buffer
  log: Log
}

/** Rows per transaction: a second on a busy machine. Only its end keeps others from appending. */
const rowsAtOnce = 50_000

/** Sweeps at once and then every hour, until closed. */
export function startAuditRetention(parts: AuditRetentionParts): { close(): Promise<void> } {
  const { sweeps, log } = parts
  return startSweeping({
    sweeps,
    name: 'retention of the audit',
    everyMs: limits.retentionEveryMs,
    sweep: async (stopped) => {
      const rows = await sweepAudit(parts, stopped)
      if (rows > 0) log('retention.auditSwept', { rows })
    },
    onError: (error) => log('retention.error', { error }),
  })
}

/** Runs one sweep. @returns the rows that it deleted */
export async function sweepAudit(
  { database, months, masterKey }: Pick<AuditRetentionParts, 'database' | 'months' | 'masterKey'>,
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
