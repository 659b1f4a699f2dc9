/**
 * The database of a process, migrated: the embedded one, or the server of DATABASE_URL.
 *
 * For operators with a server of their own (PostgreSQL 16 or newer) there are two ways.
 *
 * One login. DATABASE_URL names a login that owns the database, or may create roles and a schema in it. It migrates at
 * each start. Connections for requests then run as the role grandlivre_service, which owns nothing and which row-level
 * security binds. If someone else creates the roles: `create role grandlivre_service; grant grandlivre_service to
 * <login> with set true`.
 *
 * Two logins. The owner migrates, once per release: `DATABASE_URL=postgres://owner:... npm run cli -- migrate`. The
 * login of the service may only take the role: `create role web login password '...'; grant grandlivre_service to web
 * with set true`. The service checks at its start that the version fits. Commands that write (import, seed, partner,
 * token) then also need the owner's address.
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
  /** Call after the pools have ended. */
  close(): Promise<void>
}

/**
 * The server cannot be reached or accepts no connections at the moment. This is not an error of configuration, and may
 * pass.
 */
export class DatabaseAway extends Error {
  constructor(name: string, cause: unknown) {
    super(refusalOf(name, cause), { cause })
  }
}

/**
 * @throws {DatabaseAway} if the server of DATABASE_URL cannot be reached
 * @throws {Error} if the database does not start, does not fit the code or is not safe to use, with the remedy
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
 * Accepts a server that cannot be reached, and a replica that does not have the role yet: their connections are checked
 * when they are opened.
 * @throws {Error} if the server is not safe to use or refuses the login, with the remedy
 */
export async function checkExportAddress(exportUrl: string): Promise<void> {
  await checkServiceAddress(exportUrl, 'EXPORT_DATABASE_URL')
    .catch(unlessRoleIsYetToCome)
    .catch((error) => {
      if (!(error instanceof DatabaseAway)) throw error
    })
}

/**
 * Connects once and checks the connection as for requests.
 * @param name setting with the address
 * @throws {DatabaseAway}
 * @throws {Error} if the server is not safe to use or refuses the login, with the remedy
 */
async function checkServiceAddress(serviceUrl: string, name: string): Promise<void> {
  await (await connectTo(serviceUrl, name, 'service')).end()
}

async function openServer(databaseUrl: string): Promise<Database> {
  const { ownerUrl, serviceUrl } = urlsOfServer(databaseUrl)
  try {
    // Checked before anything is locked or changed.
    const isChecked = await checkServiceAddress(serviceUrl, 'DATABASE_URL').then(
      () => true,
      unlessRoleIsYetToCome,
    )
    let applied: number[] = []
    const client = await connectTo(ownerUrl, 'DATABASE_URL', 'owner')
    try {
      await checkServerVersion(client)
      const mayMigrate = await mayMigrateHere(client)
      if (mayMigrate) applied = await migrate(ownerUrl)
      await ensureMembership(client)
      if (!mayMigrate) await checkVersion(serviceUrl)
    } finally {
      await client.end()
    }
    if (!isChecked || applied.length > 0) await checkServiceAddress(serviceUrl, 'DATABASE_URL')
  } catch (error) {
    // The server may go away, or run out of connections, between any two of these.
    throw isConnectionLoss(error) ? new DatabaseAway('DATABASE_URL', error) : error
  }
  return { ownerUrl, serviceUrl, close: async () => {} }
}

/** SQLSTATEs if the role of a connection does not exist, or its login may not take it. */
const roleRefused = ['22023', '42501']

/** Migrations create the role and grant it. */
function unlessRoleIsYetToCome(error: Error): false {
  const { code } = (error.cause ?? {}) as { code?: string }
  if (!roleRefused.includes(code ?? '')) throw error
  return false
}

async function connectTo(url: string, name: string, actor: 'owner' | 'service'): Promise<pg.Client> {
  try {
    const client = new pg.Client({
      connectionString: withStartupOptions(url, ourSettings),
      application_name: 'grandlivre check',
      connectionTimeoutMillis: limits.databaseConnectMs,
      // It reads single rows only.
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
  // If a name has several addresses, Node reports the reason for each, without a message of its own.
  const reasons = error instanceof AggregateError ? error.errors : [error]
  return `The server of ${name} refuses the connection: ${reasons.map((reason: Error) => reason.message).join('; ')}`
}

/** True for the owner of the schema, or, if there is no schema, for a login that may create it. */
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
 * Since PostgreSQL 16 the login that created a role may grant it, but must grant it to itself before acting as it.
 * @throws {Error} if this login may do neither
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
