/** Runs the service until SIGTERM or SIGINT. A second signal ends the process at once. */
import { once } from 'node:events'
import { relative } from 'node:path'
import type { MasterKeys } from '../auth/secrets.ts'
import { readConfig } from '../config.ts'
import type { Database } from '../db/database.ts'
import { type Credentials, credentialsPath, writeCredentials } from '../http/reference/demo-credentials.ts'
import { createLog } from '../log.ts'
import { startService } from '../start.ts'
import { stopSignal } from '../stop-signal.ts'
import type { Timing } from '../timing.ts'

interface Terminal {
  write(text: string): unknown
  /** The current folder of the process. */
  folder: string
}

/** Fills a folder with sample data, to try the service on the embedded database. Creates only what is missing. */
type MakeDemoFolder = (
  database: Database,
  masterKeys: MasterKeys,
  options: { dataDir: string },
) => Promise<Omit<Credentials, 'baseUrl'>>

/**
 * Runs the service and then ends the process. The exit code is 0 if it has stopped, and 1 if it could not start or
 * could not stop in time.
 * @param terminal where somebody reads what to do next; logs still go to standard output
 */
export function runUntilSignal(...options: Parameters<typeof run>): void {
  run(...options).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

async function run(timing: Timing, makeDemoFolder: MakeDemoFolder, terminal?: Terminal): Promise<void> {
  const config = readConfig()
  let credentials: Credentials | undefined
  const log = createLog(config.logLevel)
  for (const mistyped of config.mistyped) log('setting.unknown', mistyped)
  // Installed before the start: a signal during the start would otherwise kill the process and leave its embedded
  // database running.
  const stop = stopSignal()
  const longestMs = (config.drainSeconds + config.stopSeconds) * 1000 + timing.closeMs
  stop.addEventListener('abort', () => setTimeout(giveUp, longestMs).unref())
  const service = await startService(config, {
    log,
    timing,
    // An operator's own server gets no demo folder.
    ...(config.databaseUrl === undefined ? { prepare: prepareDemo } : {}),
  })
  if (credentials) terminal?.write(welcome(credentials, credentialsPath(config.dataDir), terminal.folder))
  const wasReady = !stop.aborted
  if (wasReady) await once(stop, 'abort')
  log('service.stopping', { signal: stop.reason })
  // A drain serves only a ready process that gets SIGTERM: Ctrl-C comes from somebody who waits, and a balancer sends
  // no requests to a process that was never ready.
  const drains = wasReady && stop.reason === 'SIGTERM'
  log('service.stopped', { drained: await service.close(drains ? config.drainSeconds * 1000 : 0) })
  // A silent store may still hold the process open, although nothing waits for its answer any more.
  process.exit()

  function giveUp(): void {
    log('service.stopped', { drained: false })
    process.exit(1)
  }

  async function prepareDemo(database: Database, masterKeys: MasterKeys): Promise<(url: string) => void> {
    const folder = await makeDemoFolder(database, masterKeys, { dataDir: config.dataDir })
    return (baseUrl) => {
      credentials = { baseUrl, ...folder }
      writeCredentials(config.dataDir, credentials)
    }
  }
}

/**
 * What `npm start` shows on a terminal once the service runs: its address, and what to paste next.
 * @param credentialsFile path of the file; shown relative to `folder` if it lies inside
 */
function welcome(credentials: Credentials, credentialsFile: string, folder: string): string {
  const { baseUrl, exercices } = credentials
  const { id, start } = exercices.at(-1)!
  const year = start.endsWith('-01-01') ? start.slice(0, 4) : id
  const fromHere = relative(folder, credentialsFile)
  const file = fromHere.startsWith('..') ? credentialsFile : fromHere
  return `
Grandlivre runs at ${baseUrl}, with a made-up ledger. In another terminal, in this folder:

  npx grandlivre login --from ${file.includes(' ') ? `'${file}'` : file}
  npx grandlivre pull --exercice ${year} --out ${year}.ndjson
  npx grandlivre listen http://localhost:3000/hook

Documentation:           ${baseUrl}/docs/
Routes to read and try:  ${baseUrl}/docs/api/
Tokens and the secret:   ${file}
Ctrl-C stops the service and its database.

`
}
