import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { templateName, withDatabase } from './server.ts'

export interface TestDatabase {
  /** The superuser. */
  ownerUrl: string
  /** grandlivre_service. */
  serviceUrl: string
  /**
   * Removes the database.
   * @throws {Error} naming the connections that were not closed
   */
  drop(): Promise<void>
}

/** PostgreSQL ends a session a moment after its client has closed the connection; on a busy machine, seconds. */
const closeTimeoutMs = 30_000

/**
 * Creates a database in some 50 ms. Its files are copied as such: through the log, which is PostgreSQL's default, creating
 * and dropping one take 65 instead of 35 ms of processor time.
 * @param options.template by default migrated and without tenants; `template1` is not even migrated
 */
export async function createTestDatabase({ template = templateName } = {}): Promise<TestDatabase> {
  const server = inject('databaseServer')
  const name = `test_${randomBytes(6).toString('hex')}`
  ownersPool ??= new pg.Pool({ connectionString: server.ownerUrl, max: 2, allowExitOnIdle: true }).on(
    'error',
    () => {},
  )
  const owners = ownersPool
  await owners.query(`create database ${name} template ${template} strategy file_copy`)
  return {
    ownerUrl: withDatabase(server.ownerUrl, name),
    serviceUrl: withDatabase(server.serviceUrl, name),
    drop: async () => {
      const left = await connectionsLeft(owners, name)
      await owners.query(`drop database ${name} with (force)`)
      if (left.length > 0) throw new Error(`Connections were left open: ${left.join(', ')}`)
    },
  }
}

/** Creates and drops the databases of all tests of this process; a connection for each would cost as much as a database. */
let ownersPool: pg.Pool | undefined

/** A ledger that many tests start with. */
export interface Ledger<Facts> {
  /** Unique: the first test that asks for it fills it, and all others get copies. */
  name: string
  /** @returns the facts that tests need about it, as JSON */
  fill(database: { ownerUrl: string; serviceUrl: string }): Promise<Facts>
}

/** Creates a database with a ledger in it, in some 100 ms once the ledger has been filled. */
export async function copyLedger<Facts>({
  name,
  fill,
}: Ledger<Facts>): Promise<{ database: TestDatabase; facts: Facts }> {
  const server = inject('databaseServer')
  const template = `ledger_${name}`
  const facts = await onServer(server.ownerUrl, async (client) => {
    // One process fills it; the others wait.
    await client.query('select pg_advisory_lock(hashtext($1))', [template])
    const found = await client.query<{ facts: string | null }>(
      `select shobj_description(oid, 'pg_database') as facts from pg_database where datname = $1`,
      [template],
    )
    if (found.rows[0]?.facts) return JSON.parse(found.rows[0].facts) as Facts
    // Left by a fill that failed.
    await client.query(`drop database if exists ${template} with (force)`)
    await client.query(`create database ${template} template ${templateName} strategy file_copy`)
    const filled = await fill({
      ownerUrl: withDatabase(server.ownerUrl, template),
      serviceUrl: withDatabase(server.serviceUrl, template),
    })
    await client.query(`comment on database ${template} is ${pg.escapeLiteral(JSON.stringify(filled))}`)
    return filled
  })
  return { database: await createTestDatabase({ template }), facts }
}

async function connectionsLeft(owners: pg.Pool, name: string): Promise<string[]> {
  const deadline = Date.now() + closeTimeoutMs
  for (;;) {
    const { rows } = await owners.query<{ connection: string }>(
      `select format('%s (%s: %s)', application_name, state, left(query, 60)) as connection
       from pg_stat_activity where datname = $1 and backend_type = 'client backend'`,
      [name],
    )
    if (rows.length === 0 || Date.now() > deadline) return rows.map((row) => row.connection)
    await delay(20)
  }
}

/** Opens a connection on which tables need no name of their schema. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=grandlivre' })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Runs a statement on a connection of its own. */
// biome-ignore lint/suspicious/noExplicitAny: rows of any shape
export function ask(url: string, statement: string, values: unknown[] = []): Promise<any[]> {
  return onServer(url, async (client) => (await client.query(statement, values)).rows)
}

async function onServer<Result>(url: string, run: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = await connect(url)
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
