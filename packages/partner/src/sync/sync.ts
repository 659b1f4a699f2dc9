/**
 * Copies of whole firms in a database: `import { openCopy, syncCopy } from 'grandlivre/sync'`. What the commands `sync`
 * and `verify` do, with progress as events.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { clientError, GrandlivreError } from '../client/errors.ts'
import type { LedgerList } from '../client/ledgers/ledger-parts.ts'
import type { Copy, OpenOptions } from './copy.ts'
import type { Run, Summary } from './events.ts'
import { bringUpToDate } from './run.ts'

export type { CopiedFolder, Copy, Diary, LedgerChange, OpenOptions } from './copy.ts'
export type { CopiedLedger, Difference, Run, Summary, SyncEvent } from './events.ts'
export { type Verified, verifyCopy } from './verify.ts'

/** Longest wait for another list that the service allows. */
const waitSeconds = 30
/** Least time between two requests for a list that is the same. */
const leastMs = 1_000
/** Wait after an error that may pass, unless the service says how long. */
const retryMs = 5_000

/**
 * Opens a copy, or makes it: a file that ends in .sqlite, .sqlite3 or .db, or `postgres://user:password@host/database`
 * with `?schema=` for another schema than grandlivre_ledger. Close it at the end.
 * @throws {GrandlivreError} COPY-REFUSED, with what to do about it in `remedy`
 */
export async function openCopy(to: string, options: OpenOptions = {}): Promise<Copy> {
  if (/\.(sqlite3?|db)$/.test(to))
    return (await import('./sqlite/sqlite-copy.sql.ts')).openSqlite(to, options)
  if (/^postgres(ql)?:\/\//.test(to))
    return (await import('./postgres/postgres-copy.sql.ts')).openPostgres(to, options)
  // The address of another database may have a password.
  throw clientError('COPY-REFUSED', `${to.replace(/\/\/.*@/, '//')} names no kind of copy`, {
    remedy:
      'Files of lines are made by grandlivre pull. Write --to <file>.sqlite or --to postgres://user@host/database.',
  })
}

/**
 * Brings a copy to the present state of its ledgers, each in a transaction. Interrupted anywhere, the next call goes on
 * with the ledgers that are missing.
 * @param again every ledger is read in full
 */
export async function syncCopy(run: Run, { again = false }: { again?: boolean } = {}): Promise<Summary> {
  const { ledgers } = await run.ledger.ledgers({ signal: run.signal })
  return bringUpToDate(run, ledgers, again)
}

/** Keeps a copy at the present state: returns when the signal of the run aborts. What is under way then is undone. */
export async function followLedgers(run: Run): Promise<void> {
  const { ledger, signal } = run
  let list: LedgerList | undefined
  while (!signal?.aborted) {
    try {
      // Folders that were refused are asked for again when something changes, or the wait is over.
      const asked = performance.now()
      const other = await ledger.ledgers({ after: list?.etag, wait: waitSeconds, signal })
      // A proxy on the way may not let requests wait.
      if (!other && performance.now() - asked < leastMs) await delay(leastMs, undefined, { signal })
      list = other ?? list
      await bringUpToDate(run, list!.ledgers)
    } catch (error) {
      if (signal?.aborted) return
      if (!mayPass(error)) throw error
      list = undefined
      const ms = error.retryAfterMs ?? retryMs
      run.onEvent?.({ kind: 'waiting', reason: error.message, ms })
      await delay(ms, undefined, { signal }).catch(() => {})
    }
  }
}

function mayPass(error: unknown): error is GrandlivreError {
  if (!(error instanceof GrandlivreError)) return false
  return error.code.startsWith('CONNECTION-') || [429, 502, 503, 504].includes(error.status)
}
