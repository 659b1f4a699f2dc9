/**
 * A real PostgreSQL 18 in the data folder, for use without a server of your own. The processes of a data folder
 * (service, command line) share one server: the first to come starts it, the last to leave stops it. A single owner
 * would be simpler, but a service that stops would cut off a long import, and a seed that ends would stop the database
 * of a service that was started meanwhile.
 *
 * Each process holds one connection, and on it a shared advisory lock, for as long as it uses the server. To leave,
 * it releases the shared lock and tries for the exclusive one. It gets that only if no other process holds the server,
 * and stops the server while it keeps the lock: a process that comes at that moment waits for the lock, loses its
 * connection with the server, and starts over. Of two that leave at once, the later to try succeeds. A process that is
 * killed loses its connection and with it the lock, so the locks are always true; the next to come uses the server that
 * it leaves. If two start the server at once, PostgreSQL's own lock file decides.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, unlinkSync } from 'node:fs'
import { mkdtemp, readFile, rmdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { isConnectionLoss } from '../outage.ts'
import { type Cluster, openCluster, ownerName } from './cluster.ts'
import { findPrograms, type Programs, runProgram } from './programs.ts'

export interface EmbeddedDatabase {
  /** As the superuser. */
  ownerUrl: string
  /** As grandlivre_service, which owns nothing. */
  serviceUrl: string
  /** Leaves the server, and stops it where no other process uses it. Connections of this process end first. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  /** Absolute path. */
  dataDir: string
  /** False: faster, and lost with the machine. For tests. Counts only for the process that starts the server. */
  durable?: boolean
}

/** On the command line at each start, so that a new release brings its settings to old folders. */
const settings = {
  listen_addresses: '127.0.0.1',
  // A socket file would need a short path in a folder of the right user; loopback and a password do without.
  unix_socket_directories: '',
  // Eight threads of eight exports with two connections each, the service's own, and staff.
  max_connections: '200',
  // Holds the indexes of some million movements. The files themselves stay in the system's cache.
  shared_buffers: '256MB',
  // Loading 600,000 movements writes 0.6 GB of log; at the default of 1 GB a checkpoint would fall into each load.
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  // Index builds and foreign key checks of a bulk load.
  maintenance_work_mem: '128MB',
  // Exports are read in index order; where a plan sorts after all, 16 MB keep small folders off the disk.
  work_mem: '16MB',
  // Compiling a query takes longer than any query of this service but the exports, and those gain nothing by it.
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // The log file is never rotated, and errors of statements reach the service; here they would leave personal
  // particulars in a file.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
} as const

const settingsNotDurable = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } as const

/** Any fixed numbers; advisory locks of the database postgres, where nothing else takes any. */
const usersLock = 7_301_100
const prepareLock = 7_301_101

/** Recovery after a crash replays up to `max_wal_size` of log: at 50 MB/s, 80 seconds. */
const startTimeoutMs = 180_000
const startFailuresMax = 5
const pollMs = 100

/**
 * Starts or joins the server of a data folder.
 * @throws {Error} where it does not start, with the end of its log, or with what to do
 */
export async function startEmbeddedDatabase(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { dataDir, durable = true } = options
  const programs = await findPrograms()
  const cluster = await openCluster(dataDir, programs)
  const { holder, port } = await joinServer(cluster, programs, durable)
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
    ownerUrl: url(ownerName, cluster.ownerPassword),
    serviceUrl: url('grandlivre_service', cluster.servicePassword),
    stop,
  }
}

interface Joined {
  holder: pg.Client
  port: number
}

/** The server that runs, or a new one. */
async function joinServer(cluster: Cluster, programs: Programs, durable: boolean): Promise<Joined> {
  let failures = 0
  const start = async () => {
    removeStaleLockFile(cluster)
    try {
      await startServer(cluster, programs, durable)
    } catch (error) {
      // Another process started it meanwhile, or took the port, or a killed server's last process is still ending.
      if (++failures === startFailuresMax) throw await startError(cluster, 'does not start', error)
      await delay(pollMs * failures)
    }
    return true
  }
  return (await reachServer(cluster, start))!
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

/** The holder's connection with its lock; undefined where the server is not there for good. */
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
  // A server that is killed ends this connection too. The pools notice it for themselves.
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
    // A password refused by another server, to which the port has passed, is as good as no server.
    if (passwordRefused || isConnectionLoss(error)) return undefined
    throw error
  }
}

/**
 * Whether the server works in this folder. A copy of a folder that is in use has passwords and lock file of the
 * original, and must not lead to its server.
 */
async function sees(holder: pg.Client, cluster: Cluster): Promise<boolean> {
  const mark = await mkdtemp(join(cluster.path, 'mark-'))
  try {
    const { rows } = await holder.query<{ seen: boolean }>(
      'select (pg_stat_file($1, true)).isdir is not null as seen',
      [basename(mark)],
    )
    return rows[0]?.seen === true
  } finally {
    await rmdir(mark)
  }
}

async function startServer(cluster: Cluster, programs: Programs, durable: boolean): Promise<void> {
  const all = { port: String(await choosePort(cluster)), ...settings, ...(durable ? {} : settingsNotDurable) }
  await runProgram(programs.pg_ctl, [
    'start',
    '--wait',
    `--timeout=${startTimeoutMs / 1000}`,
    `--pgdata=${cluster.path}`,
    `--log=${join(cluster.path, 'server.log')}`,
    `--options=${Object.entries(all)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' ')}`,
  ])
}

/** The service's login and the database, made once for all who come at the same time. */
async function prepare(holder: pg.Client, cluster: Cluster): Promise<void> {
  await holder.query('select pg_advisory_lock($1)', [prepareLock])
  const { rows } = await holder.query<{ role: boolean; database: boolean }>(
    `select exists (select from pg_roles where rolname = 'grandlivre_service') as role,
            exists (select from pg_database where datname = $1) as database`,
    [ownerName],
  )
  if (!rows[0]?.role) {
    const password = pg.escapeLiteral(cluster.servicePassword)
    await holder.query(`create role grandlivre_service login password ${password}`)
  }
  if (!rows[0]?.database) await holder.query(`create database ${ownerName}`)
  await holder.query('select pg_advisory_unlock($1)', [prepareLock])
}

/**
 * Takes the lock again after a loss of its connection: PostgreSQL ends every connection when one of its processes is
 * killed. A server that is gone as a whole may be started again by an operator or another process, and must then not be
 * stopped under this one.
 * @returns gives the connection to leave with, undefined where the server is gone
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

async function leaveServer(
  holder: pg.Client | undefined,
  cluster: Cluster,
  programs: Programs,
): Promise<void> {
  if (!holder) return
  try {
    await holder.query('select pg_advisory_unlock_shared($1)', [usersLock])
    const { rows } = await holder.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [
      usersLock,
    ])
    if (rows[0]?.last)
      await runProgram(programs.pg_ctl, ['stop', '--wait', '--mode=fast', `--pgdata=${cluster.path}`])
  } catch (error) {
    // A server that went away at this moment needs no stopping; pg_ctl calls that a failure.
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

/** postmaster.pid: process id on line 1, port on line 4. Undefined where no server was started or it stopped. */
function readLockFile(cluster: Cluster): LockFile | undefined {
  try {
    const lines = readFileSync(join(cluster.path, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), port: Number(lines[3] ?? 0) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether a process is the server of this cluster, and not one to which the number of a killed server passed. */
function isPostmaster(pid: number, cluster: Cluster): boolean {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('/bin/ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
    return stdout.includes(cluster.path)
  }
  try {
    // Empty for a killed process whose parent has not yet taken note.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(cluster.path)
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/**
 * PostgreSQL replaces the lock file of a dead server by itself, but not where another process of the same user got
 * its number, which happens at once in containers that start over. Read and removed in one go, without letting other
 * code run: a server that another process starts takes longer to come up than that.
 */
function removeStaleLockFile(cluster: Cluster): void {
  const found = readLockFile(cluster)
  // No number yet: PostgreSQL is just writing the file.
  if (found && found.pid > 0 && !isPostmaster(found.pid, cluster))
    unlinkSync(join(cluster.path, 'postmaster.pid'))
}

/** That of the last start, where it is free: processes that have the address find the server there again. */
async function choosePort(cluster: Cluster): Promise<number> {
  const options = await readFile(join(cluster.path, 'postmaster.opts'), 'utf8').catch(() => '')
  const former = Number(/"port=(\d+)"/.exec(options)?.[1] ?? 0)
  return freePort(former).catch(() => freePort(0))
}

/** @param wanted 0 for any */
async function freePort(wanted: number): Promise<number> {
  const server = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.on('error', reject)
  server.listen(wanted, '127.0.0.1', () => {
    const address = server.address()
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
  })
  return promise
}

async function startError(cluster: Cluster, what: string, cause?: unknown): Promise<Error> {
  const logFile = join(cluster.path, 'server.log')
  const log = await readFile(logFile, 'utf8').catch((error: Error) => String(cause ?? error))
  const end = log.trim().split('\n').slice(-10).join('\n')
  return new Error(`The database in ${cluster.path} ${what}. The end of ${logFile}:\n${end}`, { cause })
}
