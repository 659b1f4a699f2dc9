/**
 * Copies whole firms into a database: `import { openCopy, syncCopy } from 'grandlivre/sync'`. Does what the commands
 * `sync` and `verify` do, and reports progress as events.
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

/** Longest time for which the service holds a request until the list changes. */
const waitSeconds = 30
/** Least time between two requests if the list has not changed. */
const leastMs = 1_000
/** Wait after an error that may pass, unless the service says how long to wait. */
const retryMs = 5_000

/**
 * Opens a copy, or makes it. Close it at the end.
 * @param to a file that ends in .sqlite, .sqlite3 or .db; or `postgres://user:password@host/database`, where `?schema=`
 *   names a schema other than grandlivre_ledger
 * @throws {GrandlivreError} COPY-REFUSED, with what to do about it in `remedy`
 */
export async function openCopy(to: string, options: OpenOptions = {}): Promise<Copy> {
  if (/\.(sqlite3?|db)$/.test(to))
    return (await import('./sqlite/sqlite-copy.sql.ts')).openSqlite(to, options)
  if (/^postgres(ql)?:\/\//.test(to))
    return (await import('./postgres/postgres-copy.sql.ts')).openPostgres(to, options)
  // The address of another kind of database may contain a password.
  throw clientError('COPY-REFUSED', `${to.replace(/\/\/.*@/, '//')} names no kind of copy`, {
    remedy:
      'Files of lines are made by grandlivre pull. Write --to <file>.sqlite or --to postgres://user@host/database.',
  })
}

/**
 * Brings a copy up to date with its ledgers, each in its own transaction. After an interruption at any point, the next
 * call goes on with the ledgers that are still missing.
 * @param again reads every ledger in full
 */
export async function syncCopy(run: Run, { again = false }: { again?: boolean } = {}): Promise<Summary> {
  const { ledgers } = await run.ledger.ledgers({ signal: run.signal })
  return bringUpToDate(run, ledgers, again)
}

/** Keeps a copy up to date until the signal of the run aborts, then undoes what is under way and returns. */
export async function followLedgers(run: Run): Promise<void> {
  const { ledger, signal } = run
  let list: LedgerList | undefined
  while (!signal?.aborted) {
    try {
      // Folders that were refused are requested again when the list changes or the wait is over.
      const asked = performance.now()
      const other = await ledger.ledgers({ after: list?.etag, wait: waitSeconds, signal })
      // A proxy on the way may answer without the wait.
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
