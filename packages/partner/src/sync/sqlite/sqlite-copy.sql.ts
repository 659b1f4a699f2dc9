/** Copies of ledgers in a SQLite file, with the SQLite that is built into Node. */
import { accessSync, constants, existsSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import { readRow } from '../../client/ledgers/fields.ts'
import {
  type Copy,
  type Diary,
  formerTables,
  type LedgerChange,
  layoutVersion,
  notThere,
  type OpenOptions,
  otherLayout,
  refused,
} from '../copy.ts'
import { SqlCopy } from '../sql-copy.sql.ts'
import {
  conversionsOf,
  copyNames,
  createIndexes,
  createTables,
  lineReader,
  type SqlValue,
  storedNames,
} from './schema.sql.ts'

/** Marks a file as a copy of ledgers: the letters GLVR. */
const applicationId = 0x474c5652
/** Size of a page. At 16 KiB the indexes of 600,000 movements take a fifth less processor time than at 4 KiB. */
const pageBytes = 16 * 1024
const cacheKiB = 8 * 1024
const notADatabase = 26
/** Longest wait for another process that is creating the tables. */
const makingMs = 5_000

/**
 * @param path of the file. Other processes can read it while it is written
 * @throws {GrandlivreError} COPY-REFUSED if it cannot be opened, holds something else, or has another layout
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
    // SQLite must not wait, because its waits block the whole process.
    database.exec('pragma busy_timeout = 0')
    return new SqliteCopy(file, database, DatabaseSync, { locked, signal })
  } catch (error) {
    database.close()
    throw error
  }
}

const ourNames = [...copyNames, ...formerTables]

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

/**
 * Drops the tables of another layout. Their rows have another shape, and would be mistaken for proven rows. Tables that
 * others made stay.
 */
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

/** Loads SQLite without Node's warning that it may change. Users of the command cannot act on that warning. */
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

/** Longest wait of a ledger while another process writes a ledger of another firm. */
const patienceMs = 600_000
const againMs = 20
const lineFeed = 10
const isBusy = (error: unknown) => ((error as { errcode?: number }).errcode! & 0xff) === 5

class SqliteCopy extends SqlCopy implements Copy {
  readonly #database: DatabaseSync
  readonly #locks: DatabaseSync[] = []
  readonly #signal: AbortSignal | undefined
  readonly #Database: typeof DatabaseSync
  /** Without links, so that a file has one lock for each firm whatever links lead to it. */
  readonly #realPath: string
  readonly #inserts: Partial<Record<LedgerTableName, StatementSync>> = {}
  readonly #readers: Partial<Record<LedgerTableName, ReturnType<typeof lineReader>>> = {}
  /** Whether a transaction is open. Node before 22.16 cannot tell. */
  #isOpen = false
  #society = 0n
  #table: LedgerTableName = 'movements'

  constructor(
    path: string,
    database: DatabaseSync,
    Database: typeof DatabaseSync,
    { locked, signal }: OpenOptions,
  ) {
    super(path, undefined, locked, 'select cast(value as integer) as id from json_each($1)')
    this.#database = database
    this.#signal = signal
    this.#Database = Database
    this.#realPath = realpathSync(path)
  }

  /** Read each time, because another run may have adopted a service since this one opened the file. */
  override get service(): string | undefined {
    const kept = this.#database.prepare('select service from grandlivre_copy').get()
    return (kept?.['service'] as string | null) ?? undefined
  }

  protected async query(sql: string, values: readonly unknown[] = []) {
    const named = Object.fromEntries(values.map((value, place) => [`$${place + 1}`, value as SqlValue]))
    return this.#database.prepare(sql).all(named)
  }

  protected async write(sql: string, values?: readonly unknown[]) {
    await this.begin('0')
    try {
      const rows = values ? await this.query(sql, values) : []
      if (!values) this.#database.exec(sql)
      this.#database.exec('commit')
      this.#isOpen = false
      return rows
    } catch (error) {
      await this.rollback()
      throw error
    }
  }

  /**
   * The lock is an open transaction on a separate database. The system ends it with the process, however the process
   * ends.
   */
  protected async lockFirm(firm: string): Promise<void> {
    const file = `${this.#realPath}.${BigInt(firm)}.lock`
    const lock = new this.#Database(file)
    try {
      // SQLite would also open a file that this user may only read, but such a lock keeps nobody out.
      accessSync(file, constants.W_OK)
      lock.exec('begin exclusive')
    } catch (cause) {
      lock.close()
      if ((cause as NodeJS.ErrnoException).syscall === 'access') throw notOpened(file, cause)
      if (!isBusy(cause)) throw cause
      const message = `Another process writes the folders of the firm ${firm} in ${this.name}`
      throw clientError('COPY-LOCKED', message, { cause })
    }
    this.#locks.push(lock)
  }

  async begin(society: string): Promise<void> {
    const deadline = performance.now() + patienceMs
    for (;;) {
      try {
        this.#database.exec('begin immediate')
        break
      } catch (error) {
        if (!isBusy(error)) throw error
        if (performance.now() > deadline)
          throw clientError('COPY-LOCKED', `Another process has written ${this.name} for minutes`, {
            cause: error,
          })
        await delay(againMs, undefined, { signal: this.#signal })
      }
    }
    this.#isOpen = true
    this.#society = BigInt(society)
  }

  async dropEntries(ranges: readonly EntryRange[]): Promise<number> {
    const drop = this.#database.prepare(
      'delete from movements where society_id = ? and entry_id between ? and ?',
    )
    let rows = 0
    for (const [from, to] of ranges) rows += Number(drop.run(this.#society, BigInt(from), BigInt(to)).changes)
    return rows
  }

  async table(name: LedgerTableName): Promise<void> {
    this.#table = name
    if (name === 'movements' || name === 'folders') return
    this.#database.prepare(`delete from ${name} where society_id = ?`).run(this.#society)
  }

  async rows({ buffer, byteOffset, length }: Uint8Array): Promise<void> {
    const lines = Buffer.from(buffer, byteOffset, length)
    const table = this.#table
    this.#inserts[table] ??= this.#database.prepare(insertInto(table))
    const insert = this.#inserts[table]
    const columns = ledgerTables[table].columns.length
    const conversions = conversionsOf(table)
    const owner = table === 'folders' ? [] : [this.#society]
    for (let at = 0; at < lines.length; ) {
      const end = lines.indexOf(lineFeed, at)
      // Decodes each line for itself: one character beyond Latin-1 doubles the bytes of a whole text, and of the texts
      // that are cut out of it.
      const row: SqlValue[] = readRow(lines.toString('utf8', at, end))
      if (row.length !== columns) throw otherColumns(table, row.length)
      for (const [column, convert] of conversions) {
        const field = row[column] as string | null
        if (field !== null) row[column] = convert(field)
      }
      insert.run(...owner, ...row)
      at = end + 1
    }
  }

  async commit(diary: Partial<Diary>, change: LedgerChange | null): Promise<void> {
    const society = String(this.#society)
    await this.noteCommit(society, diary, change)
    this.#database.exec(`${createIndexes} commit`)
    this.#isOpen = false
  }

  async rollback(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#database.exec('rollback')
    } catch {
      // After a full disk SQLite has already ended the transaction.
    }
  }

  lines(society: string, table: LedgerTableName): Iterable<Uint8Array> {
    this.#readers[table] ??= lineReader(this.#database, table)
    return this.#readers[table](society)
  }

  async close(): Promise<void> {
    await this.rollback()
    try {
      this.#database.exec('pragma analysis_limit = 1000; pragma optimize')
    } catch {
      // The statistics only speed up queries. The next run makes them.
    }
    this.#database.close()
    for (const lock of this.#locks) lock.close()
  }
}

function insertInto(table: LedgerTableName): string {
  const names = ['society_id', ...storedNames(table)]
  const insert = `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`
  if (table !== 'folders') return insert
  const set = storedNames(table).map((name) => `${name} = excluded.${name}`)
  return `${insert} on conflict (society_id) do update set ${set.join(', ')}`
}

function otherColumns(table: LedgerTableName, found: number): Error {
  return clientError(
    'NOT-PROVEN',
    `A row of ${table} has ${found} columns, and this version knows ${ledgerTables[table].columns.length}`,
  )
}
