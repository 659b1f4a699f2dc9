/** The embedded database: its start, its sharing between processes, its stop, and what a kill leaves. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { databaseUser } from '../../src/db/embedded/programs.ts'
import { ask } from '../support/servers/database.ts'
import { copyCluster } from '../support/servers/own-database.ts'
import { ended, holders, isRefused, portOf, setEmbeddedStage } from '../support/stages/embedded-stage.ts'
import { until } from '../support/until.ts'

const stage = setEmbeddedStage()

describe('the embedded database of an empty folder', () => {
  test('is created on the loopback address, with passwords that only this user can read, and keeps its data', async () => {
    const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
    const settings = await ask(
      first.ownerUrl,
      `select name, setting from pg_settings
       where name in ('fsync', 'listen_addresses', 'unix_socket_directories') order by name`,
    )
    expect(settings.map((row) => row['setting'])).toEqual(['on', '127.0.0.1', ''])
    expect((await stat(join(stage.dataDir, 'postgres.json'))).mode & 0o777).toBe(0o600)
    const intruder = new URL(first.ownerUrl)
    intruder.password = 'guessed'
    await expect(ask(intruder.href, 'select 1')).rejects.toThrow('password authentication failed')
    // Texts are sorted by code point, and upper() handles accents, whatever the locale of the machine.
    const [row] = await ask(
      first.ownerUrl,
      `select string_agg(word, '' order by word) as sorted, upper('é') as upper
       from (values ('a'), ('Z'), ('é'), ('B')) words (word)`,
    )
    expect(row).toEqual({ sorted: 'BZaé', upper: 'É' })
    await ask(first.ownerUrl, 'create table public.kept as select 42 as answer')
    await first.stop()

    // Another program takes its port meanwhile.
    const other = createServer().listen(Number(portOf(first.ownerUrl)), '127.0.0.1')
    await once(other, 'listening')
    const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
    expect(await ask(second.ownerUrl, 'select answer from public.kept')).toEqual([{ answer: 42 }])
    await second.stop()
    other.close()
  })

  test('openDatabase without an address starts and migrates the database, and close stops it', async () => {
    const database = await openDatabase({ dataDir: stage.dataDir, databaseUrl: undefined })
    expect(
      await ask(database.directUrl, 'select max(version) as version from grandlivre.migrations'),
    ).toEqual(await ask(database.ownerUrl, 'select count(*)::int as version from grandlivre.migrations'))
    await database.close()
    await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  })

  test('processes that start it at the same moment share one server', async () => {
    const [one, two, three] = await Promise.all([
      stage.startProcess(),
      stage.startProcess(),
      startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false }),
    ])
    expect(new Set([one, two, three].map((process) => portOf(process.ownerUrl))).size).toBe(1)
    expect(await ask(two.serviceUrl, 'select current_user')).toEqual([{ current_user: 'grandlivre_service' }])
    await Promise.all([one.leave(), two.leave(), three.stop()])
    await expect(ask(one.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
    expect((await readdir(stage.dataDir)).sort()).toEqual(['postgres', 'postgres.json'])
  })
})

describe('the embedded database of a folder', () => {
  beforeEach(() => copyCluster(stage.dataDir))

  test('is reused by the next process, survives a Ctrl-C, and is stopped by the last process that leaves', async () => {
    const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    const other = await stage.startProcess()
    expect(portOf(other.ownerUrl)).toBe(portOf(database.ownerUrl))
    // A Ctrl-C reaches the whole process group of the terminal.
    process.kill(-other.child.pid!, 'SIGINT')
    expect(await ask(other.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await holders(other.ownerUrl)).toBe(2)
    await database.stop()
    expect(await ask(other.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await other.leave()
    await expect(ask(other.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  })

  test('gives a server to a process that arrives while the last one leaves', async () => {
    const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    const [second] = await Promise.all([stage.startProcess(), first.stop()])
    expect(await ask(second.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await second.leave()
  })

  test('a folder with two paths has one server, even before that server answers', async () => {
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

  test('a copy of a folder in use becomes a separate database', async () => {
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

  test('starts again after a kill, even if its process id belongs to another process now', async () => {
    const first = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
    await ask(first.ownerUrl, 'create table public.kept as select 42 as answer')
    process.kill((await stage.postmasterPid())!, 'SIGKILL')
    const second = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
    expect(await ask(second.ownerUrl, 'select answer from public.kept')).toEqual([{ answer: 42 }])
    await first.stop()
    const lockFile = join(stage.dataDir, 'postgres/postmaster.pid')
    process.kill((await stage.postmasterPid())!, 'SIGKILL')
    await second.stop()
    const bystander = spawn('sleep', ['600'], { ...databaseUser, stdio: 'ignore' })
    stage.children.push(bystander)
    await once(bystander, 'spawn')
    const lines = (await readFile(lockFile, 'utf8')).split('\n')
    await writeFile(lockFile, [bystander.pid, ...lines.slice(1)].join('\n'))
    const third = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: true })
    expect(await ask(third.ownerUrl, 'select answer from public.kept')).toEqual([{ answer: 42 }])
    await third.stop()
    bystander.kill()
  })

  test('a killed process releases the server, and the next process uses it', async () => {
    const [killed, other] = [await stage.startProcess(), await stage.startProcess()]
    for (const { child } of [killed, other]) child.kill('SIGKILL')
    await Promise.all([ended(killed.child), ended(other.child)])
    const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    expect(portOf(database.ownerUrl)).toBe(portOf(killed.ownerUrl))
    await until(async () => (await holders(database.ownerUrl)) === 1)
    await database.stop()
    await expect(ask(database.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED')
  })

  test('a start waits 20 seconds for processes that still use a killed server, says so, and then names them', async () => {
    const user = await stage.startProcess()
    const client = new pg.Client({ connectionString: user.ownerUrl })
    client.on('error', () => {})
    await client.connect()
    const { rows } = await client.query<{ id: number }>('select pg_backend_pid() as id')
    const orphan = rows[0]!.id
    process.kill(orphan, 'SIGSTOP')
    user.child.kill('SIGKILL')
    process.kill((await stage.postmasterPid())!, 'SIGKILL')
    const steps: string[] = []
    const start = () =>
      startEmbeddedDatabase({
        dataDir: stage.dataDir,
        durable: false,
        onStep: (doing) => {
          steps.push(doing)
          return () => void steps.push('ended')
        },
      })
    await expect(start()).rejects.toThrow(
      new RegExp(`still run after 20 seconds.* End them, and start again: kill -9 ${orphan}$`),
    )
    const waited = ['waiting for processes of the former database server to end', 'ended']
    expect(steps).toEqual(waited)
    const starting = start()
    await until(() => steps.length === 3)
    process.kill(orphan, 'SIGKILL')
    const database = await starting
    expect(steps).toEqual([...waited, ...waited])
    expect(await ask(database.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await database.stop()
    await client.end()
  })

  test('a failed start reports its own error, not one that an earlier start left in the log', async () => {
    await (await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })).stop()
    await rm(join(stage.clusterPath, 'postgresql.conf'))
    await appendFile(
      join(stage.clusterPath, 'server.log'),
      'FATAL:  pre-existing shared memory block is still in use\n',
    )
    const steps: string[] = []
    const onStep = (doing: string) => {
      steps.push(doing)
      return () => {}
    }
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false, onStep })).rejects.toThrow(
      /does not start.*could not access the server configuration file/s,
    )
    expect(steps).toEqual([])
  })

  test('a process whose connections PostgreSQL has ended keeps the server running', async () => {
    const staying = await stage.startProcess()
    const leaving = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    const checkpointer = async () => {
      const pids = `select pid from pg_stat_activity where backend_type = 'checkpointer'`
      return Number((await ask(leaving.ownerUrl, pids))[0]?.['pid'])
    }
    // When one of its processes is killed, PostgreSQL ends every connection and starts over. The test kills twice,
    // because the lock that is taken again must be watched like the first.
    for (let kills = 0; kills < 2; kills += 1) {
      const killed = await checkpointer()
      process.kill(killed, 'SIGKILL')
      await until(async () => (await checkpointer().catch(() => killed)) !== killed)
      await until(async () => (await holders(leaving.ownerUrl).catch(() => 0)) === 2)
    }
    await leaving.stop()
    expect(await ask(staying.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await staying.leave()
  })

  test.each([
    ['stopped by hand', 'SIGINT'],
    ['killed', 'SIGKILL'],
  ] as const)(
    'a process whose server was %s finds it at the same address once another process has started it, and keeps it running',
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

  test('a folder of another major version, or with other files, is refused', async () => {
    await writeFile(join(stage.dataDir, 'postgres/PG_VERSION'), '17\n')
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
      'was made by PostgreSQL 17',
    )
    await rm(join(stage.dataDir, 'postgres/PG_VERSION'))
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
      'is not a data folder of PostgreSQL',
    )
  })

  test('a start that fails after joining a server leaves that server running', async () => {
    const user = await stage.startProcess()
    const elsewhere = (name: string) => user.ownerUrl.replace('/grandlivre?', `/${name}?`)
    await ask(elsewhere('postgres'), 'drop database grandlivre')
    // PostgreSQL refuses to copy a database that is in use.
    const template = new pg.Client({ connectionString: elsewhere('template1') })
    await template.connect()
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
      'is being accessed by other users',
    )
    await until(async () => (await holders(elsewhere('postgres'))) === 1)
    await template.end()
    await user.leave()
  })

  test('damaged and lost passwords are reported', async () => {
    const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    await writeFile(join(stage.dataDir, 'postgres.json'), '')
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
      'postgres.json is damaged',
    )
    await rm(join(stage.dataDir, 'postgres.json'))
    await expect(startEmbeddedDatabase({ dataDir: stage.dataDir })).rejects.toThrow(
      'postgres.json does not hold the passwords',
    )
    await database.stop()
  })
})
