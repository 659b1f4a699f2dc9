/**
 * Brings a database to the version of the code. An existing database gets the missing numbered files of this folder, in
 * order, then the definitions of functions/. A new database begins with schema.sql, which contains the result of the
 * numbered files, and with first-rows.sql. All of this is one transaction, and is recorded in grandlivre.migrations.
 * Processes that start together wait for each other at a lock. There are no down migrations.
 *
 * Release 0.2.0 is the oldest release whose databases are upgraded. They have versions 1 to 6, whose files are no longer
 * here. Tests create such a database from these files (test/support/upgrade/schema-0.2.0), upgrade it, and compare it
 * with a new one.
 *
 * Processes of two versions run on one database while a release is rolled out. If the previous code works with a
 * migration, the migration is named `<number>_<name>.expand.sql`: it adds tables, functions, nullable columns and columns
 * with a default, and removes nothing. Code runs on a database that is newer by expanding migrations alone, and changes
 * nothing there. Any other migration contracts: all processes must have the version before it or a newer one. Older code
 * would misread the database, and refuses it. So a change that removes something ships in two releases. The first
 * expands, and its code uses only the new form. The second contracts.
 *
 * Processes of the previous version serve requests while the migrations run, until the commit. So a migration first takes
 * the locks that it may have to wait for. It takes them in the order of writers and in a mode that lets others read. What
 * every request reads is changed last. After two seconds of waiting the transaction is rolled back, and begins again.
 *
 * A numbered file is never changed once it is released. A function may change: its file in functions/ contains the one
 * current definition and is edited in place, so that a review shows the changed line and not 40 repeated ones. Functions are
 * not simply applied whenever their content differs from the last time, for three reasons:
 *
 * - The number orders them. Otherwise two processes with different functions on one database would undo each other's at
 *   each restart. So functions change only together with the version: a change needs a numbered file, which may contain
 *   nothing but the line `-- functions: sha256 ...` of the new content. Without it the code does not start
 *   (schema-files.ts prints the line). A login that may not migrate sees from the number alone that functions are missing.
 * - A numbered file relies on no function: when it runs, functions have the bodies of earlier versions. It creates a new
 *   function with `create or replace` and an empty body, and functions/ fills it in the same transaction: no other
 *   connection sees the empty body, nor new tables with old functions. It drops a function that is removed, or whose
 *   parameters or columns change, with `drop function if exists`. So the numbered files alone name every function that a
 *   database may have. Tests find a definition without its first creation, and a function without its drop.
 * - While processes of two versions run on one database, those of the older version call the newer functions. So a
 *   function keeps everything that the previous version relies on, or a new function gets a new name.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { limits } from '../../config.ts'
import { type Actor, connectSafely } from '../check-connection.ts'
import { noLimit, singleConnection } from '../pool.ts'
import { queryRows, queryValue } from '../statement.ts'
import { installQueue } from './queue-schema.ts'
import {
  type AppliedMigration,
  oldestCodeFor,
  readSchemaFiles,
  type SchemaFiles,
  type SqlFile,
} from './schema-files.ts'

/** An arbitrary number that differs from the keys of other advisory locks in this database. */
const migrationLock = 7_301_001

/** SQLSTATEs. */
const lockNotAvailable = '55P03'
const deadlockDetected = '40P01'

/**
 * Called for each step that may take long while a database is opened. `doing` is `migrating, step 3 of 7`, with the
 * file of the step, or says what the process waits for.
 * @returns function that ends the step
 */
export type OnStep = (doing: string, file?: string) => () => void

const silently: OnStep = () => () => {}

export interface MigrateOptions {
  /** Folder of schema.sql and migrations/, with a slash at its end. */
  folder?: string
  /** Maximum wait for a process that holds the lock. */
  lockMs?: number
  /** The setting with the address, for errors of `checkVersion`. */
  setting?: string
  /**
   * Throws if this process must not change the database. Called before the first migration and, if there are
   * migrations, again at the end of their transaction.
   */
  check?: (client: pg.ClientBase) => Promise<void>
  onStep?: OnStep
  /** Whether the operator's server is migrated if the login may do so. Default: true. */
  migrates?: boolean
}

/**
 * Applies the missing migrations as the login of the address, which owns whatever they create.
 * @returns the versions applied now, ascending; empty if there were none
 * @throws {Error} if the connection is not safe (checked before any lock), the database needs newer code, or another
 *   process keeps the lock, with the remedy
 */
export function migrate(ownerUrl: string, options?: MigrateOptions): Promise<number[]> {
  return withClient(ownerUrl, 'owner', (client) => migrateThrough(client, options))
}

/**
 * Like `migrate`. Keeps the lock of the migrations, which the end of the connection releases.
 * @param client of the owner, without a time limit for statements
 */
export async function migrateThrough(client: pg.Client, options: MigrateOptions = {}): Promise<number[]> {
  const { folder, lockMs = limits.migrationLockMs, check = async () => {}, onStep = silently } = options
  const files = await readSchemaFiles(folder)
  await lockMigrations(client, lockMs, onStep)
  const applied = await appliedMigrations(client)
  refuseContracted(applied, files)
  await check(client)
  if (newestOf(applied) > files.version) return []
  const isNew = applied.length === 0
  if (isNew) await refuseForeign(client)
  else refuseOlderThanReleases(applied, files)
  const missing = missingMigrations(isNew ? files.held : applied, files)
  const isCurrent = !isNew && missing.length === 0
  const run = [...(isNew ? files.start : []), ...missing, ...(missing.length > 0 ? files.functions : [])]
  const versions = [...(isNew ? files.held : []), ...missing].map(({ version }) => version)
  let step = inSteps(run.length + 1, silently)
  if (!isCurrent)
    await inBriefWaits(client, onStep, async () => {
      step = inSteps(run.length + 1, onStep)
      await apply(client, run, step)
      await record(client, missing, versions)
      await check(client)
    })
  // Granted at each start: a backup may be restored without privileges, and a process of 0.3.0 may end before it
  // grants.
  await client.query('grant select on grandlivre.migrations to grandlivre_service')
  await step('the tables of the queue', () => installQueue(client))
  return versions
}

/**
 * Checks the version for a login that may not migrate, or for a command that does not.
 * @throws {Error} if a migration is missing, or the database needs newer code, with the remedy
 */
export async function checkVersion(url: string, options: MigrateOptions = {}): Promise<void> {
  const { setting = 'DATABASE_URL', check, migrates = true } = options
  const files = await readSchemaFiles()
  const applied = await withClient(url, 'service', async (client) => {
    const versions = await appliedMigrations(client)
    refuseContracted(versions, files)
    if (missingMigrations(versions, files).length === 0) await check?.(client)
    return versions
  })
  if (missingMigrations(applied, files).length === 0) return
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

function missingMigrations(applied: readonly AppliedMigration[], { migrations }: SchemaFiles) {
  const found = new Set(applied.map(({ version }) => version))
  return migrations.filter(({ version }) => !found.has(version))
}

type Step = (name: string, run: () => Promise<unknown>) => Promise<void>

/** Announces the steps of a migration: `migrating, step 3 of 7`. */
function inSteps(count: number, onStep: OnStep): Step {
  let number = 0
  return async (name, run) => {
    number += 1
    const ended = onStep(`migrating, step ${number} of ${count}`, name)
    await run().finally(ended)
  }
}

/**
 * Runs `run` in a transaction. If another transaction holds the lock of a table that `run` needs, rolls back and begins
 * again after a pause: requests to other processes that need the same table would wait behind this one.
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

/** Runs the files in the caller's transaction. */
async function apply(client: pg.Client, files: readonly SqlFile[], step: Step): Promise<void> {
  for (const { name, sql } of files)
    await step(name, () => client.query(sql)).catch((cause) => {
      // The caller closes the connection, which rolls back.
      throw new Error(`${name} failed, and nothing was applied: ${cause.message}`, { cause })
    })
}

/**
 * Records the migrations in grandlivre.migrations and, like any act of staff, in the audit. In a new database,
 * schema.sql has already filled grandlivre.migrations.
 */
async function record(client: pg.Client, missing: readonly AppliedMigration[], versions: readonly number[]) {
  for (const { version, name } of missing)
    await client.query('insert into migrations (version, name) values ($1, $2)', [version, name])
  const details = JSON.stringify({ versions: versions.join(',') })
  await client.query('select append_audit($1, session_user)', [
    JSON.stringify([{ act: 'migrate', outcome: 'done', details }]),
  ])
}

/** Empty for a new database, and for one that has nothing but an empty schema. */
async function appliedMigrations(client: pg.Client): Promise<AppliedMigration[]> {
  const isEmpty = `select to_regclass('grandlivre.migrations') is null`
  if (await queryValue<boolean>(client, isEmpty)) return []
  return queryRows<AppliedMigration>(client, 'select version, name from grandlivre.migrations')
}

/** @throws {Error} if another program, or a broken restore, has put something into the schema */
async function refuseForeign(client: pg.Client): Promise<void> {
  const name = await queryValue<string | undefined>(
    client,
    `select relname from pg_class
     where relnamespace = to_regnamespace('grandlivre') and relkind in ('r', 'v', 'S') and relname <> 'migrations' limit 1`,
  )
  if (name === undefined) return
  throw new Error(
    `The schema grandlivre of the database holds ${name}, but no record of migrations: it was not made by this ` +
      'service, or restored in part. Restore a whole backup, or use a database without that schema.',
  )
}

/** @throws {Error} if the database is older than the oldest release that this code upgrades */
function refuseOlderThanReleases(applied: readonly AppliedMigration[], { migrations }: SchemaFiles): void {
  const oldest = migrations[0]!.version - 1
  if (applied.filter(({ version }) => version <= oldest).length === oldest) return
  throw new Error(
    `The database is at version ${newestOf(applied)}, from before the release 0.2.0 (version ${oldest}), the oldest that this ` +
      'code upgrades. Migrate it with the release 0.3.0 first, then start this code again.',
  )
}

function refuseContracted(applied: readonly AppliedMigration[], { version: code }: SchemaFiles): void {
  const needed = oldestCodeFor(applied)
  if (needed <= code) return
  throw new Error(
    `The database is at version ${newestOf(applied)} and this code knows versions up to ${code}; version ${needed} ` +
      `removed what this code needs. Start the newer code that migrated it, or restore a backup from before version ${needed}.`,
  )
}

/**
 * A lock of the session, not of a transaction: it spans the transactions of all migrations.
 * @throws {Error} naming its holder if it is not free in time
 */
async function lockMigrations(client: pg.Client, lockMs: number, onStep: OnStep): Promise<void> {
  if (await queryValue<boolean>(client, 'select pg_try_advisory_lock($1)', [migrationLock])) return
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
  const described = await queryValue<string | undefined>(
    client,
    `select format('process %s of login %s from %s (%s), connected %s', a.pid, a.usename,
       coalesce(host(a.client_addr),
         case when a.backend_start is null then 'an unknown address' else 'the machine of the server' end),
       coalesce(nullif(a.application_name, ''), 'no name'),
       coalesce('since ' || to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), 'at an unknown time'))
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.classid = 0 and l.objid = $1 and l.objsubid = 1
       and l.database = (select oid from pg_database where datname = current_database())`,
    [migrationLock],
  )
  return described ?? 'just released'
}

async function withClient<T>(url: string, actor: Actor, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connectSafely(singleConnection(url, 'grandlivre migrate', noLimit), { actor })
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
