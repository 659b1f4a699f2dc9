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
 *
 * If DIRECT_DATABASE_URL is set, both ways apply to its login, and DATABASE_URL may lead through a pooler. Only
 * requests and exports use the pooler. They need a login of their own, whose settings make its sessions safe
 * (check-connection.ts).
 */

import { randomInt } from 'node:crypto'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { type Address, asAddress } from './address.ts'
import { type Actor, connectSafely, serviceRole, UnsafeConnection } from './check-connection.ts'
import { startEmbeddedDatabase } from './embedded/embedded.ts'
import { checkVersion, type MigrateOptions, migrate, migrateThrough } from './migrations/migrate.ts'
import { DatabaseAway, isConnectionLoss, isPoolerRefusal, refusalOf } from './outage.ts'
import { noLimit, singleConnection, withStartupOptions } from './pool.ts'
import { lookUp, queryRow, queryValue } from './statement.ts'

/** The addresses of a database. */
export interface DatabaseUrls {
  /** For staff and imports: sees every tenant. */
  ownerUrl: string
  /** For requests and exports: runs as grandlivre_service, maybe through a pooler. */
  service: Address
  /** Runs as grandlivre_service on the server itself: for locks, notifications, the queue, sweeping and deliveries. */
  directUrl: string
}

export interface Database extends DatabaseUrls {
  /** Call after the pools have ended. */
  close(): Promise<void>
}

/** The choices of the process that opens a database. */
export type Opening = Pick<MigrateOptions, 'check' | 'onStep' | 'migrates'>

type Settings = Pick<Config, 'dataDir' | 'databaseUrl'> & Partial<Pick<Config, 'directDatabaseUrl'>>

/**
 * Opens the database for staff, who need neither the pooler nor its login.
 * @throws {DatabaseAway} if the server cannot be reached
 * @throws {Error} if the database does not start, does not fit the code or is not safe to use, with the remedy
 */
export async function openDatabase(config: Settings, opening: Opening = {}): Promise<Database> {
  const urls = urlsOfServer(config)
  if (urls) return openServer(urls, settingOf(config), async () => {}, opening)
  const embedded = await startEmbeddedDatabase({ dataDir: config.dataDir, onStep: opening.onStep })
  try {
    await migrate(embedded.ownerUrl, opening)
  } catch (error) {
    await embedded.stop()
    throw error
  }
  const { ownerUrl, serviceUrl } = embedded
  return { ownerUrl, service: asAddress(serviceUrl), directUrl: serviceUrl, close: () => embedded.stop() }
}

/**
 * Opens the database for the service: also checks the address that requests use.
 * @throws {Error} like `openDatabase`
 */
export async function openDatabaseOfService(config: Settings, opening: Opening = {}): Promise<Database> {
  const urls = urlsOfServer(config)
  if (!urls?.service.isPooled) return openDatabase(config, opening)
  return openServer(urls, settingOf(config), () => checkPooledAddress(urls), opening)
}

/** The addresses of the operator's server; undefined for the embedded database. */
export function urlsOfServer({
  databaseUrl,
  directDatabaseUrl,
}: Omit<Settings, 'dataDir'>): DatabaseUrls | undefined {
  if (databaseUrl === undefined) return undefined
  const ownerUrl = directDatabaseUrl ?? databaseUrl
  const directUrl = asServiceRole(ownerUrl)
  const isPooled = directDatabaseUrl !== undefined
  return { ownerUrl, service: isPooled ? { url: databaseUrl, isPooled } : asAddress(directUrl), directUrl }
}

/** The replica that exports read; undefined if there is none. It needs the same kind of login as the main database. */
export function replicaAddress(
  { exportDatabaseUrl }: Pick<Config, 'exportDatabaseUrl'>,
  service: Address,
): Address | undefined {
  if (exportDatabaseUrl === undefined) return undefined
  return service.isPooled
    ? { url: exportDatabaseUrl, isPooled: true }
    : asAddress(asServiceRole(exportDatabaseUrl))
}

/** The address, to connect as the service role: row-level security binds the role, not the login. */
export function asServiceRole(url: string): string {
  return withStartupOptions(url, `-c role=${serviceRole}`)
}

/** Name of the setting that has the address of the server itself. */
function settingOf({ directDatabaseUrl }: Omit<Settings, 'dataDir'>): string {
  return directDatabaseUrl === undefined ? 'DATABASE_URL' : 'DIRECT_DATABASE_URL'
}

/**
 * Checks the address of EXPORT_DATABASE_URL. Accepts a server that cannot be reached, and a replica that does not have
 * the role yet: their connections are checked when they are opened.
 * @throws {Error} if the server is not safe to use or refuses the login, with the remedy
 */
export async function checkExportAddress(address: Address): Promise<void> {
  await checkServiceAddress(address, 'EXPORT_DATABASE_URL')
    .catch(unlessRoleIsYetToCome)
    .catch((error) => {
      if (!(error instanceof DatabaseAway)) throw error
    })
}

/**
 * Connects once and checks the connection like one for requests.
 * @param name setting that contains the address
 * @throws {DatabaseAway} if the server cannot be reached
 * @throws {Error} if the server is not safe to use or refuses the login, with the remedy
 */
async function checkServiceAddress(address: Address, name: string): Promise<void> {
  await (await connectTo(address, name, 'service')).end()
}

/**
 * Checks the address of requests, and that it leads to the database of DIRECT_DATABASE_URL. Comparing identifiers of
 * the servers is not enough: a promoted standby has the same ones as the server that it left. So a random lock is taken
 * through one address and looked for through the other. The lock ends with its connection.
 */
async function checkPooledAddress({ service, directUrl }: DatabaseUrls): Promise<void> {
  const direct = await connectTo(asAddress(directUrl), 'DIRECT_DATABASE_URL', 'service')
  try {
    const pooled = await connectTo(service, 'DATABASE_URL', 'service')
    try {
      const keys = [randomInt(2 ** 31), randomInt(2 ** 31)]
      await direct.query('select pg_advisory_lock($1, $2)', keys)
      const isSeen = `select exists (
        select from pg_locks where locktype = 'advisory' and classid = $1 and objid = $2
          and database = (select oid from pg_database where datname = current_database()))`
      if (await queryValue<boolean>(pooled, isSeen, keys)) return
    } finally {
      await pooled.end()
    }
  } finally {
    await direct.end()
  }
  throw new Error(
    'DATABASE_URL and DIRECT_DATABASE_URL lead to different databases: a lock that was taken through the one is not seen ' +
      'through the other. Give both the same server and the same database.',
  )
}

async function openServer(
  urls: DatabaseUrls,
  setting: string,
  checkRequests: () => Promise<void>,
  opening: Opening,
): Promise<Database> {
  const { ownerUrl, directUrl } = urls
  const checkDirect = () => checkServiceAddress(asAddress(directUrl), setting)
  try {
    // These checks come before anything is locked or changed.
    const isChecked = await checkDirect().then(() => true, unlessRoleIsYetToCome)
    if (isChecked) await checkRequests()
    let applied: number[] = []
    const client = await connectTo(asAddress(ownerUrl), setting, 'owner', 'grandlivre migrate', noLimit)
    try {
      const mayMigrate = (await mayMigrateHere(client, setting)) && opening.migrates !== false
      if (mayMigrate) applied = await migrateThrough(client, opening)
      await ensureMembership(client, setting)
      if (!mayMigrate) await checkVersion(directUrl, { setting, ...opening })
    } finally {
      await client.end()
    }
    if (!isChecked || applied.length > 0) await checkDirect()
    if (!isChecked) await checkRequests()
  } catch (error) {
    // The server may go away, or run out of connections, between any two of these steps.
    throw isConnectionLoss(error) ? new DatabaseAway(setting, error) : error
  }
  return { ...urls, close: async () => {} }
}

/** SQLSTATEs of a connection whose role does not exist, or whose login may not take the role. */
const roleRefused = ['22023', '42501']

/** False if the role is only missing so far: migrations create it and grant it. Rethrows any other error. */
function unlessRoleIsYetToCome(error: Error): false {
  const { code } = (error.cause ?? {}) as { code?: string }
  if (!roleRefused.includes(code ?? '')) throw error
  return false
}

async function connectTo(
  address: Address,
  name: string,
  actor: Actor,
  applicationName = 'grandlivre check',
  answerMs?: number,
): Promise<pg.Client> {
  try {
    const client = singleConnection(address, applicationName, answerMs)
    return await connectSafely(client, { actor, isPooled: address.isPooled })
  } catch (error) {
    if (error instanceof UnsafeConnection) throw new UnsafeConnection(error.causes, name)
    throw isConnectionLoss(error) && !isPoolerRefusal(error)
      ? new DatabaseAway(name, error)
      : new Error(refusalOf(name, error), { cause: error })
  }
}

/** Since PostgreSQL 16, `set role` needs a grant of its own. The statements below use its syntax. */
const serverVersionMin = 16

/**
 * Whether the login may migrate: it owns the schema or, if there is no schema, it may create it.
 * @throws {Error} if the server is too old, or accepts no changes
 */
async function mayMigrateHere(client: pg.Client, setting: string): Promise<boolean> {
  const server = (await queryRow<{ version: string; isStandby: boolean; mayMigrate: boolean }>(
    client,
    lookUp({
      text: `select current_setting('server_version') as version, pg_is_in_recovery() as "isStandby",
        coalesce(
          (select pg_has_role(nspowner, 'USAGE') from pg_namespace where nspname = 'grandlivre'),
          has_database_privilege(current_database(), 'CREATE')) as "mayMigrate"`,
    }),
  ))!
  if (Number.parseInt(server.version, 10) < serverVersionMin)
    throw new Error(
      `The server of ${setting} is PostgreSQL ${server.version}; version ${serverVersionMin} or newer is needed.`,
    )
  if (server.isStandby)
    throw new Error(
      `${setting} leads to a standby, and nothing was changed. If the standby takes the place of its primary, promote it ` +
        `(pg_ctl promote) and try again. Otherwise set ${setting} to the address of the primary.`,
    )
  return server.mayMigrate
}

/**
 * Makes sure that this login may act as the service role. Since PostgreSQL 16 the login that created a role may grant
 * it, but must grant it to itself before acting as it.
 * @throws {Error} if this login may neither act as the role nor grant it to itself
 */
async function ensureMembership(client: pg.Client, setting: string): Promise<void> {
  const role = await queryRow<{ found: boolean; may_act: boolean; may_grant: boolean }>(
    client,
    lookUp({
      text: `select count(*) = 1 as found,
          coalesce(bool_or(pg_has_role(oid, 'SET')), false) as may_act,
          coalesce(bool_or(pg_has_role(oid, 'USAGE WITH ADMIN OPTION')), false) as may_grant
        from pg_roles where rolname = 'grandlivre_service'`,
    }),
  )
  if (role?.may_act) return
  if (role?.may_grant) {
    await client.query(lookUp({ text: 'grant grandlivre_service to current_user with set true' }))
    return
  }
  throw new Error(
    role?.found
      ? `The login of ${setting} may not act as grandlivre_service. As an administrator of the server: ` +
          'grant grandlivre_service to <login> with set true'
      : `The database is empty and the login of ${setting} may not create its schema. Run once with the address of ` +
          `the owner: ${setting}=postgres://owner:... npm run cli -- migrate`,
  )
}
