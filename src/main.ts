/** `npm start`: the service until SIGTERM or SIGINT. A second signal ends it at once. */
import { readConfig } from './config.ts'
import type { Database } from './db/database.ts'
import { ensureDemoFolder, writeCredentials } from './demo-folder.ts'
import { createLog } from './log.ts'
import { startService } from './start.ts'

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog(config.logLevel)
  const service = await startService(config, {
    log,
    // A server of the operator's own gets no invented folder.
    ...(config.databaseUrl === undefined ? { prepare: prepareDemo } : {}),
  })
  const signal = await firstSignal()
  log('service.stopping', { signal })
  log('service.stopped', { drained: await service.close() })
  // A store that has fallen silent may still be waited for, with nobody left to tell.
  process.exit()

  async function prepareDemo(database: Database, masterKey: Buffer): Promise<(url: string) => void> {
    const folder = await ensureDemoFolder(database, masterKey, { dataDir: config.dataDir })
    return (baseUrl) => writeCredentials(config.dataDir, { baseUrl, ...folder })
  }
}

function firstSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      process.once(signal, () => process.exit(1))
      resolve(signal)
    })
  return promise
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
