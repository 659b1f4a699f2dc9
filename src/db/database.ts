/**
 * The database of a process, migrated: the embedded one, or the server of DATABASE_URL.
 *
 * For operators with a server of their own (PostgreSQL 16 or newer) there are two ways.
 *
 * One login. DATABASE_URL names a login that owns the database, or may create a schema in it and roles. It migrates
 * at each start; the connections that answer requests then run as the role grandlivre_service, which owns nothing
 * and which row-level security binds. Where roles are made by someone else: `create role grandlivre_service;
 * grant grandlivre_service to <login> with set true`.
 *
 * Two logins. The owner migrates, once per release: `DATABASE_URL=postgres://owner:... npm run cli -- migrate`. The
 * service gets a login that may do nothing but take the role: `create role web login password '...'; grant
 * grandlivre_service to web with set true`. It checks at its start that the version fits. What writes to the ledger
 * on the command line (import, seed, partner, token) then needs the owner's address too.
 */

import pg from 'pg'
import { type Config, limits } from '../config.ts'
import { connectSafely, serviceRole, UnsafeConnection } from './check-connection.ts'
import { startEmbeddedDatabase } from './embedded/embedded.ts'
import { checkServerVersion, checkVersion, migrate } from './migrations/migrate.ts'
import { isConnectionLoss } from './outage.ts'
import { keepAlive, ourSettings, withStartupOptions } from './pool.ts'

/** The addresses of a database. */
export interface DatabaseUrls {
  /** For staff and imports: sees every tenant. */
  ownerUrl: string
  /** For requests: runs as grandlivre_service. */
  serviceUrl: string
}

export interface Database extends DatabaseUrls {
  /** After the pools have ended. */
  close(): Promise<void>
}

/** The server cannot be reached, or accepts no connections at the moment. This is not a mistake and may pass. */
export class DatabaseAway extends Error {
  constructor(name: string, cause: unknown) {
    super(refusalOf(name, cause), { cause })
  }
}

/**
 * @throws {DatabaseAway} where the server of DATABASE_URL cannot be reached
 * @throws {Error} where the database does not start, does not fit the code or is not safe to use, with what to do
 */
export async function openDatabase(config: Pick<Config, 'dataDir' | 'databaseUrl'>): Promise<Database> {
  if (config.databaseUrl !== undefined) return openServer(config.databaseUrl)
  const embedded = await startEmbeddedDatabase({ dataDir: config.dataDir })
  try {
    await migrate(embedded.ownerUrl)
  } catch (error) {
    await embedded.stop()
    throw error
  }
  return { ownerUrl: embedded.ownerUrl, serviceUrl: embedded.serviceUrl, close: () => embedded.stop() }
}

export function urlsOfServer(databaseUrl: string): DatabaseUrls {
  return { ownerUrl: databaseUrl, serviceUrl: asServiceRole(databaseUrl) }
}

/** Row-level security binds the role, not the login. */
export function asServiceRole(url: string): string {
  return withStartupOptions(url, `-c role=${serviceRole}`)
}

/**
 * An address that cannot be reached is not unsafe, nor is a replica to which the role is yet to come: its connections are
 * checked when there are any.
 * @throws {Error} where it is not safe to use, or does not let us in, with what to do
 */
export async function checkExportAddress(exportUrl: string): Promise<void> {
  await checkServiceAddress(exportUrl, 'EXPORT_DATABASE_URL')
    .catch(unlessRoleIsYetToCome)
    .catch((error) => {
      if (!(error instanceof DatabaseAway)) throw error
    })
}

/**
 * Connects once and checks what the connection stands on, as requests will find it.
 * @param name of the setting with the address
 * @throws {DatabaseAway}
 * @throws {Error} where it is not safe to use, or does not let us in, with what to do
 */
async function checkServiceAddress(serviceUrl: string, name: string): Promise<void> {
  await (await connectTo(serviceUrl, name, 'service')).end()
}

async function openServer(databaseUrl: string): Promise<Database> {
  const { ownerUrl, serviceUrl } = urlsOfServer(databaseUrl)
  try {
    // Before anything is locked or changed.
    await checkServiceAddress(serviceUrl, 'DATABASE_URL').catch(unlessRoleIsYetToCome)
    const client = await connectTo(ownerUrl, 'DATABASE_URL', 'owner')
    try {
      await checkServerVersion(client)
      const mayMigrate = await mayMigrateHere(client)
      if (mayMigrate) await migrate(ownerUrl)
      await ensureMembership(client)
      if (!mayMigrate) await checkVersion(serviceUrl)
    } finally {
      await client.end()
    }
    await checkServiceAddress(serviceUrl, 'DATABASE_URL')
  } catch (error) {
    // It may go away, or have no connection left, between any two of these.
    throw isConnectionLoss(error) ? new DatabaseAway('DATABASE_URL', error) : error
  }
  return { ownerUrl, serviceUrl, close: async () => {} }
}

/** SQLSTATEs of a connection that asks for a role that is not there, or that its login may not take. */
const roleRefused = ['22023', '42501']

/** Migrations make the role, and grant it. */
function unlessRoleIsYetToCome(error: Error): void {
  const { code } = (error.cause ?? {}) as { code?: string }
  if (!roleRefused.includes(code ?? '')) throw error
}

async function connectTo(url: string, name: string, actor: 'owner' | 'service'): Promise<pg.Client> {
  try {
    const client = new pg.Client({
      connectionString: withStartupOptions(url, ourSettings),
      application_name: 'grandlivre check',
      connectionTimeoutMillis: limits.databaseConnectMs,
      // It asks for single rows alone.
      query_timeout: limits.databaseConnectMs,
      ...keepAlive,
    })
    client.on('error', () => {})
    return await connectSafely(client, actor)
  } catch (error) {
    if (error instanceof UnsafeConnection) throw new UnsafeConnection(error.causes, name)
    throw isConnectionLoss(error)
      ? new DatabaseAway(name, error)
      : new Error(refusalOf(name, error), { cause: error })
  }
}

function refusalOf(name: string, error: unknown): string {
  // Where a name has several addresses, Node gives the reason for each, and no message of its own.
  const reasons = error instanceof AggregateError ? error.errors : [error]
  return `The server of ${name} does not let us in: ${reasons.map((reason: Error) => reason.message).join('; ')}`
}

/** True for the owner of the schema, and where there is none for a login that may create it. */
async function mayMigrateHere(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    `select coalesce(
       (select pg_has_role(nspowner, 'USAGE') from pg_namespace where nspname = 'grandlivre'),
       has_database_privilege(current_database(), 'CREATE')
     ) as may`,
  )
  return rows[0]?.may === true
}

/**
 * Since PostgreSQL 16 the login that created a role may grant it, but not act as it until it grants it to itself.
 * @throws {Error} where this login may do neither
 */
async function ensureMembership(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ found: boolean; may_act: boolean; may_grant: boolean }>(
    `select count(*) = 1 as found,
            coalesce(bool_or(pg_has_role(oid, 'SET')), false) as may_act,
            coalesce(bool_or(pg_has_role(oid, 'USAGE WITH ADMIN OPTION')), false) as may_grant
     from pg_roles where rolname = 'grandlivre_service'`,
  )
  const [role] = rows
  if (role?.may_act) return
  if (role?.may_grant) {
    await client.query('grant grandlivre_service to current_user with set true')
    return
  }
  throw new Error(
    role?.found
      ? 'The login of DATABASE_URL may not act as grandlivre_service. As an administrator of the server: ' +
          'grant grandlivre_service to <login> with set true'
      : 'The database is empty and the login of DATABASE_URL may not create its schema. Run once with the address of ' +
          'the owner: DATABASE_URL=postgres://owner:... npm run cli -- migrate',
  )
}
