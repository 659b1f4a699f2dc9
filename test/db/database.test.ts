/** The embedded database: who starts it, who shares it, who stops it, and what a kill leaves behind. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { databaseUser } from '../../src/db/embedded/programs.ts'
import { ask, ended, holders, isRefused, portOf, setEmbeddedStage } from '../support/stages/embedded-stage.ts'
import { until } from '../support/until.ts'

const stage = setEmbeddedStage()

test('is started, reused by the next process, and stopped by the last that leaves', async () => {
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const other = await stage.startProcess()
  expect(portOf(other.ownerUrl)).toBe(portOf(database.ownerUrl))
  await database.stop()
  expect(await ask(other.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await other.leave()
  await expect(ask(other.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})

test('keeps what was written, over a stop and a start', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
  await ask(first.ownerUrl, 'create table kept as select 42 as answer')
  await first.stop()
  const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
  expect(await ask(second.ownerUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(await ask(second.ownerUrl, 'show fsync')).toEqual([{ fsync: 'on' }])
  await second.stop()
})

test('listens on the loopback address only, behind passwords that only this user can read', async () => {
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const settings = await ask(
    database.ownerUrl,
    `select name, setting from pg_settings
     where name in ('listen_addresses', 'unix_socket_directories') order by name`,
  )
  expect(settings.map((row) => row['setting'])).toEqual(['127.0.0.1', ''])
  expect((await stat(join(stage.dataDir, 'postgres.json'))).mode & 0o777).toBe(0o600)
  const intruder = new URL(database.ownerUrl)
  intruder.password = 'guessed'
  await expect(ask(intruder.href, 'select 1')).rejects.toThrow('password authentication failed')
  await database.stop()
})

test('sorts by code point and knows accents, whatever the locale of the machine', async () => {
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const [row] = await ask(
    database.ownerUrl,
    `select string_agg(word, '' order by word) as sorted, upper('é') as upper
     from (values ('a'), ('Z'), ('é'), ('B')) words (word)`,
  )
  expect(row).toEqual({ sorted: 'BZaé', upper: 'É' })
  await database.stop()
})

test('two processes that start it at the same moment share one server', async () => {
  const [one, two, three] = await Promise.all([
    stage.startProcess(),
    stage.startProcess(),
    stage.startProcess(),
  ])
  expect(new Set([one, two, three].map((process) => portOf(process.ownerUrl))).size).toBe(1)
  expect(await ask(two.serviceUrl, 'select current_user')).toEqual([{ current_user: 'grandlivre_service' }])
  await Promise.all([one.leave(), two.leave(), three.leave()])
  await expect(ask(one.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  expect((await readdir(stage.dataDir)).sort()).toEqual(['postgres', 'postgres.json'])
})

test('a process that comes while the last one leaves has a server in the end', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const [second] = await Promise.all([stage.startProcess(), first.stop()])
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.leave()
})

test('a folder that is reached by two paths has one server, also while that does not answer yet', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const silent = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const lockFile = join(stage.clusterPath, 'postmaster.pid')
  const lines = await readFile(lockFile, 'utf8')
  const { port } = silent.address() as AddressInfo
  await writeFile(lockFile, lines.replace(`\n${portOf(first.ownerUrl)}\n`, `\n${port}\n`))
  const link = join(stage.folder, 'link')
  await symlink(stage.dataDir, link)
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
  const original = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const copyDir = join(stage.folder, 'copy')
  execFileSync('cp', ['-a', stage.dataDir, copyDir])
  const copy = await startEmbeddedDatabase({ dataDir: copyDir, durable: false })
  await ask(copy.ownerUrl, 'create table copied ()')
  await expect(ask(original.ownerUrl, 'select from copied')).rejects.toThrow('does not exist')
  await copy.stop()
  expect(await ask(original.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await original.stop()
  expect((await readdir(stage.clusterPath)).filter((name) => name.startsWith('mark-'))).toEqual([])
})

test('comes back after the server was killed', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
  await ask(first.ownerUrl, 'create table kept as select 42 as answer')
  process.kill((await stage.postmasterPid())!, 'SIGKILL')
  const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
  expect(await ask(second.ownerUrl, 'select answer from kept')).toEqual([{ answer: 42 }])
  await second.stop()
  await first.stop()
})

test('comes back where the number of the killed server belongs to another process now', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  const lockFile = join(stage.dataDir, 'postgres/postmaster.pid')
  const server = (await stage.postmasterPid())!
  process.kill(server, 'SIGKILL')
  await first.stop()
  const bystander = spawn('sleep', ['600'], { ...databaseUser, stdio: 'ignore' })
  stage.children.push(bystander)
  await once(bystander, 'spawn')
  const lines = (await readFile(lockFile, 'utf8')).split('\n')
  await writeFile(lockFile, [bystander.pid, ...lines.slice(1)].join('\n'))
  const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  bystander.kill()
})

test('a killed user of the server is not waited for', async () => {
  const killed = await stage.startProcess()
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  expect(portOf(database.ownerUrl)).toBe(portOf(killed.ownerUrl))
  killed.child.kill('SIGKILL')
  await ended(killed.child)
  await until(async () => (await holders(database.ownerUrl)) === 1)
  await database.stop()
  await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})

test('the server that a killed service leaves behind is used by the next', async () => {
  const killed = await stage.startProcess()
  killed.child.kill('SIGKILL')
  await ended(killed.child)
  const next = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  expect(portOf(next.ownerUrl)).toBe(portOf(killed.ownerUrl))
  await next.stop()
})

test('a process whose connections PostgreSQL has ended still holds the server', async () => {
  const staying = await stage.startProcess()
  const leaving = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
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
    const staying = await stage.startProcess()
    process.kill((await stage.postmasterPid())!, signal)
    await until(() => isRefused(staying.ownerUrl))
    const leaving = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    await until(async () => (await holders(leaving.ownerUrl)) === 2)
    await leaving.stop()
    expect(await ask(staying.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await staying.leave()
    await expect(ask(staying.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  },
)

test('a server whose port is taken meanwhile is started at another', async () => {
  const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  await first.stop()
  const other = createServer().listen(Number(portOf(first.ownerUrl)), '127.0.0.1')
  await once(other, 'listening')
  const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  other.close()
})

test('Ctrl-C, which reaches the whole group of the terminal, does not reach the server', async () => {
  const user = await stage.startProcess()
  process.kill(-user.child.pid!, 'SIGINT')
  expect(await ask(user.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await holders(user.ownerUrl)).toBe(1)
  await user.leave()
})

test('a folder of another major version, or of something else, is refused and left alone', async () => {
  await (await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })).stop()
  await writeFile(join(stage.dataDir, 'postgres/PG_VERSION'), '17\n')
  await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow('was made by PostgreSQL 17')
  await rm(join(stage.dataDir, 'postgres/PG_VERSION'))
  await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
    'is not a data folder of PostgreSQL',
  )
})

test('a start that fails once the server is up leaves that as it was', async () => {
  const user = await stage.startProcess()
  const elsewhere = (name: string) => user.ownerUrl.replace('/grandlivre?', `/${name}?`)
  await ask(elsewhere('postgres'), 'drop database grandlivre')
  // PostgreSQL refuses to copy a database that somebody uses.
  const template = new pg.Client({ connectionString: elsewhere('template1') })
  await template.connect()
  await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
    'is being accessed by other users',
  )
  await until(async () => (await holders(elsewhere('postgres'))) === 1)
  await template.end()
  await user.leave()
})

test('lost passwords are told as such', async () => {
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
  await writeFile(join(stage.dataDir, 'postgres.json'), '')
  await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow('postgres.json is damaged')
  await rm(join(stage.dataDir, 'postgres.json'))
  await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
    'postgres.json does not hold the passwords',
  )
  await database.stop()
})

test('openDatabase without an address starts it, migrated, and close stops it', async () => {
  const database = await openDatabase({ dataDir: stage.dataDir, databaseUrl: undefined })
  expect(await ask(database.serviceUrl, 'select max(version) as version from grandlivre.migrations')).toEqual(
    await ask(database.ownerUrl, 'select count(*)::int as version from grandlivre.migrations'),
  )
  await database.close()
  await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
})
