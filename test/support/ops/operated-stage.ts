/**
 * The service as a larger operator runs it: through PgBouncer, with a replica for exports, files on an S3 server, behind
 * TLS, with a subscriber, read by Prometheus. Between the service and each of them stands what a test may break.
 */
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type SeededFolder, seed } from '../../../packages/sample/src/seed.ts'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import type { Timing } from '../../../src/timing.ts'
import { disableSubscription, enableSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { createTenants, credentials } from '../ledgers/tenants.ts'
import { environment, serviceSettings } from '../process.ts'
import { startReceiver } from '../receiver.ts'
import { startReplication } from '../replication/standby.ts'
import { freePort, type PgBouncer, startPgBouncer } from '../servers/pgbouncer.ts'
import { startProxy, type Proxy as Way } from '../servers/proxy.ts'
import { startS3Proxy } from '../servers/s3-proxy.ts'
import { startS3Server } from '../servers/s3-servers.ts'
import { until } from '../until.ts'
import { startTlsServer } from './certificate.ts'
import { startLoad } from './load.ts'
import { type PrometheusOptions, startPrometheus } from './prometheus.ts'

/** The library of Debian's package faketime. */
const clockLibrary = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
export const isClockChangeable = existsSync(clockLibrary)

/** Size of the primary's disk. */
const diskBytes = '1500m'

export type OperatedStage = Awaited<ReturnType<typeof startOperatedStage>>

export interface OperatedOptions {
  movements: number
  prometheus: Pick<PrometheusOptions, 'factor' | 'scrapeSeconds'>
  /** The times that differ from production. */
  timing?: Partial<Timing>
}

/** The only path that receives events. */
export const receiverPath = '/events'

export async function startOperatedStage(options: OperatedOptions) {
  await using stack = new AsyncDisposableStack()
  const disk = await mountDisk(stack)
  const replication = await startReplication(disk)
  stack.defer(() => replication.drop())
  const { primary, standby } = replication
  const folder = await seed(primary.ownerUrl, { movements: options.movements, year: 2025 })
  const { headers, receiver } = await addPartner(primary.ownerUrl, folder, stack)
  const pooled = await startPooler(primary.ownerUrl, stack)
  const s3 = await startS3Server('versitygw')
  stack.defer(() => s3.stop())
  const store = await startS3Proxy(s3.endpoint)
  stack.defer(() => store.close())
  const tls = await startTlsServer(inDays(100))
  stack.defer(() => tls.close())
  const clockFile = join(await temporaryFolder('grandlivre-clock-', stack), 'clock')
  /** Moves the clock of the service's process by seconds. */
  const moveClock = (seconds: number) => writeFile(clockFile, `${seconds < 0 ? '' : '+'}${seconds}s`)
  await moveClock(0)
  const metricsPort = await freePort()
  const settings = {
    ...(isClockChangeable ? clockSettings(clockFile) : {}),
    DATABASE_URL: pooled.url,
    DIRECT_DATABASE_URL: primary.ownerUrl,
    EXPORT_DATABASE_URL: exportUrlOf(standby.ownerUrl),
    DATA_DIR: await temporaryFolder('grandlivre-operated-', stack),
    S3_ENDPOINT: store.endpoint,
    S3_PUBLIC_ENDPOINT: s3.endpoint,
    S3_BUCKET: 'exports',
    S3_ACCESS_KEY: s3.accessKey,
    S3_SECRET_KEY: s3.secretKey,
    PUBLIC_URL: tls.url,
    METRICS_PORT: String(metricsPort),
    WEBHOOK_ALLOW_INSECURE: 'true',
  }
  const service = await startService(settings, options.timing ?? {}, stack)
  const subscriptionId = await subscribe(service.url, headers, receiver.url + receiverPath)
  const owner = createOwnerPool(primary.ownerUrl, { max: 4, applicationName: 'test load' })
  stack.defer(() => owner.end())
  const load = startLoad({ url: service.url, headers, folder, owner })
  stack.defer(() => load.stop())
  const target = `127.0.0.1:${metricsPort}`
  const prometheus = await startPrometheus({ target, ...options.prometheus })
  stack.defer(() => prometheus.stop())
  const running = stack.move()
  return {
    ...{ replication, pooler: pooled, store, receiver, tls, prometheus, load, service, moveClock, disk },
    /** Triggers a full export. @returns its id */
    triggerExport: async () => {
      await owner.query('update grandlivre.exports set latest = false where latest')
      const response = await fetch(`${service.url}/api/v1/mad/all?version=1.0.0&format=JSON`, { headers })
      return ((await response.json()) as { id: string }).id
    },
    /** Sends pending deliveries at once, as staff may. */
    sendAgain: () =>
      inTransaction(owner, async (client) => {
        await disableSubscription(client, subscriptionId, 'by a test', Date.now())
        await enableSubscription(client, subscriptionId)
      }),
    close: () => running.disposeAsync(),
  }
}

export function inDays(days: number): Date {
  return new Date(Date.now() + days * 86_400_000)
}

/** PgBouncer in transaction mode, at an address that stays when it is restarted. */
async function startPooler(
  ownerUrl: string,
  stack: AsyncDisposableStack,
): Promise<{ url: string; restart(): Promise<void> }> {
  const webUrl = await addWebLogin(ownerUrl)
  const start = () => startPgBouncer([webUrl], { poolMode: 'transaction', dropsOptions: false })
  let pooler: PgBouncer = await start()
  stack.defer(() => pooler.stop())
  const way: Way = await startProxy(pooler.through(webUrl))
  stack.defer(() => way.cut())
  return {
    url: way.url,
    restart: async () => {
      await pooler.stop()
      pooler = await start()
      way.redirectTo(pooler.through(webUrl))
    },
  }
}

/** The login of the pooler: its settings come from the role, since no start-up option passes a pooler. */
async function addWebLogin(ownerUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  await client.query(`create role web login password 'web';
    grant grandlivre_service to web with set true;
    alter role web set role = 'grandlivre_service';
    alter role web set search_path = grandlivre;
    alter role web set datestyle = 'ISO'`)
  await client.end()
  return Object.assign(new URL(ownerUrl), { username: 'web', password: 'web' }).href
}

/** With DIRECT_DATABASE_URL, exports log in like requests. */
function exportUrlOf(standbyUrl: string): string {
  return Object.assign(new URL(standbyUrl), { username: 'web', password: 'web' }).href
}

async function addPartner(ownerUrl: string, folder: SeededFolder, stack: AsyncDisposableStack) {
  const staff = await createTenants(ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const headers = credentials(await staff.token('ONE', 'api', folder), secret)
  await staff.end()
  const receiver = await startReceiver(secret)
  stack.defer(() => receiver.close())
  return { headers, receiver }
}

async function subscribe(url: string, headers: Record<string, string>, postUrl: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ postUrl, onEvents: ['document'] }),
  })
  if (response.status !== 201) throw new Error(await response.text())
  return String(((await response.json()) as { id: number }).id)
}

async function startService(
  settings: Record<string, string>,
  timing: Partial<Timing>,
  stack: AsyncDisposableStack,
) {
  const child = fork(join(import.meta.dirname, 'faulty-main.ts'), [JSON.stringify(timing)], {
    cwd: join(import.meta.dirname, '../../..'),
    env: { ...environment, ...serviceSettings, ...settings },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const ended = once(child, 'close')
  stack.defer(async () => {
    child.kill('SIGTERM')
    await ended
  })
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (text += chunk))
  const lines = () => text.split('\n')
  const listening = () => lines().find((line) => line.includes('service.listening'))
  await until(() => listening() !== undefined || child.exitCode !== null)
  const line = listening()
  if (line === undefined) throw new Error(`The service did not start: ${text}`)
  return {
    url: JSON.parse(line).url,
    child,
    get lines() {
      return lines()
    },
  }
}

/** The monotonic clock and timers stay as they are, as when an administrator sets the time of day. */
function clockSettings(clockFile: string): Record<string, string> {
  return {
    LD_PRELOAD: clockLibrary,
    DONT_FAKE_MONOTONIC: '1',
    FAKETIME_DONT_RESET: '1',
    FAKETIME_NO_CACHE: '1',
    FAKETIME_TIMESTAMP_FILE: clockFile,
  }
}

async function temporaryFolder(prefix: string, stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A small disk in memory, if this user may mount one. */
async function mountDisk(stack: AsyncDisposableStack): Promise<string> {
  const folder = await temporaryFolder('grandlivre-disk-', stack)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', folder], { stdio: 'ignore' })
  stack.defer(() => void execFileSync('umount', ['-l', folder]))
  await chmod(folder, 0o755)
  return folder
}
