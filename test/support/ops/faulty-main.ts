/**
 * The service like `src/main.ts`, whose own faults a test may cause by a message: `crash a thread`, `leak connections`
 * (from now on, those of requests are taken and not given back), `give connections back`.
 */
import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { type Worker, type WorkerOptions } from 'node:worker_threads'
import pg from 'pg'

const threads = new Set<Worker>()

workerThreads.Worker = class extends workerThreads.Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    super(file, options)
    threads.add(this)
    this.once('exit', () => threads.delete(this))
  }
}
// For modules that import the class by its name.
syncBuiltinESMExports()

let isLeaking = false
const leaked: (() => void)[] = []
const connect = pg.Pool.prototype.connect as (called?: () => void) => Promise<pg.PoolClient>

pg.Pool.prototype.connect = function connectOrLeak(this: pg.Pool, called?: () => void) {
  // With a function, the caller is `query` of the pool itself.
  return called ? connect.call(this, called) : connectAndLeak(this)
} as typeof pg.Pool.prototype.connect

async function connectAndLeak(pool: pg.Pool): Promise<pg.PoolClient> {
  const client = await connect.call(pool)
  const { application_name: name } = pool.options as { application_name?: string }
  if (isLeaking && name === 'grandlivre') {
    const release = client.release.bind(client)
    client.release = () => void leaked.push(release)
  }
  return client
}

process.on('message', (message) => {
  if (message === 'crash a thread') void [...threads][0]?.terminate()
  isLeaking = message === 'leak connections'
  if (message === 'give connections back') for (const release of leaked.splice(0)) release()
})
// The channel to the test does not keep the process running.
process.channel?.unref()

const { ensureDemoFolder } = await import('../../../packages/sample/src/demo-folder.ts')
const { runUntilSignal } = await import('../../../src/start/run-until-signal.ts')
const { defaultTiming } = await import('../../../src/timing.ts')
runUntilSignal({ ...defaultTiming, ...JSON.parse(process.argv[2] ?? '{}') }, ensureDemoFolder)
