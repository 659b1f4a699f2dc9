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

/** A database of its own, migrated and without tenants, in some 50 ms. With `empty` not even migrated. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const server = inject('databaseServer')
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(server.ownerUrl, async (client) => {
    await client.query(`create database ${name} template ${options.empty ? 'template1' : templateName}`)
  })
  return {
    ownerUrl: withDatabase(server.ownerUrl, name),
    serviceUrl: withDatabase(server.serviceUrl, name),
    drop: () =>
      onServer(server.ownerUrl, async (client) => {
        const left = await connectionsLeft(client, name)
        await client.query(`drop database ${name} with (force)`)
        if (left.length > 0) throw new Error(`Connections were left open: ${left.join(', ')}`)
      }),
  }
}

async function connectionsLeft(client: pg.Client, name: string): Promise<string[]> {
  const deadline = Date.now() + closeTimeoutMs
  for (;;) {
    const { rows } = await client.query<{ connection: string }>(
      `select format('%s (%s: %s)', application_name, state, left(query, 60)) as connection
       from pg_stat_activity where datname = $1 and backend_type = 'client backend'`,
      [name],
    )
    if (rows.length === 0 || Date.now() > deadline) return rows.map((row) => row.connection)
    await delay(20)
  }
}

async function onServer(url: string, run: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await run(client)
  } finally {
    await client.end()
  }
}
