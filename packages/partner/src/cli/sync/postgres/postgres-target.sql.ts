/** A copy in a schema of a PostgreSQL database. Needs the package `pg`. */
import { createHash } from 'node:crypto'
import { Failure } from '../../../../../terminal/src/command-errors.ts'
import { bufferOf, movementLines } from '../lines/entry-lines.ts'
import { prefixes, tables } from '../targets/tables.ts'
import type { Area, Change, EntryRange, Part, State, Target } from '../targets/target.ts'
import { AreaOfPostgres } from './area.sql.ts'
import { createIndexes, createTables, createViews } from './schema.sql.ts'

type Client = import('pg').Client

const schemaDefault = 'grandlivre_ledger'
/** Names are put into statements, so only plain ones are taken. */
const schemaPattern = /^[a-z_][a-z0-9_]{0,62}$/
/** Rows of one answer while digests are computed. */
const fetchRows = 1_000

export class PostgresTarget implements Target {
  readonly name: string
  readonly #client: Client

  private constructor(name: string, client: Client) {
    this.name = name
    this.#client = client
  }

  /** @throws {Failure} if another sync writes the schema, it is none of ours, or `pg` is missing */
  static async open(address: string): Promise<PostgresTarget> {
    const { connectionString, schema } = placeOf(address)
    const pg = await loadPg()
    const client = new pg.Client({ connectionString, application_name: 'grandlivre sync' })
    // A lost connection also fails the statement that waits for it.
    client.on('error', () => {})
    const name = `schema ${schema} of ${new URL(connectionString).host}${new URL(connectionString).pathname}`
    await client.connect().catch((cause: Error) => {
      throw new Failure(`The database does not answer: ${cause.message}`, 'Check the address in --to.', {
        cause,
      })
    })
    try {
      await prepare(client, schema, name)
      return new PostgresTarget(name, client)
    } catch (error) {
      await client.end()
      throw error
    }
  }

  async state(area: Area): Promise<State | undefined> {
    const { rows } = await this.#client.query('select state from sync_state where area = $1', [area])
    return rows.length === 0 ? undefined : JSON.parse(rows[0].state)
  }

  async change<T>(area: Area, write: (change: Change) => Promise<T>): Promise<T> {
    return this.#transaction(async () => {
      if (area === 'next' && (await this.state('next')) === undefined)
        await this.#client.query(createTables(prefixes.next))
      return write(new AreaOfPostgres(this.#client, area))
    })
  }

  async clearNext(): Promise<void> {
    await this.#transaction(async () => {
      for (const { name } of tables) await this.#client.query(`drop table if exists next_${name}`)
      await this.#client.query(`delete from sync_state where area = 'next'`)
    })
  }

  /** A copy that is there keeps its tables, and so views, rights and triggers that others have made for them. */
  async promote(): Promise<void> {
    const isFirst = (await this.state('copy')) === undefined
    await this.#transaction(async () => {
      for (const { name } of tables)
        await this.#client.query(
          isFirst
            ? `alter table next_${name} rename to ${name}`
            : `delete from ${name}; insert into ${name} select * from next_${name}; drop table next_${name}`,
        )
      if (isFirst) await this.#client.query(`${createIndexes} ${createViews}`)
      await this.#client.query(
        `delete from sync_state where area = 'copy'; update sync_state set area = 'copy' where area = 'next'`,
      )
    })
    await this.#client.query(`analyze ${tables.map(({ name }) => name).join(', ')}`)
  }

  async digests({ exercice, draft }: Part, ranges: readonly EntryRange[]): Promise<string[]> {
    const digests: string[] = []
    for (const [from, to] of ranges) {
      const hash = createHash('sha256')
      for (let after = BigInt(from) - 1n; ; ) {
        const { rows } = await this.#client.query(
          `select l.entry_id, l.line from entries e join entry_lines l on l.entry_id = e.entry_id
           where e.entry_id > $1 and e.entry_id <= $2 and e.exercice_id = $3 and e.draft = $4
           order by e.entry_id limit ${fetchRows}`,
          [String(after), to, exercice, draft],
        )
        for (const { line } of rows)
          for (const movement of movementLines(bufferOf(line))) hash.update(movement)
        if (rows.length < fetchRows) break
        after = BigInt(rows.at(-1).entry_id)
      }
      digests.push(hash.digest('hex'))
    }
    return digests
  }

  async close(): Promise<void> {
    await this.#client.end()
  }

  async #transaction<T>(write: () => Promise<T>): Promise<T> {
    await this.#client.query('begin')
    try {
      const result = await write()
      await this.#client.query('commit')
      return result
    } catch (error) {
      // Where the connection is lost, the database does it by itself.
      await this.#client.query('rollback').catch(() => {})
      throw error
    }
  }
}

function placeOf(address: string): { connectionString: string; schema: string } {
  let url: URL
  try {
    url = new URL(address)
  } catch {
    throw new Failure('--to is no address of a database', 'Write postgres://user:password@host/database.')
  }
  const schema = url.searchParams.get('schema') ?? schemaDefault
  if (!schemaPattern.test(schema))
    throw new Failure(
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
    throw new Failure('The package pg, which PostgreSQL needs, is not installed', 'Run npm install pg.')
  }
}

/** The lock is the session's: it goes with the process. */
async function prepare(client: Client, schema: string, name: string): Promise<void> {
  const { rows } = await client.query(
    `select pg_try_advisory_lock(hashtextextended($1, 0)) as "isOurs",
       exists (select from pg_namespace where nspname = $2) as "isThere",
       to_regclass($2 || '.sync_state') is not null as "isCopy"`,
    [`grandlivre sync ${schema}`, schema],
  )
  const { isOurs, isThere, isCopy } = rows[0]
  if (!isOurs) throw new Failure(`Another sync writes the ${name}`, 'Wait for its end.')
  if (!isCopy) {
    if (isThere && (await hasTables(client, schema)))
      throw new Failure(
        `The ${name} holds something else`,
        'Choose another one: postgres://...?schema=<name>.',
      )
    await client.query(`create schema if not exists ${schema}`)
    await client.query(`create table ${schema}.sync_state (area text primary key, state text not null)`)
  }
  await client.query(`set search_path to ${schema}`)
  await client.query(`set timezone to 'UTC'`)
}

async function hasTables(client: Client, schema: string): Promise<boolean> {
  const { rows } = await client.query(
    'select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1) as "isSo"',
    [schema],
  )
  return rows[0].isSo
}
