/**
 * A real PostgreSQL 18 in the data folder, for use without a server of your own. The processes of a data folder
 * (service, command line) share one server: the first starts it, the last stops it. The server could instead belong to
 * one process, the service or the command that found no server. That would save 40 of some 500 lines, since the rest
 * starts, recovers and finds a server. But a stopping service would then cut off a long import, and a finished seed
 * would stop the database of a service that started meanwhile.
 *
 * Each process holds one connection with a shared advisory lock while it uses the server. To leave, it releases the
 * shared lock and tries to get the exclusive one. This succeeds only if no other process uses the server. The process
 * then stops the server while it still holds the lock: another process that arrives at that moment waits for the lock,
 * loses its connection and starts over. If two processes leave at once, the later attempt succeeds. A killed process
 * loses its connection and with it the lock, so locks are never stale; the next process uses the running server. If two
 * processes start the server at once, PostgreSQL's lock file decides.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, unlinkSync } from 'node:fs'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { OnStep } from '../migrations/migrate.ts'
import { isConnectionLoss } from '../outage.ts'
import { queryRow, queryValue } from '../statement.ts'
import { type Cluster, openCluster, ownerName } from './cluster.ts'
import { findPrograms, type Programs, runProgram } from './programs.ts'

export type EmbeddedDatabase = Awaited<ReturnType<typeof startEmbeddedDatabase>>

/** Passed on the command line at each start, so that settings of a new release apply to old folders. */
const settings = {
  listen_addresses: '127.0.0.1',
  // A socket file would need a short path in a folder of the right user; loopback with a password needs neither.
  unix_socket_directories: '',
  // Enough for eight threads with eight exports each and two connections per export, the service's own connections, and
  // staff.
  max_connections: '200',
  // Enough for the indexes of a few million movements. The files themselves stay in the system's cache.
  shared_buffers: '256MB',
  // Loading 600,000 movements writes 0.6 GB of log; with the default of 1 GB each load would include a checkpoint.
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  // For the index builds and foreign key checks of a bulk load.
  maintenance_work_mem: '128MB',
  // Exports read in index order; if a plan sorts after all, 16 MB keep small folders off the disk.
  work_mem: '16MB',
  // Compiling a query takes longer than running it, except for exports, which gain nothing from it.
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // The log file is never rotated. The service gets errors of statements anyway; in the log they would leave personal
  // data.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
} as const

const settingsNotDurable = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } as const

/** Arbitrary keys of advisory locks in the database postgres, where there are no others. */
const usersLock = 7_301_100
const prepareLock = 7_301_101

/** Recovery after a crash replays up to `max_wal_size` of log: at 50 MB/s, 80 seconds. */
const startTimeoutMs = 180_000
const startFailuresMax = 5
/** How long to wait for the processes of a killed server: a busy one ends only once it has its next result. */
const orphansMs = 20_000
const pollMs = 100

/**
 * Starts or joins the server of a data folder.
 * @param options.dataDir absolute path
 * @param options.durable false is faster, but a crash of the machine loses the data: for tests. Only the process that
 *   starts the server sets it
 * @param options.onStep called when the start waits for processes of a killed server
 * @throws {Error} if it does not start, with the end of its log or the remedy
 */
export async function startEmbeddedDatabase(options: {
  dataDir: string
  durable?: boolean
  onStep?: OnStep | undefined
}) {
  const { dataDir, durable = true, onStep = () => () => {} } = options
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs)
  const { holder, port } = await joinServer(cluster, programs, durable, onStep)
  const endHolding = stayHolding(holder, cluster)
  const stop = async () => leaveServer(await endHolding(), cluster, programs)
  try {
    await prepare(holder, cluster)
  } catch (error) {
    await stop()
    throw error
  }

  const url = (user: string, password: string) =>
    `postgres://${user}:${password}@127.0.0.1:${port}/${ownerName}?sslmode=disable`
  return {
    /** Address for connections as the superuser. */
    ownerUrl: url(ownerName, cluster.ownerPassword),
    /** Address for connections as grandlivre_service, which owns nothing. */
    serviceUrl: url('grandlivre_service', cluster.servicePassword),
    /** Leaves the server and stops it if no other process uses it. End this process's connections first. */
    stop,
  }
}

interface Joined {
  holder: pg.Client
  port: number
}

/** Joins the running server, or starts a new one. */
async function joinServer(
  cluster: Cluster,
  programs: Programs,
  durable: boolean,
  onStep: OnStep,
): Promise<Joined> {
  let failures = 0
  let orphans: { since: number; ended: () => void } | undefined
  const start = async () => {
    removeStaleLockFile(cluster)
    const { length } = await readLog(cluster)
    try {
      await startServer(cluster, programs, durable)
    } catch (error) {
      // Earlier lines of the log are of an earlier try.
      if ((await readLog(cluster)).includes('pre-existing shared memory block', length)) {
        orphans ??= {
          since: Date.now(),
          ended: onStep('waiting for processes of the former database server to end'),
        }
        if (Date.now() - orphans.since > orphansMs) throw orphansError(cluster, error)
        await delay(5 * pollMs)
        return true
      }
      // Another process has started it or taken the port.
      if (++failures === startFailuresMax) throw await startError(cluster, 'does not start', error)
      await delay(pollMs * failures)
    }
    return true
  }
  return (await reachServer(cluster, start).finally(() => orphans?.ended()))!
}

/**
 * Waits for a server that is starting, recovering or stopping.
 * @param onAbsence called while no server runs; false gives up
 */
async function reachServer(cluster: Cluster, onAbsence: () => Promise<boolean>): Promise<Joined | undefined> {
  let deadline = Date.now() + startTimeoutMs
  for (;;) {
    const found = readLockFile(cluster)
    const holder = found && (await hold(cluster, found))
    if (holder) return { holder, port: found.port }
    if (found && isPostmaster(found.pid, cluster)) {
      if (Date.now() > deadline) throw await startError(cluster, 'did not come up')
      await delay(pollMs)
      continue
    }
    if (!(await onAbsence())) return undefined
    deadline = Date.now() + startTimeoutMs
  }
}

/** Opens a connection that holds the shared lock; undefined if the server is gone or stopping. */
async function hold(cluster: Cluster, found: LockFile): Promise<pg.Client | undefined> {
  const holder = new pg.Client({
    host: '127.0.0.1',
    port: found.port,
    user: ownerName,
    password: cluster.ownerPassword,
    database: 'postgres',
    ssl: false,
    application_name: 'grandlivre holder',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  })
  // A killed server ends this connection too. The pools detect it themselves.
  holder.on('error', () => {})
  try {
    await holder.connect()
    await holder.query('select pg_advisory_lock_shared($1)', [usersLock])
    if (await sees(holder, cluster)) return holder
    await holder.end()
    return undefined
  } catch (error) {
    await holder.end()
    const passwordRefused = error instanceof pg.DatabaseError && error.code === '28P01'
    if (passwordRefused && isPostmaster(found.pid, cluster))
      throw new Error(
        `postgres.json does not hold the passwords of ${cluster.path}; restore it or move both away`,
      )
    // If the port now belongs to another server, which refuses the password, ours is not running.
    if (passwordRefused || isConnectionLoss(error)) return undefined
    throw error
  }
}

/**
 * Whether the server uses this folder. A copy of a folder in use has the passwords and lock file of the original, and
 * must not connect to its server.
 */
async function sees(holder: pg.Client, cluster: Cluster): Promise<boolean> {
  await using mark = await mkdtempDisposable(join(cluster.path, 'mark-'))
  const isSeen = 'select (pg_stat_file($1, true)).isdir is not null'
  return await queryValue<boolean>(holder, isSeen, [basename(mark.path)])
}

async function startServer(cluster: Cluster, programs: Programs, durable: boolean): Promise<void> {
  const all = { port: String(await choosePort(cluster)), ...settings, ...(durable ? {} : settingsNotDurable) }
  await runProgram(programs.pg_ctl, [
    'start',
    '--wait',
    `--timeout=${startTimeoutMs / 1000}`,
    `--pgdata=${cluster.path}`,
    `--log=${logFileOf(cluster)}`,
    `--options=${Object.entries(all)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' ')}`,
  ])
}

/** Creates the service's login and the database once, even if several processes start together. */
async function prepare(holder: pg.Client, cluster: Cluster): Promise<void> {
  await holder.query('select pg_advisory_lock($1)', [prepareLock])
  const found = await queryRow<{ role: boolean; database: boolean }>(
    holder,
    `select exists (select from pg_roles where rolname = 'grandlivre_service') as role,
            exists (select from pg_database where datname = $1) as database`,
    [ownerName],
  )
  if (!found?.role) {
    const password = pg.escapeLiteral(cluster.servicePassword)
    await holder.query(`create role grandlivre_service login password ${password}`)
  }
  if (!found?.database) await holder.query(`create database ${ownerName}`)
  await holder.query('select pg_advisory_unlock($1)', [prepareLock])
}

/**
 * Takes the lock again when its connection is lost: PostgreSQL ends every connection if one of its processes is killed.
 * If the server is gone, an operator or another process may restart it; with the lock, nobody stops the new server
 * while this process uses it.
 * @returns function that returns the connection with the lock; undefined if the server is gone
 */
function stayHolding(first: pg.Client, cluster: Cluster): () => Promise<pg.Client | undefined> {
  let leaving = false
  let holder = Promise.resolve<pg.Client | undefined>(first)
  const watch = (client: pg.Client | undefined): void => {
    client?.once('end', () => {
      if (leaving) return
      holder = reachServer(cluster, () => delay(pollMs, !leaving)).then((joined) => joined?.holder)
      holder.then(watch, () => {})
    })
  }
  watch(first)
  return () => {
    leaving = true
    return holder
  }
}

async function leaveServer(holder: pg.Client | undefined, cluster: Cluster, programs: Programs) {
  if (!holder) return
  try {
    await holder.query('select pg_advisory_unlock_shared($1)', [usersLock])
    if (await queryValue<boolean>(holder, 'select pg_try_advisory_lock($1)', [usersLock]))
      await runProgram(programs.pg_ctl, ['stop', '--wait', '--mode=fast', `--pgdata=${cluster.path}`])
  } catch (error) {
    // If the server is gone by now, pg_ctl fails, which does no harm.
    const found = readLockFile(cluster)
    if (found && isPostmaster(found.pid, cluster) && !isConnectionLoss(error)) throw error
  } finally {
    await holder.end()
  }
}

interface LockFile {
  pid: number
  port: number
}

/** postmaster.pid: process id on line 1, port on line 4. Undefined if no server was started or it has stopped. */
function readLockFile(cluster: Cluster): LockFile | undefined {
  try {
    const lines = readFileSync(join(cluster.path, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), port: Number(lines[3] ?? 0) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Whether the process with this id is the server of this cluster, and not another process that got the id of a killed
 * server.
 */
function isPostmaster(pid: number, cluster: Cluster): boolean {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('/bin/ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
    return stdout.includes(cluster.path)
  }
  try {
    // The file is empty if the process was killed and its parent has not yet reaped it.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(cluster.path)
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/**
 * Removes the lock file of a dead server. PostgreSQL replaces such a file itself, unless another process of the same
 * user has the dead server's id, which is common in restarted containers. The file is read and removed synchronously: a
 * server that another process starts takes longer than that to write its own.
 */
function removeStaleLockFile(cluster: Cluster): void {
  const found = readLockFile(cluster)
  // If the file has no id, PostgreSQL is still writing it.
  if (found && found.pid > 0 && !isPostmaster(found.pid, cluster))
    unlinkSync(join(cluster.path, 'postmaster.pid'))
}

/** The port of the last start if it is free, so that processes that know the address find the server again. */
async function choosePort(cluster: Cluster): Promise<number> {
  const options = await readFile(join(cluster.path, 'postmaster.opts'), 'utf8').catch(() => '')
  const former = Number(/"port=(\d+)"/.exec(options)?.[1] ?? 0)
  return freePort(former).catch(() => freePort(0))
}

/** Resolves to the preferred port; rejects if it is taken. @param preferred 0 for any free port */
async function freePort(preferred: number): Promise<number> {
  await using server = createServer().listen(preferred, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function startError(cluster: Cluster, what: string, cause?: unknown): Promise<Error> {
  const lines = (await readLog(cluster)).toString().trim().split('\n')
  const end = lines.slice(-10).join('\n') || String(cause)
  return new Error(`The database in ${cluster.path} ${what}. The end of ${logFileOf(cluster)}:\n${end}`, {
    cause,
  })
}

function logFileOf(cluster: Cluster): string {
  return join(cluster.path, 'server.log')
}

/** The bytes of the log; empty if there is no log. */
function readLog(cluster: Cluster): Promise<Buffer> {
  return readFile(logFileOf(cluster)).catch(() => Buffer.alloc(0))
}

function orphansError(cluster: Cluster, cause: unknown): Error {
  // Processes of the server work in the data folder. On systems other than Linux the operator has to look for them.
  const ids =
    process.platform === 'linux' ? readdirSync('/proc').filter((id) => worksIn(id, cluster.path)) : []
  return new Error(
    `Processes of the former server of ${cluster.path} still run after ${orphansMs / 1000} seconds, and keep a new one ` +
      `from starting. End them, and start again: ${ids.length > 0 ? `kill -9 ${ids.join(' ')}` : 'ps shows them as postgres'}`,
    { cause },
  )
}

function worksIn(processId: string, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${processId}/cwd`) === folder
  } catch {
    // There is no such process, it has just ended, or it belongs to another user.
    return false
  }
}
