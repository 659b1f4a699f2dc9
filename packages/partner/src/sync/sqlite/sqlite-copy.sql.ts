/** Copies of ledgers in one SQLite file, by the SQLite that Node brings. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import { readRow } from '../../client/ledgers/fields.ts'
import type { Copy, Diary, LedgerChange, OpenOptions } from '../copy.ts'
import { SqlCopy } from '../sql-copy.sql.ts'
import { conversionsOf, lineReader, storedNames, type Value } from './columns.sql.ts'
import { createIndexes } from './schema.sql.ts'

/** How long a ledger waits for one of another firm that another process writes. */
const patienceMs = 600_000
const againMs = 20
const lineFeed = 10
const isBusy = (error: unknown) => ((error as { errcode?: number }).errcode! & 0xff) === 5

export class SqliteCopy extends SqlCopy implements Copy {
  readonly #database: DatabaseSync
  readonly #locks: DatabaseSync[] = []
  readonly #signal: AbortSignal | undefined
  readonly #openLock: (firm: string) => DatabaseSync
  readonly #inserts: Partial<Record<LedgerTableName, StatementSync>> = {}
  readonly #readers: Partial<Record<LedgerTableName, ReturnType<typeof lineReader>>> = {}
  /** Node before 22.16 does not say it. */
  #isOpen = false
  #society = 0n
  #table: LedgerTableName = 'movements'

  constructor(
    path: string,
    database: DatabaseSync,
    openLock: (firm: string) => DatabaseSync,
    { locked, signal }: OpenOptions,
  ) {
    const kept = database.prepare('select service from grandlivre_copy').get()
    super(path, kept?.['service'], locked, 'select cast(value as integer) as id from json_each($1)')
    this.#database = database
    this.#signal = signal
    this.#openLock = openLock
  }

  protected async query(sql: string, values: readonly unknown[] = []) {
    const named = Object.fromEntries(values.map((value, place) => [`$${place + 1}`, value as Value]))
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

  /** A transaction of a database of its own: the system ends it with the process, under whatever name that ran. */
  protected async lockFirm(firm: string): Promise<void> {
    const lock = this.#openLock(firm)
    try {
      lock.exec('begin exclusive')
    } catch (cause) {
      lock.close()
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

  async rows(lines: Buffer): Promise<void> {
    const table = this.#table
    this.#inserts[table] ??= this.#database.prepare(insertInto(table))
    const insert = this.#inserts[table]
    const columns = ledgerTables[table].columns.length
    const conversions = conversionsOf(table)
    const owner = table === 'folders' ? [] : [this.#society]
    for (let at = 0; at < lines.length; ) {
      const end = lines.indexOf(lineFeed, at)
      // One by one: a character beyond Latin-1 doubles the bytes of all of a text, and of what is cut out of it.
      const row: Value[] = readRow(lines.toString('utf8', at, end))
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
    await this.query(...this.noting([society], diary))
    await this.noteChange(society, change)
    this.#database.exec(`${createIndexes} commit`)
    this.#isOpen = false
  }

  async rollback(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#database.exec('rollback')
    } catch {
      // A full disk has ended the transaction by itself.
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
      // Statistics for queries; the next run makes them.
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
