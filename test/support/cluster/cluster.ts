/** The cluster of `ops/patroni/`, started as by `ops/patroni/try`, and the faults that its nodes may have. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { patroniFiles } from '../ops/patroni.ts'
import { type Proxy as Connection, startProxy } from '../servers/proxy.ts'
import { until } from '../until.ts'

/** The state that a node reports of itself. The state that others report of it may be seconds old. */
interface Node {
  name: string
  isLeader: boolean
  isStreaming: boolean
  isSynchronous: boolean
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** A standby that does not stream after this time cannot be rewound. */
const reinitializeMs = 45_000

/** See `ops/patroni/try`. */
const portsOfCluster = 24

export async function startCluster(count: number) {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-cluster-'))
  const port = await freePorts()
  const names = Array.from({ length: count }, (_, index) => `node${index + 1}`)
  const connections = new Map<string, Connection>()
  for (const name of names) {
    const connection = await startProxy(`http://127.0.0.1:${port}`)
    connections.set(name, connection)
    const hosts = new URL(connection.url).host
    await writeFile(
      join(folder, `${name}.env`),
      `PATRONI_ETCD3_HOSTS=${hosts}\nPATRONI_ETCD3_USE_PROXIES=true\n`,
    )
  }
  const script = spawn(join(patroniFiles, 'try'), [folder, '--port', `${port}`, '--nodes', `${count}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [script.stdout, script.stderr]) stream.on('data', (chunk) => (output += chunk))
  await until(() => output.includes('The cluster is there') || script.exitCode !== null)
  if (script.exitCode !== null) throw new Error(`The cluster did not start: ${output}`)
  const password = (await readFile(join(folder, 'password'), 'utf8')).trim()
  const addressOf = (offset: number, login = 'ledger') =>
    `postgres://${login}:${password}@127.0.0.1:${port + offset}/ledger`
  const numberOf = (node: string) => Number(node.slice('node'.length))
  const ask = async (node: string, path: string, method = 'GET', body?: unknown): Promise<Response> =>
    fetch(`http://127.0.0.1:${port + 20 + numberOf(node)}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(method === 'GET' ? 3_000 : 60_000),
    })
  const nodes = async (): Promise<Node[]> => {
    const answers = await Promise.all(
      names.map(async (name) => {
        try {
          const said = (await (await ask(name, '/patroni')).json()) as Record<string, unknown>
          const isRunning = said['state'] === 'running'
          const isLeader = isRunning && said['role'] === 'primary' && (await ask(name, '/primary')).ok
          const isStreaming = isRunning && said['replication_state'] === 'streaming'
          return [{ name, isLeader, isStreaming, isSynchronous: said['sync_standby'] === true }]
        } catch {
          return []
        }
      }),
    )
    return answers.flat()
  }
  const leader = async (): Promise<string> => {
    let name: string | undefined
    await until(async () => {
      name = (await nodes()).find(({ isLeader }) => isLeader)?.name
      return name !== undefined
    })
    return name!
  }
  const asked = async (path: string, method: string, body: unknown) => {
    const answer = await ask(await leader(), path, method, body)
    if (!answer.ok) throw new Error(`${path} answered ${answer.status} ${await answer.text()}`)
  }
  let isSynchronous = true
  const settle = async () => {
    const anew = new Set<string>()
    const since = Date.now()
    await until(async () => {
      const all = await nodes()
      const late = all.filter((node) => !node.isLeader && !node.isStreaming)
      for (const { name } of late) {
        if (Date.now() - since < reinitializeMs || anew.has(name)) continue
        anew.add(name)
        await ask(name, '/reinitialize', 'POST', { force: true }).catch(() => {})
      }
      const isChosen = count === 1 || all.some((node) => node.isSynchronous) === isSynchronous
      const isWhole = all.length === count && late.length === 0
      return isWhole && isChosen && all.filter(({ isLeader }) => isLeader).length === 1
    })
  }
  const pidOf = async (file: string) => Number((await readFile(join(folder, file), 'utf8')).split('\n')[0])
  const postgresOf = async (node: string) => {
    const postmaster = await pidOf(`${node}/postmaster.pid`)
    return [postmaster, ...(await childrenOf(postmaster))]
  }
  const startNode = (node: string) => {
    spawn(join(folder, 'start-node'), [`${numberOf(node)}`], { stdio: 'ignore', detached: true })
  }
  return {
    /** The address for writing, as the owner of the database. */
    ownerUrl: addressOf(2),
    /** The address of a standby through PgBouncer, with the login `web`, which the caller creates. */
    replicasUrl: addressOf(3, 'web'),
    poolerUrl: addressOf(4, 'web'),
    /** The nodes that answer. */
    nodes,
    leader,
    /** Waits until every node is in its place; a node that cannot be rewound is rebuilt. */
    settle,
    setSynchronous: async (wanted: boolean) => {
      await asked('/config', 'PATCH', { synchronous_mode: wanted })
      isSynchronous = wanted
      await settle()
      // Patroni reports the change one round before the primary no longer waits for a standby.
      await until(async () => ((await standbyNames(addressOf(2))) !== '') === wanted)
    },
    switchover: async () => asked('/switchover', 'POST', { leader: await leader() }),
    /** Ends Patroni, PostgreSQL and all its processes at once, as if the machine were gone. */
    killMachine: async (node: string) => {
      const postgres = await postgresOf(node)
      signal([await pidOf(`${node}.pid`), ...postgres], 'SIGKILL')
    },
    killPostgres: async (node: string) => signal([await pidOf(`${node}/postmaster.pid`)], 'SIGKILL'),
    startNode,
    /** Freezes Patroni and PostgreSQL, until the returned function is called. */
    freeze: async (node: string) => {
      const all = [await pidOf(`${node}.pid`), ...(await postgresOf(node))]
      signal(all, 'SIGSTOP')
      return () => signal(all, 'SIGCONT')
    },
    /** Withholds the log of this node from its standbys, while the node continues. */
    holdLog: async (node: string) => {
      const postgres = await postgresOf(node)
      const senders = await Promise.all(
        postgres.map(async (pid) => (await titleOf(pid)).includes('walsender')),
      )
      signal(
        postgres.filter((_, index) => senders[index]),
        'SIGSTOP',
      )
    },
    /** Breaks the connection between Patroni of this node and etcd: refuses connections, or swallows what is sent. */
    cutEtcd: async (node: string, how: 'refused' | 'silent') => {
      const connection = connections.get(node)!
      if (how === 'silent') {
        connection.freeze()
        return async () => connection.thaw()
      }
      await connection.cut()
      return () => connection.restore()
    },
    stop: async () => {
      // A frozen process would not end.
      for (const name of names)
        signal(
          [await pidOf(`${name}.pid`).catch(() => 0), ...(await postgresOf(name).catch(() => []))].filter(
            Boolean,
          ),
          'SIGCONT',
        )
      script.kill('SIGTERM')
      await until(() => script.exitCode !== null || script.signalCode !== null)
      for (const connection of connections.values()) await connection.cut()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The names of the standbys that the primary waits for. */
async function standbyNames(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ names: string }>(
      `select current_setting('synchronous_standby_names') as names`,
    )
    return rows[0]!.names
  } finally {
    await client.end()
  }
}

function signal(pids: number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch (error) {
      // The process has already ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

async function titleOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
}

/** The first of the neighbouring free ports that a cluster needs. */
async function freePorts(): Promise<number> {
  for (
    let first = 15_000 + Math.floor(Math.random() * 400) * 32;
    ;
    first = 15_000 + ((first + 32 - 15_000) % 12_800)
  ) {
    const ports = Array.from({ length: portsOfCluster }, (_, index) => first + index)
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first
    await delay(10)
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
