import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { Config } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { type StartOptions, startService } from '../../src/start.ts'
import { throughPooler } from './pooled/pooled-run.ts'

/** The same in all tests of a run: databases that one has filled are copied for others, with the fingerprint of their key. */
export const testMasterKey = createHash('sha256').update('the master key of tests').digest()

export interface TestService {
  url: string
  consoleUrl: string | undefined
  metricsUrl: string | undefined
  /** The JSON lines it has logged so far. */
  lines: string[]
  /** @param drainMs how long it answers requests first */
  stop(drainMs?: number): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Starts the whole service on a free port and the test's database, with a rate limit that no test reaches by
 * accident.
 */
export async function startTestService(
  database: { ownerUrl: string },
  settings: Partial<Config> = {},
  options: Pick<StartOptions, 'prepare' | 'timing'> = {},
): Promise<TestService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-service-'))
  const lines: string[] = []
  const out = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const config: Config = {
    host: '127.0.0.1',
    port: 0,
    dataDir,
    databaseUrl: database.ownerUrl,
    directDatabaseUrl: undefined,
    exportDatabaseUrl: undefined,
    masterKey: testMasterKey,
    formerMasterKey: undefined,
    timeZone: 'Europe/Paris',
    exportThreads: 1,
    exportsPerThread: 8,
    rateLimit: { requests: 100_000, windowMs: 10_000, concurrent: 10 },
    publicUrl: undefined,
    store: { kind: 'filesystem', folder: join(dataDir, 'files') },
    fileRetentionDays: 7,
    changesRetentionDays: 400,
    webhookAllowInsecure: false,
    webhookSubscriptionsMax: 100,
    auditRetentionMonths: 12,
    metrics: undefined,
    otlpEndpoint: undefined,
    tracesShare: 1,
    console: undefined,
    drainSeconds: 0,
    stopSeconds: 25,
    logLevel: 'debug',
    mistyped: [],
    ...settings,
  }
  const pooled = await throughPooler(config)
  const service = await startService(pooled ? { ...config, ...pooled.settings } : config, {
    log: createLog(config.logLevel, out),
    ...options,
  }).catch(async (error) => {
    await pooled?.end()
    throw error
  })
  const stop = async (drainMs?: number) => {
    await pooled?.check()
    await service.close(drainMs)
    await pooled?.end()
    await rm(dataDir, { recursive: true })
  }
  const { url, consoleUrl, metricsUrl } = service
  return { url, consoleUrl, metricsUrl, lines, stop, [Symbol.asyncDispose]: stop }
}

export interface Answer {
  status: number
  headers: Headers
  /** Parsed if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape
  body: any
}

export async function request(
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  const response = await fetch(url, { method, headers })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}
