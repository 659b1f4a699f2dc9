/**
 * A run in which every service reaches its database through PgBouncer in transaction mode (`npm run long -- pooler`), with
 * DIRECT_DATABASE_URL beside it. Each service has a PgBouncer of its own, so that a test may cut or stop its
 * server, or use up its sessions. When the service stops, the shared sessions hold no lock, and it has opened at most
 * eight sessions of its own.
 */
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { startPgBouncer } from '../servers/pgbouncer.ts'
import { until } from '../until.ts'

let isPooledRun = process.env['TEST_POOLER'] === '1'

/** Call it in a test file about the address itself: its services then have the address that the test gives them. */
export function withoutPooler(): void {
  const before = isPooledRun
  beforeAll(() => {
    isPooledRun = false
  })
  afterAll(() => {
    isPooledRun = before
  })
}

/** How many connections a process may have to the server itself. */
const directMax = 8

export const pooledLogin = { name: 'web', password: 'web-password' }

/** Programs of a process, by the names of their connections, that need the server itself. */
const directNames = ['request slots', 'notifications', 'dispatcher', 'direct', 'queue']

export interface PooledAddress {
  /** The address for DATABASE_URL and EXPORT_DATABASE_URL. */
  url: string
  end(): Promise<void>
}

/** A service of this process. */
interface Running {
  /** The database that the service uses directly; undefined if the database was away when the service started. */
  database: string | undefined
}
const running = new Set<Running>()

/**
 * How long sessions that a process has left may take to end. A server that hung, or a proxy that was frozen, hears of it
 * only afterwards, when their successors are there already.
 */
const endingMs = 10_000

/**
 * Starts a pooler in front of a server, and creates its login there.
 * @param url address of a superuser
 */
export async function openPooledAddress(url: string): Promise<PooledAddress> {
  // If the server is away or refuses, the service has to report it.
  await ensurePooledLogin(url).catch(() => {})
  const asLogin = withLogin(url)
  const bouncer = await startPgBouncer([asLogin], { poolMode: 'transaction', dropsOptions: false })
  return { url: bouncer.through(asLogin), end: () => bouncer.stop() }
}

/** The address with the login of the pooler. */
export function withLogin(url: string): string {
  return Object.assign(new URL(url), { username: pooledLogin.name, password: pooledLogin.password }).href
}

/** The statements that `docs/operators/scaling.md` tells administrators to run. */
export async function ensurePooledLogin(url: string): Promise<void> {
  const { name, password } = pooledLogin
  // Roles belong to all databases of a server, and tests run side by side in these.
  const everywhere = Object.assign(new URL(url), { pathname: '/postgres' }).href
  await ask(
    everywhere,
    `begin; select pg_advisory_xact_lock(1);
     do $$ begin
       if not exists (select from pg_roles where rolname = '${name}') then
         create role ${name} login password '${password}';
         grant grandlivre_service to ${name} with set true;
         alter role ${name} set role = 'grandlivre_service';
         alter role ${name} set search_path = grandlivre;
         alter role ${name} set datestyle = ISO;
       end if;
     end $$;
     commit`,
  )
}

export interface PooledSettings {
  settings: { databaseUrl: string; directDatabaseUrl: string; exportDatabaseUrl: string | undefined }
  /** The same settings, as environment variables. */
  environment: Record<string, string>
  /**
   * Call it before the service stops.
   * @throws {Error} if a shared session holds a lock, or the service has too many sessions of its own
   */
  check(): Promise<void>
  end(): Promise<void>
}

/**
 * The settings of a service in a run with a pooler. Undefined in any other run, for the embedded database, and if the
 * test gives both addresses.
 */
export async function throughPooler(settings: {
  databaseUrl: string | undefined
  directDatabaseUrl: string | undefined
  exportDatabaseUrl: string | undefined
}): Promise<PooledSettings | undefined> {
  const { databaseUrl, directDatabaseUrl, exportDatabaseUrl } = settings
  if (!isPooledRun || databaseUrl === undefined || directDatabaseUrl !== undefined) return undefined
  const main = await openPooledAddress(databaseUrl)
  const exports = exportDatabaseUrl === undefined ? undefined : await openPooledAddress(exportDatabaseUrl)
  const service: Running = { database: await databaseAt(databaseUrl).catch(() => undefined) }
  running.add(service)
  return {
    settings: { databaseUrl: main.url, directDatabaseUrl: databaseUrl, exportDatabaseUrl: exports?.url },
    environment: {
      DATABASE_URL: main.url,
      DIRECT_DATABASE_URL: databaseUrl,
      ...(exports ? { EXPORT_DATABASE_URL: exports.url } : {}),
    },
    check: () => checkSessions(service, databaseUrl),
    end: async () => {
      running.delete(service)
      await Promise.all([main.end(), exports?.end()])
    },
  }
}

/** A name of a database that is the same through any proxy. */
async function databaseAt(url: string): Promise<string> {
  const [row] = await ask(url, `select concat_ws(' ', inet_server_port(), current_database()) as database`)
  return row.database
}

/** The database of the service may be away: then there is nothing to count. */
async function checkSessions(service: Running, url: string): Promise<void> {
  const database = await databaseAt(url).catch(() => undefined)
  if (database === undefined) return
  // A standby may have taken the place of the server since the start.
  service.database = database
  const sharing = [...running].filter((each) => (each.database ?? database) === database)
  const most = sharing.length * directMax
  const deadline = Date.now() + endingMs
  let found = await readSessions(url)
  await until(async () => {
    if (found.direct.length <= most || Date.now() > deadline) return true
    found = await readSessions(url)
    return false
  })
  if (found.locks > 0) throw new Error(`${found.locks} advisory locks are left in sessions of the pooler`)
  if (found.direct.length <= most) return
  throw new Error(
    `${found.direct.length} sessions of the server itself, and not at most ${most}: ${found.direct.join(', ')}`,
  )
}

interface Sessions {
  /** Names of the connections that lead to the server itself. */
  direct: string[]
  /** Advisory locks in sessions that the pooler shares. */
  locks: number
}

async function readSessions(url: string): Promise<Sessions> {
  const [found] = await ask(
    url,
    `select
       (select coalesce(array_agg(application_name order by 1), '{}') from pg_stat_activity
        where datname = current_database() and usename <> '${pooledLogin.name}'
          and application_name in (${directNames.map((name) => `'grandlivre ${name}'`).join(', ')})) as direct,
       (select count(*)::int from pg_locks join pg_stat_activity using (pid)
        where datname = current_database() and usename = '${pooledLogin.name}' and locktype = 'advisory'
          and state = 'idle') as locks`,
  ).catch(() => [{ direct: [], locks: 0 }])
  return found
}

// biome-ignore lint/suspicious/noExplicitAny: rows of any shape
async function ask(url: string, text: string): Promise<any[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    const results = await client.query(text)
    return results.rows
  } finally {
    await client.end()
  }
}
