/**
 * The transaction of an import, which begins again if it collides with other writers.
 *
 * Locks, in the order in which every import takes them:
 *
 * 1. the advisory lock of imports alone: on kept ids, or on the reference of a folder that may be new
 * 2. the row of the folder (`lockFolder`), before any row in it. Triggers take the same lock in the same strength for each
 *    statement that changes a ledger, so of two writers that hold it the second waits
 * 3. rows of the ledger, and what foreign keys lock: rows that they refer to, third parties among them
 * 4. the events of the schema, then the head of the audit: nothing is locked after them
 *
 * A statement of SQL has locked its rows before its trigger asks for the folder. It can meet an import in 2 and 3: each
 * then waits for the other, and PostgreSQL ends one of them. In the next attempt the import waits for the folder until
 * that writer has ended. Serialization failures do not occur: the isolation is read committed.
 */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { inTransaction } from '../../db/pool.ts'
import { analyzeLedger } from '../load.ts'
import type { FolderTarget } from '../tenants.sql.ts'
import type { EntryWriter } from './entry-writer.ts'
import { applicationNames } from './other-writers.sql.ts'
import type { ReadBytes } from './source-file.ts'

/** Deadlocks after which an import begins again. */
const repetitionsMax = 3
/**
 * The other writer wakes up meanwhile and locks the folder: an import that began at once could be there before it
 * again.
 */
const pauseMs = 500

/** What is to be imported, and where. */
export interface ImportRequest {
  /** Path of a regular file. */
  file: string
  /** Decimal digits; of an existing folder. */
  folderId?: string | undefined
  /** Name of a new folder. Default: that of the file. */
  name?: string | undefined
  /** Replaces the ledger of the folder, or of the exercice of a FEC. */
  replace?: boolean
  onProgress?: (progress: ImportProgress) => void
}

export interface ImportOptions<Imported> extends ImportRequest {
  /** The last statements of the transaction: what else belongs to the import. */
  record?: (client: pg.ClientBase, imported: Imported) => Promise<void>
  /** Called after the commit. Only statistics follow, which may fail or be interrupted without harm. */
  onLoaded?: (imported: Imported) => void
}

/** What every import reports. */
export interface ImportedFolder extends FolderTarget, Omit<EntryWriter['counts'], 'filled'> {
  /** Whether the folder is new. */
  created: boolean
  /** Accounts and journals of the file. */
  accounts: number
  journals: number
}

export interface ImportProgress extends ReadBytes {
  /** `dating` only if the dates of the lines of a FEC determine the fiscal year. */
  step: 'dating' | 'checking' | 'reading' | 'loading'
  /** Lines of the file that were read; of a MAD file, movements. */
  lines: number
}

/**
 * Loads, records and commits.
 * @param pool connects as the owner of the tables
 * @param load is called again from its beginning, in a new transaction
 * @throws {Error} naming the other writers, after one deadlock more than `repetitionsMax`; nothing is loaded
 */
export async function inImportTransaction<Imported>(
  pool: pg.Pool,
  { record, onLoaded }: ImportOptions<Imported>,
  load: (client: pg.ClientBase) => Promise<Imported>,
): Promise<Imported> {
  const imported = await repeated(pool, async (client) => {
    const loaded = await load(client)
    await record?.(client, loaded)
    return loaded
  })
  onLoaded?.(imported)
  await analyzeLedger(pool)
  return imported
}

async function repeated<Result>(
  pool: pg.Pool,
  run: (client: pg.ClientBase) => Promise<Result>,
): Promise<Result> {
  for (let repetitions = 0; ; repetitions += 1)
    try {
      return await inTransaction(pool, run)
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || error.code !== '40P01') throw error
      if (repetitions === repetitionsMax) throw await collision(pool, error)
      await setTimeout(pauseMs)
    }
}

async function collision(pool: pg.Pool, cause: pg.DatabaseError): Promise<Error> {
  // The first line of the detail is that of the process that was ended. It holds numbers only, no statements.
  const [, ...others] = [...(cause.detail ?? '').matchAll(/^Process (\d+) waits/gm)].map(([, pid]) => pid!)
  const [, relation] = /in relation "([^"]+)"/.exec(cause.where ?? '') ?? []
  const names = await applicationNames(pool, others).catch(() => new Map<string, string>())
  const writers = others.map((pid) => {
    const name = names.get(pid)
    return `process ${pid}${name ? ` (${name})` : ''}`
  })
  return new Error(
    `The import collided with another writer ${repetitionsMax + 1} times, and the database ended the import each time: ` +
      `nothing was loaded. The last one was ${writers.join(', ') || 'not named'}` +
      `${relation === undefined ? '' : `, over rows of ${relation}`}. Import again once it has ended, or let its ` +
      `transactions begin with "select from grandlivre.folders where id = ... for no key update"`,
    { cause },
  )
}
