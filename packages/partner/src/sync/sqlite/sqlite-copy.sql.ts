/** Copies of ledgers in one SQLite file, by the SQLite that Node brings. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { LedgerTableName } from '../../../../contract/src/ledger-tables.ts'
import { ledgerTables, wholeTables } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import { readRow } from '../../client/ledgers/fields.ts'
import {
  type CopiedFolder,
  type Copy,
  type Diary,
  type LedgerChange,
  type OpenOptions,
  otherService,
} from '../copy.ts'
import { conversionsOf, storedNames, type Value } from './columns.sql.ts'
import { LineReader } from './lines.sql.ts'
import { createIndexes } from './schema.sql.ts'

/** How long a ledger waits for one of another firm that another process writes. */
const patienceMs = 600_000
const againMs = 20
const lineFeed = 10
const isBusy = (error: unknown) => ((error as { errcode?: number }).errcode! & 0xff) === 5

export class SqliteCopy implements Copy {
  readonly name: string
  readonly #database: DatabaseSync
  readonly #locks: DatabaseSync[] = []
  readonly #locked: Set<string>
  readonly #signal: AbortSignal | undefined
  readonly #openLock: (firm: string) => DatabaseSync
  readonly #inserts: Partial<Record<LedgerTableName, StatementSync>> = {}
  readonly #readers: Partial<Record<LedgerTableName, LineReader>> = {}
  /** Node before 22.16 does not say it. */
  #isOpen = false
  #society = 0n
  #table: LedgerTableName = 'movements'

  constructor(
    path: string,
    database: DatabaseSync,
    openLock: (firm: string) => DatabaseSync,
    { locked = new Set<string>(), signal }: Pick<OpenOptions, 'locked' | 'signal'> = {},
  ) {
    this.name = path
    this.#database = database
    this.#locked = locked
    this.#signal = signal
    this.#openLock = openLock
  }

  get service(): string | undefined {
    const kept = this.#database.prepare('select service from grandlivre_copy').get()?.['service']
    return (kept ?? undefined) as string | undefined
  }

  async adopt(service: string): Promise<void> {
    await this.#transaction(() =>
      this.#run('update grandlivre_copy set service = ? where service is null', service),
    )
    if (this.service !== service) throw otherService(this.name)
  }

  /** A transaction of a database of its own: the system ends it with the process, under whatever name that ran. */
  async lock(firms: readonly string[]): Promise<void> {
    for (const firm of firms) {
      if (this.#locked.has(firm)) continue
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
      this.#locked.add(firm)
    }
  }

  async folders(): Promise<CopiedFolder[]> {
    const statement = this.#database.prepare(
      `select cast(society_id as text) as society, cast(firm_id as text) as firm_id, firm_name, cursor, employees,
         table_digests, synced_at, changed_at, gone_at, failed_at, failure from folders order by society_id`,
    )
    return statement.all().map((row) => ({
      ...(row as unknown as CopiedFolder),
      table_digests: digestsIn(row['table_digests']),
    }))
  }

  async note(societies: readonly string[], values: Partial<Diary>): Promise<void> {
    if (societies.length === 0) return
    await this.#transaction(() => this.#note(JSON.stringify(societies), values))
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
    this.#run(`delete from ${name} where society_id = ?`, this.#society)
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
    this.#note(JSON.stringify([String(this.#society)]), diary)
    if (change)
      this.#run(
        'insert into changes values (?, ?, ?, ?, ?, ?)',
        this.#society,
        change.at,
        change.cursor,
        JSON.stringify(change.entries),
        change.rows_before,
        change.rows_after,
      )
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
    this.#readers[table] ??= new LineReader(this.#database, table)
    return this.#readers[table].read(society)
  }

  async strays(): Promise<string[]> {
    const tables = ['movements', 'changes', ...wholeTables]
    const found = tables.flatMap((table) => this.#database.prepare(straysOf(table)).all())
    return [...new Set(found.map(({ id }) => String(id)))]
  }

  async remove(society: string): Promise<void> {
    await this.#transaction(() => {
      for (const table of [...Object.keys(ledgerTables), 'changes'])
        this.#run(
          `delete from ${table} where society_id = ?1
             and not exists (select 1 from folders f where f.society_id = ?1 and f.firm_id is not null)`,
          BigInt(society),
        )
    })
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

  #note(societies: string, values: Partial<Diary>): void {
    const names = Object.keys(values) as (keyof Diary)[]
    const bound = names.map((name) => {
      const value = values[name]
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string | null)
    })
    const set = names.map((name) => `${name} = excluded.${name}`)
    this.#run(
      `insert into folders (society_id${names.map((name) => `, ${name}`).join('')})
       select cast(value as integer)${names.map(() => ', ?').join('')} from json_each(?) where true
       on conflict (society_id) do ${set.length === 0 ? 'nothing' : `update set ${set.join(', ')}`}`,
      ...bound,
      societies,
    )
  }

  async #transaction(write: () => void): Promise<void> {
    await this.begin('0')
    try {
      write()
      this.#database.exec('commit')
      this.#isOpen = false
    } catch (error) {
      await this.rollback()
      throw error
    }
  }

  #run(sql: string, ...values: Value[]): void {
    this.#database.prepare(sql).run(...values)
  }
}

function insertInto(table: LedgerTableName): string {
  const names = ['society_id', ...storedNames(table)]
  const insert = `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`
  if (table !== 'folders') return insert
  const set = storedNames(table).map((name) => `${name} = excluded.${name}`)
  return `${insert} on conflict (society_id) do update set ${set.join(', ')}`
}

/** Goes from folder to folder by the key, and not through all rows. */
function straysOf(table: string): string {
  return `with recursive present (id) as (
      select min(society_id) from ${table}
      union all
      select (select min(society_id) from ${table} where society_id > id) from present where id is not null)
    select cast(id as text) as id from present
    where id is not null and id not in (select society_id from folders where firm_id is not null)`
}

/** What somebody has changed there only costs a table that is read again. */
function digestsIn(text: unknown): Diary['table_digests'] {
  try {
    return JSON.parse(String(text)) ?? {}
  } catch {
    return {}
  }
}

function otherColumns(table: LedgerTableName, found: number): Error {
  return clientError(
    'NOT-PROVEN',
    `A row of ${table} has ${found} columns, and this version knows ${ledgerTables[table].columns.length}`,
  )
}
