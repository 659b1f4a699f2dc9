/** A cluster, two processes of the service on it, one through PgBouncer, writers, and every sort of partner at work. */
import { join } from 'node:path'
import { Random } from '../../../packages/sample/src/made-up/random.ts'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { cli } from '../cli.ts'
import { credentials } from '../ledgers/tenants.ts'
import { type ServiceProcess, startProcess } from '../process.ts'
import { startCluster } from './cluster.ts'
import { Findings, type Loop } from './findings.ts'
import { startFollower, startProber, type Year } from './followers.ts'
import { startExports, startPulls, syncOf } from './programs.ts'
import type { Caller } from './read.ts'
import { startSubscribers } from './subscribers.ts'
import { startWriters } from './writers.ts'

export type Load = Awaited<ReturnType<typeof startLoad>>

const folderCount = 5
const movementsEach = 600

export async function startLoad(parts: { nodes: number; out: string; seed: number }) {
  const { nodes, out, seed } = parts
  const findings = new Findings()
  const cluster = await startCluster(nodes)
  const services: ServiceProcess[] = []
  const { ownerUrl } = cluster
  try {
    await ran(ownerUrl, 'migrate')
    const made = await ran(ownerUrl, 'seed', '--folders', `${folderCount}`, '--movements', `${movementsEach}`)
    const [secret, token] = ['Secret', 'Token'].map(
      (what) => new RegExp(`^${what}: (\\S+)$`, 'm').exec(made)![1]!,
    )
    const owner = createOwnerPool(ownerUrl, { max: 2, applicationName: 'grandlivre test' })
    owner.on('error', () => {})
    await owner.query('create table public.commit_clock (n bigint primary key)')
    const years = await openYears(owner)
    const settings = { DATABASE_URL: ownerUrl, DATA_DIR: join(out, 'data'), WEBHOOK_ALLOW_INSECURE: 'true' }
    services.push(await startProcess(settings))
    for (const statement of loginOfPooler(cluster.poolerUrl)) await owner.query(statement)
    const pooled = { DATABASE_URL: cluster.poolerUrl, DIRECT_DATABASE_URL: ownerUrl }
    services.push(await startProcess({ ...settings, ...pooled, EXPORT_DATABASE_URL: cluster.replicasUrl }))
    const urls = services.map(({ url }) => url)
    const caller: Caller = { urls, headers: credentials(token!, secret!), findings }
    const subscribers = await startSubscribers(caller, secret!)
    const [imported, ...written] = years.map(({ schemaId, folderId }) => ({ schemaId, folderId }))
    const writers = startWriters({ ownerUrl, folders: written, imported: imported!, out, findings, seed })
    const [one, two, three] = years.slice(1) as Year[] as [Year, Year, Year]
    const followers = [
      startFollower(caller, one, 20),
      startFollower(caller, two, 5),
      startFollower(caller, three, 2),
    ]
    const sleeper = startFollower(caller, one, 0)
    const prober = startProber(caller, two)
    const env = { GRANDLIVRE_URL: urls[0]!, GRANDLIVRE_TOKEN: token!, GRANDLIVRE_SECRET: secret! }
    const sync = syncOf(caller, env, out)
    const loops: Loop[] = [
      ...writers.loops,
      ...[...followers, sleeper, prober, subscribers].map(({ loop }) => loop),
      startPulls(caller, { ...env, GRANDLIVRE_URL: urls[1]! }, three, out, new Random(seed)),
      startExports(caller, owner, one.folderId),
    ]
    let isAtWork = false
    const rest = async () => {
      isAtWork = false
      await Promise.all(loops.map((loop) => loop.pause()))
    }
    await rest()
    return {
      cluster,
      findings,
      writers,
      /** The follower that sleeps during the failover. */
      sleeper,
      /** Resumes all work. */
      go: async () => {
        if (isAtWork) return
        isAtWork = true
        sync.start()
        for (const loop of loops) loop.resume()
      },
      /** Pauses all work: nothing changes until `go`. */
      rest,
      /** Checks all copies. Call it while the work is paused. */
      check: async () => {
        for (const follower of [...followers, sleeper]) await follower.check(owner)
        await prober.check()
        await sync.check()
        await subscribers.check()
        for (const service of services) findFailedRequests(service, findings)
      },
      stop: async () => {
        await Promise.all(loops.map((loop) => loop.stop()))
        await sync.stop()
        await subscribers.close()
        await writers.close()
        await owner.end()
        for (const service of services) await service.kill()
        await cluster.stop()
      },
    }
  } catch (error) {
    for (const service of services) await service.kill()
    await cluster.stop()
    throw error
  }
}

/** The statements of docs/operators/scaling.md#a-pooler. */
const loginOfPooler = (url: string) => [
  `create role web login password '${new URL(url).password}'`,
  'grant grandlivre_service to web with set true',
  `alter role web set role = 'grandlivre_service'`,
  'alter role web set search_path = grandlivre',
  'alter role web set datestyle = ISO',
]

const read = new WeakMap<ServiceProcess, number>()

/** Records the answers 500 since the last call, each with the error of its request. */
function findFailedRequests(service: ServiceProcess, findings: Findings): void {
  if (service.child.exitCode !== null)
    throw new Error(`A process of the service ended with ${service.child.exitCode}`)
  const lines = service.log()
  const later = lines.slice(read.get(service) ?? 0)
  read.set(service, lines.length)
  for (const line of later) {
    if (!line.includes('"request.ended"') || !line.includes('"status":500')) continue
    const { requestId, path } = JSON.parse(line) as { requestId: string; path: string }
    const why = later.find((each) => each.includes(requestId) && !each.includes('"request.ended"'))
    findings.add('answers 500', `${path}: ${why ?? line}`)
  }
}

async function ran(ownerUrl: string, ...words: string[]): Promise<string> {
  const { code, out, error } = await cli(ownerUrl, ...words)
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${error}`)
  return out
}

/** The open exercice of each folder. */
async function openYears(
  owner: ReturnType<typeof createOwnerPool>,
): Promise<(Year & { schemaId: string })[]> {
  const { rows } = await owner.query(
    `select distinct on (folder_id) schema_id as "schemaId", folder_id as "folderId", id as "exerciceId"
     from grandlivre.exercices where closed_at is null order by folder_id, start_date desc`,
  )
  return rows
}
