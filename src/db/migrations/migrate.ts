/**
 * Brings a database to the version of the code: the numbered files of this folder, in order, then the definitions of
 * functions/, all in one transaction, recorded in grandlivre.migrations. Processes that start together wait for each
 * other at a lock. There are no down migrations.
 *
 * Processes of two versions run on one database while a release is rolled out. A migration that the code before it can
 * live with is named `<number>_<name>.expand.sql`: it adds tables, functions, nullable columns and columns with a
 * default, and takes nothing away. Code runs on a database that is newer by expanding migrations alone, and changes
 * nothing there. Any other migration contracts: it needs all processes to be of the version before it, or newer, and
 * older code refuses the database, which it would misread. So a change that takes something away ships in two releases:
 * the first expands, and its code uses the new alone; the second contracts.
 *
 * Those of the version before serve while the migrations run, until the commit. So a migration first takes the locks for
 * which it may have to wait, in the order of their writers and in a mode that lets others read; and it changes what every
 * request reads at its end. It gives up each wait soon, and begins anew.
 *
 * A numbered file is never changed once it is released. A function is: its file in functions/ holds the one current
 * definition and is edited in place, so that a review shows the changed line and not 40 repeated ones. Functions are
 * not simply applied whenever their content differs from the last time, for three reasons:
 *
 * - The number orders them. Two processes with different functions on one database would otherwise undo each other at
 *   each restart. So functions change only together with the version: a change needs a numbered file, which may hold
 *   nothing but the line `-- functions: sha256 ...` of the new content, and without it the code does not start
 *   (schema-files.ts says the line). A login that may not migrate sees by the number alone that functions are missing.
 * - A numbered file relies on no function: when it runs, functions have the bodies of earlier versions. It creates a new
 *   one with `create or replace` and an empty body, and functions/ fills it in the same transaction: no other connection
 *   sees the empty one, nor new tables with old functions. It drops a function that is removed, or whose parameters or
 *   columns change, with `drop function if exists`. So the numbered files alone know every function that a database may
 *   have, and tests find a definition without its first creation, and a function without its drop.
 * - While processes of two versions run on one database, those of the older call the newer functions. So a function
 *   keeps whatever the previous version relies on, or a new function gets a new name.
 */
import { strict as assert } from 'node:assert'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { limits } from '../../config.ts'
import { type Actor, connectSafely } from '../check-connection.ts'
import { keepAlive, withOurSettings } from '../pool.ts'
import { installQueue } from './queue-schema.ts'
import { type AppliedMigration, oldestCodeFor, readSchemaFiles, type SchemaFiles } from './schema-files.ts'

/** An arbitrary number that differs from the keys of other advisory locks in this database. */
const migrationLock = 7_301_001

/** SQLSTATEs. */
const lockNotAvailable = '55P03'
const deadlockDetected = '40P01'

/** Since PostgreSQL 16 `set role` needs a grant of its own, and the statements below use its syntax. */
const serverVersionMin = 160_000

/**
 * Hears of what may take long while a database is opened: `migrating, step 3 of 7` with its file, or what it waits for.
 * @returns to be called at the end
 */
export type OnStep = (doing: string, file?: string) => () => void

const silently: OnStep = () => () => {}

export interface MigrateOptions {
  /** Folder of the numbered files, with a slash at its end. */
  folder?: string
  /** Maximum wait for a process that holds the lock. */
  lockMs?: number
  /** The setting with the address, for errors. */
  setting?: string
  /**
   * Refuses a database that this process must not change. It is asked before the first migration and, if there are any,
   * again at the end of their transaction.
   */
  check?: (client: pg.ClientBase) => Promise<void>
  onStep?: OnStep
  /** Whether a server of the operator is migrated, if its login may. Default: yes. */
  migrates?: boolean
}

/**
 * Applies the missing migrations as the login of the address, which owns whatever they create.
 * @returns the versions applied now, ascending; empty if there were none
 * @throws {Error} if the connection is not safe (checked before any lock), the database needs newer code, or another
 *   process keeps the lock, with the remedy
 */
export async function migrate(ownerUrl: string, options: MigrateOptions = {}): Promise<number[]> {
  const {
    folder,
    lockMs = limits.migrationLockMs,
    setting = 'DATABASE_URL',
    check = async () => {},
    onStep = silently,
  } = options
  const files = await readSchemaFiles(folder)
  return withClient(ownerUrl, 'owner', async (client) => {
    await checkServerVersion(client, setting)
    await lockMigrations(client, lockMs, onStep)
    await createMigrationsTable(client)
    const applied = await appliedMigrations(client)
    refuseContracted(applied, files)
    await check(client)
    if (newestOf(applied) > files.version) return []
    const missing = missingVersions(applied, files)
    const count = missing.length + files.functions.length + 1
    let step = inSteps(count, silently)
    if (missing.length > 0)
      await inBriefWaits(client, onStep, async () => {
        step = inSteps(count, onStep)
        await apply(client, missing, files, step)
        await check(client)
      })
    await letServiceRoleIn(client)
    await step('the tables of the queue', () => installQueue(client))
    return missing
  })
}

/**
 * For a login that may not migrate, or a command that does not.
 * @throws {Error} if a migration is missing, or the database needs newer code, with the remedy
 */
export async function checkVersion(url: string, options: MigrateOptions = {}): Promise<void> {
  const { setting = 'DATABASE_URL', check, migrates = true } = options
  const files = await readSchemaFiles()
  const applied = await withClient<AppliedMigration[]>(url, 'service', async (client) => {
    const { rows } = await client.query<{ found: boolean }>(
      `select to_regclass('grandlivre.migrations') is not null as found`,
    )
    const versions = rows[0]?.found ? await appliedMigrations(client) : []
    refuseContracted(versions, files)
    if (missingVersions(versions, files).length === 0) await check?.(client)
    return versions
  })
  if (missingVersions(applied, files).length === 0) return
  throw new Error(
    `The database is at version ${newestOf(applied)} and this code needs ${files.version}, ` +
      `but ${migrates ? `the login of ${setting} may` : 'this command does'} not migrate it. Run once with the address of the owner: ` +
      `${setting}=postgres://owner:... npm run cli -- migrate`,
  )
}

/** The version of the code. */
export async function latestMigration(): Promise<number> {
  return (await readSchemaFiles()).version
}

function newestOf(applied: readonly AppliedMigration[]): number {
  return Math.max(0, ...applied.map(({ version }) => version))
}

function missingVersions(applied: readonly AppliedMigration[], { migrations }: SchemaFiles): number[] {
  const found = new Set(applied.map(({ version }) => version))
  return migrations.map((_, index) => index + 1).filter((version) => !found.has(version))
}

type Step = (name: string, run: () => Promise<unknown>) => Promise<void>

/** Announces each step of a migration. */
function inSteps(count: number, onStep: OnStep): Step {
  let number = 0
  return async (name, run) => {
    number += 1
    const ended = onStep(`migrating, step ${number} of ${count}`, name)
    await run().finally(ended)
  }
}

/**
 * Runs it in a transaction, which is begun anew where another one keeps a table from it. While a lock is waited for, so is
 * everything that asks for the same table later, such as the requests of processes that serve meanwhile.
 */
async function inBriefWaits(client: pg.Client, onStep: OnStep, run: () => Promise<void>): Promise<void> {
  for (;;) {
    await client.query(`begin; set local lock_timeout = ${limits.migrationTableLockMs}`)
    try {
      await run()
      await client.query('commit')
      return
    } catch (error) {
      const { code } = ((error as Error).cause ?? error) as { code?: string }
      if (code !== lockNotAvailable && code !== deadlockDetected) throw error
    }
    await client.query('rollback')
    const ended = onStep('waiting for transactions that use what the migration changes, such as an import')
    await delay(limits.migrationPauseMs)
    ended()
  }
}

/** In the transaction of its caller. */
async function apply(client: pg.Client, versions: number[], files: SchemaFiles, step: Step): Promise<void> {
  let name = ''
  try {
    for (const version of versions) {
      const migration = files.migrations[version - 1]!
      name = migration.name
      await step(name, () => client.query(migration.sql))
      await client.query('insert into migrations (version, name) values ($1, $2)', [version, name])
    }
    for (const definitions of files.functions) {
      name = definitions.name
      await step(name, () => client.query(definitions.sql))
    }
    await recordMigration(client, versions)
  } catch (error) {
    // The caller closes the connection, which rolls back.
    throw new Error(`${name} failed, and nothing was applied: ${(error as Error).message}`, { cause: error })
  }
}

/** In the audit, like any act of staff. (Tests have migrations without one.) */
async function recordMigration(client: pg.Client, versions: number[]): Promise<void> {
  await client.query(
    `do $$ begin
       if to_regprocedure('grandlivre.append_audit(json, text)') is not null then
         perform grandlivre.append_audit(json_build_array(json_build_object(
           'act', 'migrate', 'outcome', 'done', 'details', '{"versions":"${versions.join(',')}"}')), session_user);
       end if;
     end $$`,
  )
}

async function createMigrationsTable(client: pg.Client): Promise<void> {
  // `if not exists` requires the right to create even if the schema exists, and its owner may lack that right.
  const { rows } = await client.query<{ schema: boolean; table: boolean }>(
    `select to_regnamespace('grandlivre') is not null as schema,
            to_regclass('grandlivre.migrations') is not null as table`,
  )
  if (!rows[0]?.schema) await client.query('create schema grandlivre')
  if (rows[0]?.table) return
  await client.query(
    `create table grandlivre.migrations (
       version integer primary key,
       name text not null,
       applied_at timestamptz(0) not null default now()
     )`,
  )
}

/** If its login may not migrate, the service reads the version with its own role (see database.ts). */
async function letServiceRoleIn(client: pg.Client): Promise<void> {
  await client.query('grant select on grandlivre.migrations to grandlivre_service')
}

async function appliedMigrations(client: pg.Client): Promise<AppliedMigration[]> {
  const { rows } = await client.query<AppliedMigration>('select version, name from grandlivre.migrations')
  return rows
}

function refuseContracted(applied: readonly AppliedMigration[], { version: code }: SchemaFiles): void {
  const needed = oldestCodeFor(applied)
  if (needed <= code) return
  throw new Error(
    `The database is at version ${newestOf(applied)} and this code knows versions up to ${code}; version ${needed} took ` +
      `away what it needs. Start the newer code that migrated it, or restore a backup from before version ${needed}.`,
  )
}

/** @throws {Error} if the server is too old */
export async function checkServerVersion(client: pg.Client, setting: string): Promise<void> {
  const { rows } = await client.query<{ number: number; text: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
  )
  const [server] = rows
  assert(server)
  if (server.number < serverVersionMin)
    throw new Error(`The server of ${setting} is PostgreSQL ${server.text}; version 16 or newer is needed.`)
}

/**
 * A lock of the session, not of a transaction: it spans the transactions of all migrations.
 * @throws {Error} naming its holder if it is not free in time
 */
async function lockMigrations(client: pg.Client, lockMs: number, onStep: OnStep): Promise<void> {
  const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
    migrationLock,
  ])
  if (rows[0]?.locked) return
  const ended = onStep('waiting for another process that migrates')
  try {
    await client.query(`set lock_timeout = ${lockMs}`)
    await client.query('select pg_advisory_lock($1)', [migrationLock])
    await client.query('reset lock_timeout')
  } catch (error) {
    if ((error as pg.DatabaseError).code !== lockNotAvailable) throw error
    throw new Error(
      `Another connection has held the lock of the migrations for ${lockMs / 1000} seconds: ${await holder(client)}. ` +
        'If that process is migrating, wait for it and try again. If it is not, as with a connection that a pooler kept, ' +
        'end it: select pg_terminate_backend(<process>)',
      { cause: error },
    )
  } finally {
    ended()
  }
}

/**
 * Process, login, address, program and age of the connection that holds the lock. The server hides address and age of
 * other logins' connections.
 */
async function holder(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ holder: string }>(
    `select format('process %s of login %s from %s (%s), connected %s', a.pid, a.usename,
       coalesce(host(a.client_addr),
         case when a.backend_start is null then 'an unknown address' else 'the machine of the server' end),
       coalesce(nullif(a.application_name, ''), 'no name'),
       coalesce('since ' || to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), 'at an unknown time')) as holder
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.classid = 0 and l.objid = $1 and l.objsubid = 1
       and l.database = (select oid from pg_database where datname = current_database())`,
    [migrationLock],
  )
  return rows[0]?.holder ?? 'just released'
}

async function withClient<T>(url: string, actor: Actor, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: withOurSettings({ url, isPooled: false }, 'grandlivre migrate'),
    connectionTimeoutMillis: limits.databaseConnectMs,
    ...keepAlive,
  })
  client.on('error', () => {})
  await connectSafely(client, { actor })
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
