/** Opens or makes the SQLite file of a copy. */
import { accessSync, constants, existsSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import {
  type Copy,
  formerTables,
  layoutVersion,
  notThere,
  type OpenOptions,
  otherLayout,
  refused,
} from '../copy.ts'
import { createTables, names as currentNames } from './schema.sql.ts'
import { SqliteCopy } from './sqlite-copy.sql.ts'

/** Marks a file as ours: the letters GLVR. */
const applicationId = 0x474c5652
/** With pages of 16 KiB the indexes of 600,000 movements take a fifth less processor than with 4 KiB. */
const pageBytes = 16 * 1024
const cacheKiB = 8 * 1024
const notADatabase = 26
/** How long to wait for another process that makes the tables. */
const makingMs = 5_000

/**
 * @param path of the file; another process reads it while it is written
 * @throws {GrandlivreError} COPY-REFUSED: it cannot be opened, is of something else, or of another layout
 */
export async function openSqlite(
  path: string,
  { isThere, again, locked, signal }: OpenOptions = {},
): Promise<Copy> {
  const file = resolve(path)
  if (!existsSync(dirname(file))) throw refused(`The folder of ${file} does not exist`, 'Create it first.')
  if (isThere && !existsSync(file)) throw notThere(file, path)
  const { DatabaseSync } = await loadSqlite()
  let database: DatabaseSync
  try {
    database = new DatabaseSync(file)
  } catch (cause) {
    throw notOpened(path, cause)
  }
  try {
    prepare(database, path, again === true)
    // A ledger that waits for another must not hold up this process.
    database.exec('pragma busy_timeout = 0')
    // Whatever links lead to it, a file has one lock for each firm.
    const real = realpathSync(file)
    const openLock = (firm: string) => {
      const lockFile = `${real}.${BigInt(firm)}.lock`
      const lock = new DatabaseSync(lockFile)
      try {
        // SQLite opens what this user may only read, and its lock keeps nobody out.
        accessSync(lockFile, constants.W_OK)
      } catch (cause) {
        lock.close()
        throw notOpened(lockFile, cause)
      }
      return lock
    }
    return new SqliteCopy(file, database, openLock, { locked, signal })
  } catch (error) {
    database.close()
    throw error
  }
}

const ourNames = [...currentNames, ...formerTables]

function prepare(database: DatabaseSync, path: string, again: boolean): void {
  database.exec(`pragma busy_timeout = ${makingMs}`)
  const id = applicationIdOf(database, path)
  const names = new Set(
    database
      .prepare('select name from sqlite_schema')
      .all()
      .map(({ name }) => String(name)),
  )
  if (id !== applicationId && names.size > 0)
    throw refused(`${path} is a database of something else`, 'Choose another file for --to.')
  database.exec(`pragma page_size = ${pageBytes}; pragma cache_size = -${cacheKiB}`)
  database.exec('pragma journal_mode = wal; pragma synchronous = normal')
  const isCopy = names.has('grandlivre_copy')
  const layout = isCopy ? database.prepare('select layout from grandlivre_copy').get()?.['layout'] : undefined
  if (layout === layoutVersion) return
  if (names.size > 0) {
    if (!again) throw otherLayout(path, path)
    dropCopy(database)
  }
  database.exec(`begin; pragma application_id = ${applicationId}; ${createTables}
    insert into grandlivre_copy (layout) values (${layoutVersion}); commit`)
}

/** Of a former layout nothing is kept: rows of another shape would be mistaken for proven ones. Others' tables stay. */
function dropCopy(database: DatabaseSync): void {
  const found = database.prepare("select type, name from sqlite_schema where type in ('view', 'table')").all()
  for (const { type, name } of found)
    if (ourNames.includes(String(name))) database.exec(`drop ${type} ${name}`)
}

function applicationIdOf(database: DatabaseSync, path: string): unknown {
  try {
    return database.prepare('pragma application_id').get()?.['application_id']
  } catch (cause) {
    if ((cause as { errcode?: number }).errcode !== notADatabase) throw notOpened(path, cause)
    throw refused(`${path} is no SQLite database`, 'Choose another file for --to.', cause)
  }
}

function notOpened(path: string, cause: unknown): Error {
  const remedy = 'Choose a file that this user may write, in a folder that it may write.'
  return refused(`${path} cannot be opened: ${(cause as Error).message}`, remedy, cause)
}

/** Node says of its SQLite that it may change; a user of the command can do nothing about it. */
async function loadSqlite(): Promise<typeof import('node:sqlite')> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return await import('node:sqlite')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error
    throw refused(
      `Node ${process.versions.node} has no SQLite`,
      'Use Node 22.13 or newer, or another target: postgres://...',
    )
  } finally {
    process.emitWarning = emitWarning
  }
}
