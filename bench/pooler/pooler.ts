/**
 * `npm run bench -- pooler`: what an export costs directly and through PgBouncer in transaction mode, in processor time of
 * the service, of PostgreSQL and of the pooler. With `--against FOLDER` another checkout of the project takes turns with
 * this one, directly.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { movementsMax, movementsMin } from '../../packages/sample/src/seed.ts'
import { databaseUser } from '../../src/db/embedded/programs.ts'
import { type Dataset, makeDataDir, openDataset } from '../dataset.ts'
import { startUsage } from '../measure.ts'
import { against as anotherCheckout, readOptions, wholeNumber } from '../options.ts'
import { freePort, project, runBench, say, startProcess } from '../own-process.ts'
import { describeMachine, machineLine } from '../report/results.ts'
import { alignedTable } from '../report/table.ts'
import { measure, type Way, wayOver } from '../rounds.ts'
import { environmentOf, movementsPath, type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { median } from '../statistics.ts'
import { createPooledLogin } from './pooled-login.sql.ts'

interface Measured {
  serviceMs: number
  databaseMs: number
  poolerMs: number
  ms: number
}

runBench(async (stack) => {
  const { movements, rounds, against } = readOptions('npm run bench -- pooler', {
    movements: wholeNumber('movements of the folder', 600_000, [movementsMin, movementsMax]),
    rounds: wholeNumber('rounds', 10, [1, 1_000]),
    against: anotherCheckout,
  })
  const dataset = await openDataset(movements, stack)
  const bouncer = await startBouncer(dataset, stack)
  const path = `${movementsPath}&idExercice=${dataset.year.exerciceId}`
  const checkouts = [['before', against] as const, ['directly', project] as const]
  const direct: { name: string; service: ServiceProcess }[] = []
  for (const [name, checkout] of checkouts) {
    if (checkout === undefined) continue
    const service = await startServiceProcess(dataset.dataDir, {}, checkout)
    stack.defer(service.stop)
    direct.push({ name, service })
  }
  // Each start on the data folder issues new credentials.
  const { headers } = direct.at(-1)!.service
  const ways = direct.map(({ name, service }) => wayOver(name, service, service.url + path, headers))
  ways.push(await pooledWay(dataset, bouncer.url, path, headers, stack))

  const results = new Map<string, Measured[]>(ways.map(({ name }) => [name, []]))
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++)
    for (const way of ways) {
      say(`round ${round} of ${rounds}: ${way.name}`)
      const endPooler = startUsage({ pid: bouncer.pid, databasePid: dataset.databasePid })
      const { cpuMs, databaseCpuMs, ms } = await measure(way, dataset.databasePid)
      const poolerMs = endPooler().cpuMs ?? 0
      if (round > 0)
        results.get(way.name)!.push({ serviceMs: cpuMs ?? 0, databaseMs: databaseCpuMs ?? 0, poolerMs, ms })
    }
  return [
    machineLine(describeMachine(dataset.postgresVersion)),
    ...tableOf(results),
    '',
    `Medians of ${rounds} rounds, one export of ${movements.toLocaleString('en')} movements each. The change is that of service and`,
    'database together against the first line, the median of the changes of all rounds.',
  ]
})

function tableOf(results: Map<string, Measured[]>): string[] {
  const first = [...results.values()][0]!
  const lines = [...results].map(([name, samples]) => {
    const of = (read: (sample: Measured) => number) => Math.round(median(samples.map(read))).toString()
    const changes = samples.map((sample, i) => cpuOf(sample) / cpuOf(first[i]!) - 1)
    return [
      name,
      of(({ serviceMs }) => serviceMs),
      of(({ databaseMs }) => databaseMs),
      of(({ poolerMs }) => poolerMs),
      of(cpuOf),
      `${(median(changes) * 100).toFixed(1)} %`,
      of(({ ms }) => ms),
    ]
  })
  return alignedTable([['', 'service', 'database', 'pooler', 'service + database', 'change', 'ms'], ...lines])
}

function cpuOf({ serviceMs, databaseMs }: Measured): number {
  return serviceMs + databaseMs
}

async function pooledWay(
  dataset: Dataset,
  databaseUrl: string,
  path: string,
  headers: Record<string, string>,
  stack: AsyncDisposableStack,
): Promise<Way> {
  const port = await freePort()
  const dataDir = await makeDataDir(stack)
  const service = startProcess([process.execPath, '--max-semi-space-size=4', join(project, 'src/main.ts')], {
    env: {
      ...environmentOf(dataDir),
      MALLOC_ARENA_MAX: '1',
      NODE_COMPILE_CACHE: join(project, '.cache/compile'),
      DATABASE_URL: databaseUrl,
      DIRECT_DATABASE_URL: dataset.ownerUrl,
      MASTER_KEY: dataset.masterKey,
      PORT: String(port),
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      RATE_LIMIT_REQUESTS: '1000000',
    },
  })
  stack.defer(service.stop)
  const url = `http://127.0.0.1:${port}`
  while ((await fetch(`${url}/readyz`).catch(() => undefined))?.status !== 200)
    await Promise.race([delay(50), service.failed])
  return wayOver('through the pooler', service, url + path, headers)
}

async function startBouncer(
  dataset: Dataset,
  stack: AsyncDisposableStack,
): Promise<{ url: string; pid: number }> {
  const login = { name: 'web', password: 'bench' }
  const owner = new pg.Client(dataset.ownerUrl)
  await owner.connect()
  await createPooledLogin(owner, login).finally(() => owner.end())
  const folder = await makeDataDir(stack)
  const port = await freePort()
  const { hostname, port: serverPort } = new URL(dataset.ownerUrl)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(join(folder, 'logins.txt'), `"${login.name}" "${login.password}"\n`)
  writeFileSync(
    file,
    `[databases]\n* = host=${hostname} port=${serverPort}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\n` +
      `unix_socket_dir =\nauth_type = plain\nauth_file = ${join(folder, 'logins.txt')}\npool_mode = transaction\n` +
      'default_pool_size = 40\nmax_client_conn = 1000\nignore_startup_parameters = extra_float_digits\n',
  )
  for (const path of [file, join(folder, 'logins.txt')]) chmodSync(path, 0o644)
  const child = spawn('pgbouncer', ['--quiet', file], {
    ...databaseUser,
    cwd: '/',
    env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 2],
  })
  stack.defer(async () => {
    child.kill('SIGINT')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await delay(500)
  const url = new URL(dataset.ownerUrl)
  Object.assign(url, { username: login.name, password: login.password, port: String(port) })
  return { url: url.href, pid: child.pid! }
}
