/** A process that is the service, until SIGTERM or SIGINT. A later one ends it at once. */
import { once } from 'node:events'
import { readConfig } from '../config.ts'
import type { Database } from '../db/database.ts'
import { createLog } from '../log.ts'
import { ensureDemoFolder, writeCredentials } from '../sample/demo-folder.ts'
import { startService } from '../start.ts'
import { stopSignal } from '../stop-signal.ts'
import type { Timing } from '../timing.ts'

/** Ends the process, with exit code 0 where all answers ended by themselves. */
export function runUntilSignal(timing: Timing): void {
  run(timing).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

async function run(timing: Timing): Promise<void> {
  const config = readConfig()
  const log = createLog(config.logLevel)
  // From here on: a service that dies while it starts would leave its embedded database running.
  const stop = stopSignal()
  stop.addEventListener('abort', () => setTimeout(giveUp, timing.stopMs).unref())
  const service = await startService(config, {
    log,
    timing,
    // A server of the operator's own gets no invented folder.
    ...(config.databaseUrl === undefined ? { prepare: prepareDemo } : {}),
  })
  if (!stop.aborted) await once(stop, 'abort')
  log('service.stopping', { signal: stop.reason })
  log('service.stopped', { drained: await service.close() })
  // A store that has fallen silent may still be waited for, with nobody left to tell.
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
