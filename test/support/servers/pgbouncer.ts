/** PgBouncer, as packaged by Debian, in front of a test's PostgreSQL. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseUser } from '../../../src/db/embedded/programs.ts'
import { until } from '../until.ts'

export interface PgBouncerOptions {
  poolMode: 'session' | 'transaction'
  /** Start-up options are silently dropped; otherwise they are refused. */
  dropsOptions: boolean
  /** Sessions of one database. */
  sessions?: number
  /** By default, a free one. */
  port?: number
  /** Clients that it takes. */
  clients?: number
  /** How long a client may wait for a session. */
  waitSeconds?: number
  /** The only database that it knows. By default, any. */
  knownDatabase?: string
  /** Of PostgreSQL. By default, that of the first URL. */
  serverPort?: number
}

export type PgBouncer = Awaited<ReturnType<typeof startPgBouncer>>

export const isPgBouncerInstalled = ((): boolean => {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore', env: { PATH: debianPath() } })
    return true
  } catch {
    return false
  }
})()

/** Warns once per run. */
export function warnIfPoolerIsMissing(): void {
  if (!isPgBouncerInstalled) console.warn('No tests with a pooler: PgBouncer is not installed, see .ci/run')
}

/** @param databaseUrls a URL for each login that may connect */
export async function startPgBouncer(databaseUrls: string[], options: PgBouncerOptions) {
  const { poolMode, dropsOptions, sessions = 60, clients = 2_000, waitSeconds = 120 } = options
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-pgbouncer-'))
  await chmod(folder, 0o755)
  const port = options.port ?? (await freePort())
  const server = new URL(databaseUrls[0]!)
  const logins = databaseUrls.map((url) => new URL(url))
  await writeFile(
    join(folder, 'logins.txt'),
    logins.map(({ username, password }) => `"${username}" "${decodeURIComponent(password)}"\n`).join(''),
  )
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
${options.knownDatabase ?? '*'} = host=${server.hostname} port=${options.serverPort ?? server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'logins.txt')}
pool_mode = ${poolMode}
default_pool_size = ${sessions}
max_client_conn = ${clients}
query_wait_timeout = ${waitSeconds}
server_login_retry = 1
ignore_startup_parameters = extra_float_digits${dropsOptions ? ',options' : ''}
`,
  )
  const child = spawn('pgbouncer', ['--quiet', join(folder, 'pgbouncer.ini')], {
    ...databaseUser,
    cwd: '/',
    env: { PATH: debianPath() },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const through = (databaseUrl: string): string => {
    const url = new URL(databaseUrl)
    url.port = String(port)
    return url.href
  }
  await untilListening(child, port)
  return {
    /** The address of the database through the pooler. */
    through,
    stop: async () => {
      child.kill('SIGINT')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors += chunk
  })
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${errors}`)
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return true
    } catch {
      return false
    } finally {
      socket.destroy()
    }
  })
}

/** Debian installs it outside the PATH of ordinary users. */
function debianPath(): string {
  return `${process.env['PATH']}:/usr/sbin`
}

/** A port of the loopback address on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
