/**
 * The transaction of an import. It begins again if it collides with other writers.
 *
 * Every import takes its locks in this order:
 *
 * 1. the advisory lock that only imports use: on kept ids, or on the reference of a folder that may be new
 * 2. the row of the folder (`lockFolder`), before any row in it. Triggers take the same lock in the same strength for
 *    each statement that changes a ledger, so two writers of one folder never hold it together: the second waits
 * 3. rows of the ledger, and the rows that foreign keys lock because ledger rows refer to them, third parties among
 *    them
 * 4. the events of the schema, then the head of the audit: nothing is locked after them
 *
 * A single SQL statement locks its rows before its trigger asks for the folder, so it takes 3 before 2. It and an
 * import may then wait for each other, and PostgreSQL ends one of them. In its next attempt the import waits for the
 * folder until the other writer has ended. Serialization failures do not occur: the isolation is read committed.
 */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { inTransaction } from '../../db/pool.ts'
import { analyzeLedger } from '../load.ts'
import type { FolderTarget } from '../tenants.sql.ts'
import type { EntryWriter } from './entry-writer.ts'
import { applicationNames } from './other-writers.sql.ts'
import type { ReadBytes } from './source-file.ts'

/** An import begins again after each of this many deadlocks. */
const repetitionsMax = 3
/**
 * The pause before the next attempt. It lets the other writer wake up and lock the folder; without it, the import could
 * lock the folder before the other writer again.
 */
const pauseMs = 500

/** The file to import, and where to import it. */
export interface ImportRequest {
  /** Path of a regular file. */
  file: string
  /** The id of an existing folder, in decimal digits. */
  folderId?: string | undefined
  /** The name for a new folder. Default: the name of the file. */
  name?: string | undefined
  /** Whether to replace the ledger of the folder or, with a FEC, the ledger of the exercice. */
  replace?: boolean
  onProgress?: (progress: ImportProgress) => void
}

export interface ImportOptions<Imported> extends ImportRequest {
  /** Runs the last statements of the transaction, for other data that belongs to the import. */
  record?: (client: pg.ClientBase, imported: Imported) => Promise<void>
  /** Called after the commit. Only the update of statistics follows, which may fail or be interrupted without harm. */
  onLoaded?: (imported: Imported) => void
}

/** The facts that every import reports. */
export interface ImportedFolder extends FolderTarget, Omit<EntryWriter['counts'], 'filled'> {
  /** Whether the folder is new. */
  created: boolean
  /** The numbers of accounts and journals in the file. */
  accounts: number
  journals: number
}

export interface ImportProgress extends ReadBytes {
  /** `dating` occurs only if the dates of a FEC's lines determine the fiscal year. */
  step: 'dating' | 'checking' | 'reading' | 'loading'
  /** The number of lines read; for a MAD file, the number of movements. */
  lines: number
}

/**
 * Loads, records and commits.
 * @param pool connects as the owner of the tables
 * @param load may be called again from its beginning, in a new transaction
 * @throws {Error} naming the other writers, after `repetitionsMax + 1` deadlocks; nothing is loaded
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
  // The first line of the detail is about the process that was ended. The detail holds only numbers, no statements.
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
