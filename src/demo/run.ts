/** The demo from its start to its end: settings, service, folder, the tour of a partner, and on. */
import { spawn } from 'node:child_process'
import { once as event } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createProgressBar } from '../commands/terminal/progress-bar.ts'
import { type Config, defaultPort, readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { type Credentials, ensureDemoFolder, writeCredentials } from '../sample/demo-folder.ts'
import { startService } from '../start.ts'
import { stopSignal } from '../stop-signal.ts'
import { pathOf } from './table.ts'

export interface DemoOptions {
  movements: string
  out: string
  once: boolean
}

/** Fewer leave a month too small to be cut in two. */
const movementsMin = 1_000
const movementsMax = 5_000_000

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** @throws {Error} where something is missing or found wrong, with what to do; nothing is left running then */
export async function runDemo(options: DemoOptions): Promise<void> {
  const movements = /^\d{1,9}$/.test(options.movements) ? Number(options.movements) : Number.NaN
  if (!(movements >= movementsMin && movements <= movementsMax))
    throw new Error(`--movements takes a whole number from 1000 to 5000000, not "${options.movements}"`)
  const config = readConfig()
  if (config.databaseUrl !== undefined)
    throw new Error(
      'The demo fills a folder of its own and runs on the embedded database: unset DATABASE_URL',
    )
  // A terminal that is closed sends SIGHUP.
  const stop = stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP'])
  try {
    await show(config, { movements, out: resolve(options.out), once: options.once, signal: stop })
  } catch (error) {
    if (!stop.aborted) throw error
  }
  // On a terminal behind what it has drawn of a progress bar.
  if (stop.aborted) print(`${process.stdout.isTTY ? '\r\x1b[K' : ''}Stopped.`)
}

interface Show {
  movements: number
  out: string
  once: boolean
  signal: AbortSignal
}

async function show(config: Config, { movements, out, once, signal }: Show): Promise<void> {
  print('Grandlivre: a ledger, and what a partner gets of it over HTTP. Ctrl-C stops.\n')
  await mkdir(out, { recursive: true }).catch((error: Error) => {
    throw new Error(`The files cannot go to ${out}, choose another --out: ${error.message}`)
  })
  const port = config.port === defaultPort ? await freePort(config) : config.port
  const credentialsFile = join(config.dataDir, 'credentials.json')
  const started = performance.now()
  let folder: Omit<Credentials, 'baseUrl'> | undefined
  const progress = createProgressBar(process.stdout)
  progress.show(0, 'PostgreSQL is starting')
  const service = await startService(
    { ...config, port },
    {
      log: createLog('warn', process.stderr),
      prepare: async (database, masterKey) => {
        signal.throwIfAborted()
        progress.clear()
        print(`Database  PostgreSQL, embedded, in ${pathOf(config.dataDir)}; ${since(started)}`)
        const made = await fillFolder(movements, signal, (onProgress) =>
          ensureDemoFolder(database, masterKey, { dataDir: config.dataDir, movements, onProgress }),
        )
        folder = made
        return (baseUrl) => writeCredentials(config.dataDir, { baseUrl, ...made })
      },
    },
  ).finally(() => progress.clear())
  try {
    signal.throwIfAborted()
    print(`Service   ${service.url}`)
    await visit([credentialsFile, String(movements), out], signal)
    if (once) return
    print('')
    for (const line of invitation(credentialsFile, { baseUrl: service.url, ...folder! })) print(line)
    await aborted(signal)
  } finally {
    await service.close()
  }
}

/** Makes the folder, and says how long it took, or that it was there. */
async function fillFolder<Folder>(
  movements: number,
  signal: AbortSignal,
  ensure: (onProgress: (done: number, all: number) => void) => Promise<Folder>,
): Promise<Folder> {
  const progress = createProgressBar(process.stdout)
  const started = performance.now()
  const rate = (done: number) =>
    `${Math.round((1000 * done) / (performance.now() - started)).toLocaleString('en')}/s`
  const count = movements.toLocaleString('en')
  let wasMade = false
  try {
    const folder = await ensure((done, all) => {
      // Undoes the whole load: it is one transaction.
      signal.throwIfAborted()
      wasMade = true
      progress.show(done / all, `Ledger: ${done.toLocaleString('en')} of ${count} movements, ${rate(done)}`)
    })
    progress.clear()
    print(`Ledger    ${count} movements, made up${wasMade ? ` now; ${since(started)}` : ' before'}`)
    return folder
  } finally {
    progress.clear()
  }
}

function invitation(credentialsFile: string, credentials: Credentials): string[] {
  const { baseUrl, companyToken, thirdPartySecret, exercices } = credentials
  const { id, start } = exercices.at(-1)!
  const year = start.slice(0, 4)
  return [
    'It serves on. In another terminal:',
    '',
    `API=${baseUrl}/api/v1`,
    `TOKEN=${companyToken}`,
    `SECRET=${thirdPartySecret}`,
    'partner() { curl -sS -H "Authorization: Bearer $TOKEN" \\',
    '  -H "X-Third-Party-Secret: $SECRET" "$@"; }',
    'MOVEMENTS="$API/mad/movements?version=1.0.0"',
    'partner "$API/key/info?mode=extended"; echo',
    `partner "$MOVEMENTS&idExercice=${id}" 2>/dev/null | head -c 900; echo`,
    `partner "$MOVEMENTS&idExercice=${id}&classAccount=411&lettering=none" | wc -c`,
    `partner -i -H "Accept: application/x-ndjson" \\`,
    `  "$MOVEMENTS&startDate=${year}-03-01&endDate=${year}-03-31" \\`,
    '  | cut -c 1-78 | sed -n 1,20p',
    'EXPORT=$(partner "$API/mad/all?version=1.0.0&format=json" \\',
    '  | grep -o "export_[0-9a-f]*" | head -1)',
    'partner "$API/mad/all/status?exportId=$EXPORT"; echo',
    '',
    'The last answer has the "url" of the file, which needs no headers.',
    `The routes:       ${baseUrl}/api/v1/openapi.json`,
    `All credentials:  ${pathOf(credentialsFile)}`,
    'Ctrl-C stops the service and its database.',
  ]
}

/** Runs the partner to its end. @throws {Error} where it fails, which it has explained by then */
async function visit(argv: string[], signal: AbortSignal): Promise<void> {
  const file = fileURLToPath(new URL('./visit.ts', import.meta.url))
  const partner = spawn(process.execPath, [file, ...argv], { stdio: 'inherit', signal })
  const [exitCode] = await event(partner, 'close')
  if (exitCode !== 0 && !signal.aborted) throw new Error('The demo failed.')
}

/** The default port or one of the next: a demo shall not fail over what else runs here. */
async function freePort({ host, port }: Pick<Config, 'host' | 'port'>): Promise<number> {
  for (let candidate = port; candidate < port + 20; candidate += 1) {
    if (await isFree(host, candidate)) return candidate
  }
  return 0
}

function isFree(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  // Whatever else is wrong with the host is told when the service listens there.
  server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRINUSE'))
  server.listen(port, host, () => server.close(() => resolve(true)))
  return promise
}

function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

function since(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`
}
