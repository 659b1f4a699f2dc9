/** `npm start`: runs the service until SIGTERM or SIGINT. A second signal ends it at once. */
import { once } from 'node:events'
import { limits, readConfig } from './config.ts'
import type { Database } from './db/database.ts'
import { createLog } from './log.ts'
import { ensureDemoFolder, writeCredentials } from './sample/demo-folder.ts'
import { startService } from './start.ts'
import { stopSignal } from './stop-signal.ts'

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog(config.logLevel)
  // Installed before the start: a process killed while starting would leave its embedded database running.
  const stop = stopSignal()
  stop.addEventListener('abort', () => setTimeout(giveUp, limits.stopMs).unref())
  const service = await startService(config, {
    log,
    // The operator's own server gets no demo folder.
    ...(config.databaseUrl === undefined ? { prepare: prepareDemo } : {}),
  })
  if (!stop.aborted) await once(stop, 'abort')
  log('service.stopping', { signal: stop.reason })
  log('service.stopped', { drained: await service.close() })
  // A silent store may still hold the process open, although nothing waits for its answer any more.
  process.exit()

  function giveUp(): void {
    log('service.stopped', { drained: false })
    process.exit(1)
  }

  async function prepareDemo(database: Database, masterKey: Buffer): Promise<(url: string) => void> {
    const folder = await ensureDemoFolder(database, masterKey, { dataDir: config.dataDir })
    return (baseUrl) => writeCredentials(config.dataDir, { baseUrl, ...folder })
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
