/** The service in its own process, which a test may stop, freeze or kill. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import type { Timing } from '../../src/timing.ts'
import { openFolder } from './fixtures/temporary-folder.ts'
import { throughPooler } from './pooled/pooled-run.ts'
import { testMasterKey } from './service.ts'
import { until } from './until.ts'

/**
 * The environment of every process of the project that a test starts. Without the compile cache of the run, each
 * process would spend a second of processor time on stripping types.
 */
export const environment = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
}

/** A program that collects what it prints. */
export interface RunningProgram {
  child: ChildProcess
  /** The output so far. */
  output: { out: string; error: string }
  /** Exit code and signal. */
  ended: Promise<[number | null, string | null]>
}

/** Runs Node, by default in the checkout. @param env all of it: begin with `environment` */
export function runNode(words: string[], env: NodeJS.ProcessEnv, cwd?: string): RunningProgram {
  const child = spawn(process.execPath, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { out: '', error: '' }
  child.stdout.on('data', (chunk) => {
    output.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.error += chunk
  })
  return { child, output, ended: once(child, 'close') as RunningProgram['ended'] }
}

export interface RunningService {
  url: string
  /** Whether the service has logged that event, for that export if one is given. */
  logged(event: string, exportId?: string): boolean
}

export interface ServiceProcess extends RunningService {
  child: ChildProcess
  /** Lines of the log until now. */
  log(): string[]
  /** Exit code and signal. */
  ended: Promise<[number | null, string | null]>
  /** Kills it if it still runs, and waits for its end. */
  kill(): Promise<void>
}

/** Settings of every service under test, unless its own settings differ. */
export const serviceSettings = {
  PORT: '0',
  MASTER_KEY: testMasterKey.toString('hex'),
  RATE_LIMIT_REQUESTS: '100000',
  EXPORT_THREADS: '1',
  // No balancer sends requests to these services.
  DRAIN_SECONDS: '0',
}

/**
 * Whether the log has that event, for that export if one is given.
 * @param lines the log of the service
 */
export function logged(lines: string[], event: string, exportId = ''): boolean {
  return lines.some((line) => line.includes(`"event":"${event}"`) && line.includes(exportId))
}

/**
 * @param settings its environment, at least DATABASE_URL; without DATA_DIR it has a folder of its own
 * @param timing what differs from the default
 * @param root the checkout to start it from
 * @param program that starts it there
 */
export async function startProcess(
  settings: Record<string, string>,
  timing: Partial<Timing> = {},
  root = resolve(import.meta.dirname, '../..'),
  program = 'test/support/service-main.ts',
): Promise<ServiceProcess> {
  const pooled = await throughPooler({
    databaseUrl: settings['DATABASE_URL'],
    directDatabaseUrl: settings['DIRECT_DATABASE_URL'],
    exportDatabaseUrl: settings['EXPORT_DATABASE_URL'],
  })
  const folder = await openFolder('process')
  const own = { DATA_DIR: folder.path, ...serviceSettings }
  const env = { ...environment, ...own, ...settings, ...pooled?.environment }
  const { child, output, ended } = runNode([program, JSON.stringify(timing)], env, root)
  void ended.then(() => Promise.all([pooled?.end(), folder.drop()]))
  const lines = () => output.out.split('\n')
  await until(() => lines().some((line) => line.includes('service.listening')) || child.exitCode !== null)
  const listening = lines().find((line) => line.includes('service.listening'))
  if (!listening) throw new Error(`The service did not start: ${output.error}`)
  return {
    url: JSON.parse(listening).url,
    child,
    log: lines,
    logged: (event, exportId) => logged(lines(), event, exportId),
    ended,
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }
}
