/** A copy in PostgreSQL. Rows go in and out by COPY, as bytes. */
import type { LedgerTableName } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import { type CopiedFolder, type Copy, type Diary, type LedgerChange, otherService } from '../copy.ts'
import { CopyIn, CopyOut } from './copy-stream.ts'
import { columnsOf, diaryColumns, orderOf, societySetting, tableNames } from './schema.sql.ts'

type Client = import('pg').Client

const diaryNames = Object.keys(diaryColumns) as (keyof Diary)[]
const lineFeed = 10
/** A session ends a moment after its process, at most the half second after which it looks. */
const lockWait = '3s'
const lockNotAvailable = '55P03'
/** New rows after which, once the copy has also doubled, the statistics of the planner are out of date. */
const analyzeFrom = 50_000

/** The ledger whose transaction is open. */
interface Open {
  society: string
  /** What was noted before; the row of the folder may be replaced. */
  diary: Partial<Diary>
  table?: LedgerTableName
  copy?: CopyIn | undefined
  /** Lines given to `copy`. */
  lines: number
}

export class PostgresCopy implements Copy {
  readonly name: string
  readonly #client: Client
  readonly #schema: string
  readonly #locked: Set<string>
  #service: string | undefined
  #open: Open | undefined
  #analyzed = analyzeFrom / 2
  #written = 0

  constructor(
    client: Client,
    { name, schema, service }: { name: string; schema: string; service: string | undefined },
    locked = new Set<string>(),
  ) {
    this.#client = client
    this.#locked = locked
    this.name = name
    this.#schema = schema
    this.#service = service
  }

  get service(): string | undefined {
    return this.#service
  }

  async adopt(service: string): Promise<void> {
    const { rowCount } = await this.#client.query(
      'update grandlivre_copy set service = $1 where service is null or service = $1',
      [service],
    )
    if (rowCount === 0) throw otherService(this.name)
    this.#service = service
  }

  /** The locks are the session's: they go with the process, once the database has found that it is gone. */
  async lock(firms: readonly string[]): Promise<void> {
    for (const firm of firms) {
      if (this.#locked.has(firm)) continue
      // No array of parameters, and so one message and one transaction, which the lock outlasts.
      const key = `grandlivre copy ${this.#schema} firm ${BigInt(firm)}`
      await this.#client
        .query(
          `set local lock_timeout to '${lockWait}'; select pg_advisory_lock(hashtextextended('${key}', 0))`,
        )
        .catch((error: Error & { code?: string }) => {
          if (error.code !== lockNotAvailable) throw error
          throw clientError('COPY-LOCKED', `Another sync writes firm ${firm} in ${this.name}`)
        })
      this.#locked.add(firm)
    }
  }

  async folders(): Promise<CopiedFolder[]> {
    const { rows } = await this.#client.query(
      `select society_id as society, ${diaryNames.join(', ')} from folders order by society_id`,
    )
    return rows.map((row) => {
      for (const name of diaryNames) if (row[name] instanceof Date) row[name] = row[name].toISOString()
      return { ...row, table_digests: row.table_digests ?? {} }
    })
  }

  async note(societies: readonly string[], values: Partial<Diary>): Promise<void> {
    const { names, parameters } = diaryValues(values)
    const set = names.map((name) => `${name} = excluded.${name}`).join(', ')
    await this.#client.query(
      `insert into folders (${['society_id', ...names].join(', ')})
       select ${['s.id', ...names.map((_, i) => `$${i + 2}::${diaryColumns[names[i]!][0]}`)].join(', ')}
       from unnest($1::bigint[]) s(id)
       on conflict (society_id) do ${set === '' ? 'nothing' : `update set ${set}`}`,
      [societies, ...parameters],
    )
  }

  async begin(society: string): Promise<void> {
    await this.#client.query(`begin; set local ${societySetting} to '${BigInt(society)}'`)
    this.#open = { society, diary: {}, lines: 0 }
  }

  async dropEntries(ranges: readonly EntryRange[]): Promise<number> {
    const { society } = this.#opened()
    await this.#endTable()
    const { rowCount } = await this.#client.query(
      `delete from movements m using unnest($2::bigint[], $3::bigint[]) r(first, last)
       where m.society_id = $1 and m.entry_id between r.first and r.last`,
      [society, ranges.map(([from]) => from), ranges.map(([, to]) => to)],
    )
    return rowCount ?? 0
  }

  async table(name: LedgerTableName): Promise<void> {
    const open = this.#opened()
    await this.#endTable()
    open.table = name
    if (name === 'movements') return
    const returned = name === 'folders' ? `returning ${diaryNames.join(', ')}` : ''
    const { rows } = await this.#client.query(`delete from ${name} where society_id = $1 ${returned}`, [
      open.society,
    ])
    if (name === 'folders') open.diary = rows[0] ?? open.diary
  }

  async rows(lines: Buffer): Promise<void> {
    const open = this.#opened()
    const { table } = open
    if (table === undefined) throw new TypeError('rows() needs table() before it')
    open.copy ??= await CopyIn.begin(this.#client, `copy ${table} (${columnsOf(table)}) from stdin`)
    for (let at = lines.indexOf(lineFeed); at !== -1; at = lines.indexOf(lineFeed, at + 1)) open.lines += 1
    await open.copy.write(lines)
  }

  async commit(diary: Partial<Diary>, change: LedgerChange | null): Promise<void> {
    const open = this.#opened()
    await this.#endTable()
    const { names, parameters } = diaryValues({ ...open.diary, ...diary })
    const set = names.map((name, i) => `${name} = $${i + 2}`).join(', ')
    const { rowCount } = await this.#client.query(
      `update folders set ${set || 'society_id = society_id'} where society_id = $1`,
      [open.society, ...parameters],
    )
    if (rowCount !== 1) throw clientError('NOT-PROVEN', `The folder ${open.society} came without its own row`)
    if (change)
      await this.#client.query(
        `insert into changes (society_id, at, cursor, entries, rows_before, rows_after) values ($1, $2, $3, $4, $5, $6)`,
        [
          ...[open.society, change.at, change.cursor, JSON.stringify(change.entries)],
          ...[change.rows_before, change.rows_after],
        ],
      )
    await this.#client.query('commit')
    this.#open = undefined
    await this.#analyze()
  }

  async rollback(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    await open?.copy?.fail()
    // Where the connection is lost, the database does it by itself.
    if (open) await this.#client.query('rollback').catch(() => {})
  }

  lines(society: string, table: LedgerTableName): AsyncIterable<Buffer> {
    const select = `select ${columnsOf(table)} from ${table} where society_id = ${BigInt(society)} order by ${orderOf(table)}`
    return CopyOut.lines(this.#client, `copy (${select}) to stdout`)
  }

  /** From one folder to the next by the key of each table, and not through all rows. */
  async strays(): Promise<string[]> {
    const ids = [...tableNames, 'changes'].map(
      (table) => `select id from (
        with recursive s(id) as (
          select min(society_id) from ${table}
          union all
          select (select min(t.society_id) from ${table} t where t.society_id > s.id) from s where s.id is not null
        ) select id from s) ${table}`,
    )
    const { rows } = await this.#client.query(
      `select i.id from (${ids.join(' union ')}) i
       where i.id is not null and not exists (
         select from folders f where f.society_id = i.id and f.firm_id is not null) order by i.id`,
    )
    return rows.map(({ id }) => id)
  }

  async remove(society: string): Promise<void> {
    const where = `where society_id = ${BigInt(society)} and not exists (
      select from folders f where f.society_id = ${BigInt(society)} and f.firm_id is not null)`
    // Without parameters these are one message, and so one transaction.
    await this.#client.query(
      [...tableNames, 'changes'].map((table) => `delete from ${table} ${where}`).join(';'),
    )
  }

  async close(): Promise<void> {
    await this.rollback()
    await this.#client.end()
  }

  #opened(): Open {
    if (!this.#open) throw new TypeError('begin() comes first')
    return this.#open
  }

  /** A line that ends COPY early, \., would lose those behind it without a word: rows are counted. */
  async #endTable(): Promise<void> {
    const open = this.#opened()
    const { copy, lines } = open
    if (!copy) return
    open.copy = undefined
    open.lines = 0
    const rows = await copy.end()
    this.#written += rows
    if (rows !== lines)
      throw clientError('NOT-PROVEN', `PostgreSQL took ${rows} rows of ${open.table}, and ${lines} came`)
  }

  async #analyze(): Promise<void> {
    if (this.#written < 2 * this.#analyzed) return
    this.#analyzed = this.#written
    await this.#client.query(`analyze ${tableNames.join(', ')}`)
  }
}

function diaryValues(values: Partial<Diary>): { names: (keyof Diary)[]; parameters: unknown[] } {
  const names = diaryNames.filter((name) => values[name] !== undefined)
  return {
    names,
    parameters: names.map((name) => (name === 'table_digests' ? JSON.stringify(values[name]) : values[name])),
  }
}
