/** A copy in PostgreSQL. Rows go in and out by COPY, as bytes. */
import type { LedgerTableName } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import type { Copy, Diary, LedgerChange } from '../copy.ts'
import { SqlCopy } from '../sql-copy.sql.ts'
import { diaryNames, keyOf, tableNames } from '../tables.ts'
import { CopyIn, CopyOut } from './copy-stream.ts'
import { columnsOf, societySetting } from './schema.sql.ts'

type Client = import('pg').Client

const lineFeed = 10
/** A session ends a moment after its process, at most the half second after which it looks. */
const lockWait = '3s'
const lockNotAvailable = '55P03'
/** New rows after which, once the copy has also doubled, the statistics of the planner are out of date. */
const analyzeFrom = 50_000

/** The ledger whose transaction is open. */
interface OpenLedger {
  society: string
  /** What was noted before; the row of the folder may be replaced. */
  diary: Partial<Diary>
  table?: LedgerTableName
  copy?: CopyIn | undefined
  /** Lines given to `copy`. */
  lines: number
}

export class PostgresCopy extends SqlCopy implements Copy {
  readonly #client: Client
  readonly #schema: string
  #open: OpenLedger | undefined
  #analyzed = analyzeFrom / 2
  #written = 0

  constructor(
    client: Client,
    { name, schema, service }: { name: string; schema: string; service: unknown },
    locked: Set<string> | undefined,
  ) {
    super(name, service, locked, 'select i::bigint as id from json_array_elements_text($1) i')
    this.#client = client
    this.#schema = schema
  }

  protected async query(sql: string, values?: readonly unknown[]) {
    return (await this.#client.query(sql, values as unknown[])).rows
  }

  /** One message is one transaction. */
  protected write = this.query

  /** The lock is the session's: it goes with the process, once the database has found that it is gone. */
  protected async lockFirm(firm: string): Promise<void> {
    // No parameters, and so one message and one transaction, which the lock outlasts.
    const key = `grandlivre copy ${this.#schema} firm ${BigInt(firm)}`
    await this.query(
      `set local lock_timeout to '${lockWait}'; select pg_advisory_lock(hashtextextended('${key}', 0))`,
    ).catch((error: Error & { code?: string }) => {
      if (error.code !== lockNotAvailable) throw error
      throw clientError('COPY-LOCKED', `Another sync writes firm ${firm} in ${this.name}`)
    })
  }

  async begin(society: string): Promise<void> {
    await this.query(`begin; set local ${societySetting} to '${BigInt(society)}'`)
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
    const [replaced] = await this.query(`delete from ${name} where society_id = $1 ${returned}`, [
      open.society,
    ])
    if (name === 'folders') open.diary = replaced ?? open.diary
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
    const [own] = await this.query('select from folders where society_id = $1', [open.society])
    if (!own) throw clientError('NOT-PROVEN', `The folder ${open.society} came without its own row`)
    await this.query(...this.noting([open.society], { ...open.diary, ...diary }))
    await this.noteChange(open.society, change)
    await this.query('commit')
    this.#open = undefined
    await this.#analyze()
  }

  async rollback(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    await open?.copy?.fail()
    // Where the connection is lost, the database does it by itself.
    if (open) await this.query('rollback').catch(() => {})
  }

  lines(society: string, table: LedgerTableName): AsyncIterable<Buffer> {
    const select = `select ${columnsOf(table)} from ${table} where society_id = ${BigInt(society)} order by ${keyOf(table)}`
    return CopyOut.lines(this.#client, `copy (${select}) to stdout`)
  }

  async close(): Promise<void> {
    await this.rollback()
    await this.#client.end()
  }

  #opened(): OpenLedger {
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
    await this.query(`analyze ${tableNames.join(', ')}`)
  }
}
