/** A copy in one SQLite file, by the SQLite that Node brings. */
import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../../../../../terminal/src/command-errors.ts'
import { bufferOf, movementLines } from '../lines/entry-lines.ts'
import { lockFile } from '../targets/lock.ts'
import { prefixes, tables } from '../targets/tables.ts'
import type { Area, Change, EntryRange, Part, State, Target } from '../targets/target.ts'
import { AreaOfSqlite } from './area.sql.ts'
import { createIndexes, createTables, createViews } from './schema.sql.ts'

/** Marks a file as ours: the letters GLVR. */
const applicationId = 0x474c5652
const cacheKiB = 8 * 1024
/** How long a write waits for a reader of the file. */
const busyMs = 10_000
/** Lines of entries are often longer than the default page of 4 KiB. */
const pageBytes = 16 * 1024

export class SqliteTarget implements Target {
  readonly name: string
  readonly #database: DatabaseSync
  readonly #unlock: () => void
  readonly #areas: Partial<Record<Area, AreaOfSqlite>> = {}

  private constructor(path: string, database: DatabaseSync, unlock: () => void) {
    this.name = path
    this.#database = database
    this.#unlock = unlock
  }

  /** @throws {Failure} if another sync writes the file, it is none of ours, or this Node has no SQLite */
  static async open(path: string): Promise<SqliteTarget> {
    const sqlite = await loadSqlite(path)
    const unlock = lockFile(path)
    let database: DatabaseSync | undefined
    try {
      database = new sqlite.DatabaseSync(path)
      prepare(database, path)
      return new SqliteTarget(path, database, unlock)
    } catch (error) {
      database?.close()
      unlock()
      throw error
    }
  }

  async state(area: Area): Promise<State | undefined> {
    const row = this.#database.prepare('select state from sync_state where area = ?').get(area)
    return row === undefined ? undefined : JSON.parse(String(row['state']))
  }

  async change<T>(area: Area, write: (change: Change) => Promise<T>): Promise<T> {
    return this.#transaction(async () => {
      if (area === 'next' && (await this.state('next')) === undefined) {
        delete this.#areas.next
        this.#database.exec(createTables(prefixes.next))
      }
      this.#areas[area] ??= new AreaOfSqlite(this.#database, area)
      return write(this.#areas[area])
    })
  }

  async clearNext(): Promise<void> {
    delete this.#areas.next
    await this.#transaction(async () => {
      for (const { name } of tables) this.#database.exec(`drop table if exists next_${name}`)
      this.#database.exec(`delete from sync_state where area = 'next'`)
    })
  }

  /** A copy that is there keeps its tables, and so views and triggers that others have made for them. */
  async promote(): Promise<void> {
    const isFirst = (await this.state('copy')) === undefined
    delete this.#areas.next
    delete this.#areas.copy
    await this.#transaction(async () => {
      for (const { name } of tables) {
        if (isFirst) this.#database.exec(`alter table next_${name} rename to ${name}`)
        else
          this.#database.exec(
            `delete from ${name}; insert into ${name} select * from next_${name}; drop table next_${name}`,
          )
      }
      if (isFirst) this.#database.exec(`${createIndexes} ${createViews}`)
      this.#database.exec(`delete from sync_state where area = 'copy'`)
      this.#database.exec(`update sync_state set area = 'copy' where area = 'next'`)
    })
    this.#database.exec('pragma analysis_limit = 1000; analyze')
    letReadersIn(this.#database)
  }

  async digests({ exercice, draft }: Part, ranges: readonly EntryRange[]): Promise<string[]> {
    const lines = this.#database.prepare(
      `select l.line from entries e join entry_lines l on l.entry_id = e.entry_id
       where e.entry_id between ? and ? and e.exercice_id = ? and e.draft = ? order by e.entry_id`,
    )
    return ranges.map(([from, to]) => {
      const hash = createHash('sha256')
      for (const { line } of lines.iterate(BigInt(from), BigInt(to), BigInt(exercice), draft ? 1 : 0))
        for (const movement of movementLines(bufferOf(line as Uint8Array))) hash.update(movement)
      return hash.digest('hex')
    })
  }

  async close(): Promise<void> {
    this.#database.close()
    this.#unlock()
  }

  async #transaction<T>(write: () => Promise<T>): Promise<T> {
    this.#database.exec('begin immediate')
    try {
      const result = await write()
      this.#database.exec('commit')
      return result
    } catch (error) {
      // A full disk has ended the transaction by itself.
      if (this.#database.isTransaction !== false) this.#database.exec('rollback')
      throw error
    }
  }
}

async function loadSqlite(path: string): Promise<typeof import('node:sqlite')> {
  try {
    return await withoutWarning(() => import('node:sqlite'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error
    throw new Failure(
      `Node ${process.versions.node} has no SQLite, which ${path} needs`,
      'Use Node 22.13 or newer, or another target: --to <file>.ndjson, or --to postgres://...',
    )
  }
}

/** Node says of its SQLite that it may change; a user of the command can do nothing about it. */
async function withoutWarning<T>(load: () => Promise<T>): Promise<T> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return await load()
  } finally {
    process.emitWarning = emitWarning
  }
}

/** A database that is being filled has no readers, and a journal of old pages is shorter than a log of new ones. */
function prepare(database: DatabaseSync, path: string): void {
  database.exec(`pragma busy_timeout = ${busyMs}`)
  const { application_id: id } = readRow(database, path)
  database.exec(`pragma cache_size = -${cacheKiB}`)
  const isEmpty = database.prepare('select 1 from sqlite_schema limit 1').get() === undefined
  if (id !== applicationId) {
    if (!isEmpty)
      throw new Failure(`${path} is a database of something else`, 'Choose another file for --to.')
    database.exec(
      `pragma page_size = ${pageBytes}; begin; pragma application_id = ${applicationId};
       create table sync_state (area text primary key, state text not null); commit`,
    )
  }
  const hasCopy = database.prepare("select 1 from sync_state where area = 'copy'").get() !== undefined
  if (hasCopy) letReadersIn(database)
  else database.exec('pragma journal_mode = truncate; pragma synchronous = normal')
}

function readRow(database: DatabaseSync, path: string): { application_id: number } {
  try {
    return database.prepare('pragma application_id').get() as { application_id: number }
  } catch (cause) {
    throw new Failure(`${path} is no SQLite database`, 'Choose another file for --to.', { cause })
  }
}

/** With a log of changes, readers see the last step while the next one is written. */
function letReadersIn(database: DatabaseSync): void {
  database.exec('pragma journal_mode = wal; pragma synchronous = normal')
}
