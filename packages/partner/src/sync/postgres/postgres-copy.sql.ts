/** A copy in a schema of a PostgreSQL database. Rows go in and out through COPY, as bytes. Needs the package `pg`. */
import type { LedgerTableName } from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../../client/changes.ts'
import { clientError } from '../../client/errors.ts'
import { countLines } from '../../client/lines.ts'
import {
  type Copy,
  type Diary,
  type LedgerChange,
  layoutVersion,
  notThere,
  type OpenOptions,
  otherLayout,
  refused,
} from '../copy.ts'
import { SqlCopy } from '../sql-copy.sql.ts'
import { diaryNames, keyOf, tableNames } from '../tables.ts'
import { CopyIn, CopyOut } from './copy-stream.ts'
import { columnsOf, createCopy, dropCopy, societySetting } from './schema.sql.ts'

type Client = import('pg').Client

const schemaDefault = 'grandlivre_ledger'
const dependentObjectsStillExist = '2BP01'
/** Names of schemas become part of statements, so only names that need no quotes are accepted. */
const schemaPattern = /^[a-z_][a-z0-9_]{0,62}$/

/**
 * @param to `postgres://user:password@host/database`. `?schema=` names a schema other than grandlivre_ledger
 * @throws {GrandlivreError} COPY-REFUSED if it cannot be opened, holds something else, or has another layout
 */
export async function openPostgres(to: string, options: OpenOptions = {}): Promise<Copy> {
  const { connectionString, schema } = placeOf(to)
  const { host, pathname } = new URL(connectionString)
  const name = `schema ${schema} of ${host}${pathname}`
  const { Client } = await loadPg()
  const client = new Client({ connectionString, application_name: 'grandlivre sync' })
  // Nothing to do here: a lost connection also fails the statement that waits for it.
  client.on('error', () => {})
  await client.connect().catch((cause: Error) => {
    throw refused(
      `The database of ${name} does not answer: ${cause.message || cause}`,
      'Check the address.',
      cause,
    )
  })
  try {
    // The bytes of rows depend on these settings, so they are set here, whatever the role or the database prefers.
    await client.query(`set datestyle to 'ISO, YMD'; set timezone to 'UTC'; set client_encoding to 'UTF8';
      set search_path to "${schema}"`)
    // If this process is killed, its session ends even in the middle of a statement, on systems that can check for it.
    await client.query(`set client_connection_check_interval to '500ms'`).catch(() => {})
    const service = await prepare(client, schema, name, options)
    return new PostgresCopy(client, { name, schema, service }, options.locked)
  } catch (error) {
    await client.end()
    throw error
  }
}

function placeOf(to: string): { connectionString: string; schema: string } {
  if (!URL.canParse(to))
    throw refused('This is no address of a database', 'Write postgres://user@host/database.')
  const url = new URL(to)
  const schema = url.searchParams.get('schema') ?? schemaDefault
  if (!schemaPattern.test(schema))
    throw refused(
      `"${schema}" cannot be the schema of a copy`,
      'Take small letters, digits and underscores, at most 63.',
    )
  url.searchParams.delete('schema')
  return { connectionString: url.href, schema }
}

async function loadPg(): Promise<typeof import('pg')> {
  try {
    const { default: pg } = await import('pg')
    return pg as unknown as typeof import('pg')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw refused('The package pg, which PostgreSQL needs, is not installed', 'Run npm install pg.')
  }
}

/** Creates or checks the tables. @returns the address of the service whose ledgers are copied */
async function prepare(
  client: Client,
  schema: string,
  name: string,
  { isThere = false, again = false }: OpenOptions,
): Promise<string | undefined> {
  await client.query('begin')
  try {
    // With this lock, two commands that begin at the same time make a single copy.
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`grandlivre copy ${schema}`])
    const layout = await layoutOf(client, schema, name)
    if (layout !== layoutVersion) {
      if (layout !== undefined && !again) throw otherLayout(name, '<the same address>')
      if (isThere && !again) throw notThere(name, '<the same address>')
      await client.query(`create schema if not exists "${schema}"`)
      if (layout !== undefined) await client.query(dropCopy).catch(dependentsNamed)
      await client.query(createCopy())
    }
    const { rows } = await client.query('select service from grandlivre_copy')
    await client.query('commit')
    return rows[0].service ?? undefined
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function dependentsNamed(error: Error & { code?: string; detail?: string }): never {
  if (error.code !== dependentObjectsStillExist) throw error
  const which = error.detail?.replaceAll('\n', '; ')
  const message = `The copy cannot be rebuilt because others have made objects on it: ${which}`
  throw refused(message, 'Drop these, rebuild the copy, and create them again.', error)
}

/**
 * The layout of the copy. Layout 1 did not store its number, but has tables that no other program has. @returns
 * undefined if there is no copy yet
 */
async function layoutOf(client: Client, schema: string, name: string): Promise<number | undefined> {
  const { rows } = await client.query(
    `select to_regclass(quote_ident($1) || '.grandlivre_copy') is not null as "isCopy",
       (select count(*) = 3 from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relname in ('sync_state', 'movement_rows', 'entry_lines')) as "isFormer",
       exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1) as "hasTables"`,
    [schema],
  )
  const { isCopy, isFormer, hasTables } = rows[0]
  if (isCopy) return (await client.query('select layout from grandlivre_copy')).rows[0].layout
  if (isFormer) return 1
  if (hasTables)
    throw refused(`${name} holds something else`, 'Choose another one: postgres://...?schema=<name>.')
  return undefined
}

/**
 * How long to wait for a lock. After its process ends, a session may live on until its next check, half a second at
 * most.
 */
const lockWait = '3s'
const lockNotAvailable = '55P03'
/** The planner's statistics are renewed after this number of written rows, and whenever the number has doubled. */
const analyzeFrom = 50_000

/** The ledger of the open transaction. */
interface OpenLedger {
  society: string
  /**
   * The diary before this transaction. It is remembered here, because the row of the folder that holds it may be
   * replaced.
   */
  diary: Partial<Diary>
  table?: LedgerTableName
  copy?: CopyIn | undefined
  /** Number of lines given to `copy`. */
  lines: number
}

class PostgresCopy extends SqlCopy implements Copy {
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

  /** PostgreSQL runs a single message as a transaction. */
  protected write = this.query

  /** The session holds the lock. After the process has ended, the database releases the lock as soon as it notices. */
  protected async lockFirm(firm: string): Promise<void> {
    // The statement has no parameters, so it is one message and one transaction. The lock outlasts it.
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

  async rows(lines: Uint8Array): Promise<void> {
    const open = this.#opened()
    const { table } = open
    if (table === undefined) throw new TypeError('rows() needs table() before it')
    open.copy ??= await CopyIn.begin(this.#client, `copy ${table} (${columnsOf(table)}) from stdin`)
    open.lines += countLines(lines)
    await open.copy.write(lines)
  }

  async commit(diary: Partial<Diary>, change: LedgerChange | null): Promise<void> {
    const open = this.#opened()
    await this.#endTable()
    const [own] = await this.query('select from folders where society_id = $1', [open.society])
    if (!own) throw clientError('NOT-PROVEN', `The folder ${open.society} came without its own row`)
    await this.noteCommit(open.society, { ...open.diary, ...diary }, change)
    await this.query('commit')
    this.#open = undefined
    await this.#analyze()
  }

  async rollback(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    await open?.copy?.fail()
    // If the connection is lost, the database rolls back by itself.
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

  /**
   * Ends the COPY and compares the counts of rows: a line \. would end COPY early, and the lines after it would be lost
   * without an error.
   */
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
