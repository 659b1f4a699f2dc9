/**
 * `npm run demo`: starts the service from scratch and runs a partner's commands on it. `-- --help` shows the options.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Config, defaultPort, readConfig } from '../../../src/config.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { type Credentials, writeCredentials } from '../../../src/http/reference/demo-credentials.ts'
import { createLog } from '../../../src/log.ts'
import { startService } from '../../../src/start.ts'
import { stopSignal } from '../../../src/stop-signal.ts'
import { command, type Given, type Kind } from '../../terminal/src/command.ts'
import { helpOf } from '../../terminal/src/help.ts'
import { createTerminal } from '../../terminal/src/terminal.ts'
import { readWords } from '../../terminal/src/words.ts'
import { correctEntries, ensureDemoFolder } from './demo-folder.ts'
import { movementsMax } from './seed.ts'

/** Fewer movements give no meaningful sizes and rates. */
const movementsMin = 1_000

const { stdin: input, stdout: out, stderr: err } = process
const { print, note, progress } = createTerminal({ input, out, err })

const movementsKind: Kind<number> = {
  takes: `a whole number from ${movementsMin} to ${movementsMax}`,
  read: (text) => {
    const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    return count >= movementsMin && count <= movementsMax ? count : undefined
  },
}

const options = {
  movements: {
    value: 'count',
    is: movementsKind,
    default: '100000',
    help: `size of the made-up ledger, from ${movementsMin.toLocaleString('en')} to ${movementsMax.toLocaleString('en')}`,
  },
  out: { value: 'folder', default: 'out', help: 'where the exported files go' },
  once: { help: 'stop after the tour instead of running on' },
} as const

/** @throws {Error} if something is missing or wrong, with the remedy; nothing is left running then */
async function runDemo({ movements, out, once: ends }: Given<unknown, typeof options>): Promise<void> {
  const config = readConfig()
  if (config.databaseUrl !== undefined)
    throw new Error(
      'The demo fills a folder of its own and runs on the embedded database: unset DATABASE_URL',
    )
  // Closing the terminal sends SIGHUP.
  const stop = stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP'])
  try {
    await show(config, { movements, out: resolve(out), once: ends === true, stop })
  } catch (error) {
    if (!stop.aborted) throw error
  }
  if (stop.aborted) print('Stopped.')
}

interface Show {
  movements: number
  out: string
  once: boolean
  stop: AbortSignal
}

async function show(config: Config, { movements, out, once: ends, stop }: Show): Promise<void> {
  print(['Grandlivre: a ledger, exported to a partner over HTTP. Ctrl-C stops.', ''])
  await mkdir(out, { recursive: true }).catch((error: Error) => {
    throw new Error(`The files cannot go to ${out}, choose another --out: ${error.message}`)
  })
  const port = config.port === defaultPort ? await freePort(config) : config.port
  const started = performance.now()
  let credentials: Credentials | undefined
  let ownerUrl = ''
  progress('PostgreSQL is starting', 0)
  const service = await startService(
    // The tour sends in seconds what a partner sends in a day.
    { ...config, port, rateLimit: { ...config.rateLimit, requests: 1_000 } },
    {
      log: createLog('warn', process.stderr),
      prepare: async (database, masterKeys) => {
        stop.throwIfAborted()
        ownerUrl = database.ownerUrl
        print(`Database  PostgreSQL, embedded, in ${pathOf(config.dataDir)}; ${since(started)}`)
        const folder = await fillFolder(movements, stop, (onProgress) =>
          ensureDemoFolder(database, masterKeys, { dataDir: config.dataDir, movements, onProgress }),
        )
        return (baseUrl) => {
          credentials = { baseUrl, ...folder }
          writeCredentials(config.dataDir, credentials)
        }
      },
    },
  )
  try {
    stop.throwIfAborted()
    print([`Service   ${service.url}`, ''])
    await tour(ownerUrl, { out, stop }, credentials!)
    await checkTraFile(join(out, files.tra), movements)
    print('')
    await listFiles(out)
    if (ends) return
    print(['', ...invitation(join(config.dataDir, 'credentials.json'), credentials!)])
    if (!stop.aborted) await once(stop, 'abort')
  } finally {
    await service.close()
  }
}

/** Creates the folder and prints how long it took, or that it existed. */
async function fillFolder<Folder>(
  movements: number,
  stop: AbortSignal,
  ensure: (onProgress: (done: number, all: number) => void) => Promise<Folder>,
): Promise<Folder> {
  const started = performance.now()
  const rate = (done: number) =>
    `${Math.round((1000 * done) / (performance.now() - started)).toLocaleString('en')}/s`
  const count = movements.toLocaleString('en')
  let wasMade = false
  const folder = await ensure((done, all) => {
    // Rolls back the whole load, which is one transaction.
    stop.throwIfAborted()
    wasMade = true
    progress(`Ledger: ${done.toLocaleString('en')} of ${count} movements, ${rate(done)}`, done / all)
  })
  const when = wasMade ? `now; ${since(started)}` : 'before'
  print(`Ledger    ${count} movements, beside four small ledgers, made up ${when}`)
  return folder
}

/** What the tour leaves in the folder. */
const files = { year: 'year.ndjson.zst', copy: 'firm.sqlite', json: 'folder.json.zst', tra: 'folder.tra' }

/** A year as a file, a copy before and after a change, and the whole folder. */
async function tour(ownerUrl: string, { out, stop }: Pick<Show, 'out' | 'stop'>, credentials: Credentials) {
  const { societyId, exercices } = credentials
  const exerciceId = exercices.at(-1)!.id
  const to = (file: string) => pathOf(join(out, file))
  const grandlivre = (...words: string[]) => runCommand(words, credentials, stop)
  // The token of the firm opens all its folders.
  const ofFirm = { ...credentials, companyToken: credentials.firmToken }
  const copyFirm = (...words: string[]) => runCommand(words, ofFirm, stop)
  // Of an earlier run, perhaps on another database.
  await rm(join(out, files.copy), { force: true })
  await grandlivre('pull', '--exercice', exerciceId, '--out', to(files.year), '--force')
  await copyFirm('sync', '--to', to(files.copy))
  if (stop.aborted) return
  print([`The bookkeeper corrects ${await correctEntries(ownerUrl, societyId, exerciceId)} entries.`, ''])
  await copyFirm('sync', '--to', to(files.copy))
  await copyFirm('verify', '--to', to(files.copy))
  await copyFirm('folders', '--to', to(files.copy))
  await grandlivre('pull', '--all', '--format', 'json', '--out', to(files.json), '--force')
  await grandlivre('pull', '--all', '--format', 'tra', '--out', to(files.tra), '--force')
}

/**
 * Runs a command of a partner in its own process, so that it takes no time from the service's threads.
 * @throws {Error} if it fails, after it has printed the cause
 */
async function runCommand(
  words: string[],
  { baseUrl, companyToken, thirdPartySecret }: Credentials,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return
  print(`$ grandlivre ${words.join(' ')}`)
  const env = {
    ...process.env,
    GRANDLIVRE_URL: baseUrl,
    GRANDLIVRE_TOKEN: companyToken,
    GRANDLIVRE_SECRET: thirdPartySecret,
    // The user may have chosen a folder of another service.
    GRANDLIVRE_SOCIETY: undefined,
  }
  const program = fileURLToPath(new URL('../../partner/src/grandlivre.ts', import.meta.url))
  const command = spawn(process.execPath, [program, ...words], { env, stdio: 'inherit', signal })
  const [exitCode] = await once(command, 'close')
  if (exitCode !== 0 && !signal.aborted) throw new Error('The demo failed.')
  print('')
}

async function listFiles(out: string): Promise<void> {
  print('Files')
  for (const [file, what] of [
    [files.year, 'the newest year, a movement on each line'],
    [files.copy, 'the copy of the firm, with views for SQL'],
    [files.json, 'the folder in JSON'],
    [files.tra, 'the folder in TRA, for accounting programs'],
  ] as const) {
    const path = join(out, file)
    const megabytes = ((await stat(path)).size / 1e6).toFixed(1)
    print(`  ${pathOf(path).padEnd(20)}  ${megabytes.padStart(6)} MB  ${what}`)
  }
}

/** Checks the file like a bookkeeping program before an import. */
async function checkTraFile(file: string, movements: number): Promise<void> {
  const started = performance.now()
  const { size } = await stat(file)
  const found = await checkTra(createReadStream(file), (bytes, lines) =>
    progress(`Checked: ${lines.toLocaleString('en')} lines`, bytes / size),
  )
  const [first] = found.problems
  if (first) throw new Error(`Line ${first.line}, column ${first.column} of ${file}: ${first.message}`)
  if (found.movements !== movements)
    throw new Error(`${file} has ${found.movements} of the ${movements} movements`)
  print(`The TRA file can be imported: ${movements.toLocaleString('en')} movements; ${since(started)}`)
}

function invitation(credentialsFile: string, { baseUrl, exercices }: Credentials): string[] {
  return [
    'The service keeps running. In another terminal:',
    '',
    `npx grandlivre login --from ${pathOf(credentialsFile)}`,
    'npx grandlivre whoami',
    `npx grandlivre pull --exercice ${exercices.at(-1)!.id} --out year.ndjson`,
    'npx grandlivre listen http://localhost:3000/',
    '',
    `The routes, to try:  ${baseUrl}/docs`,
    'The guides:          docs/partners.md',
    `All credentials:     ${pathOf(credentialsFile)}`,
    'Ctrl-C stops the service and its database.',
  ]
}

/** The default port or one of the next, so that other programs on this machine do not stop the demo. */
async function freePort({ host, port }: Pick<Config, 'host' | 'port'>): Promise<number> {
  for (let candidate = port; candidate < port + 20; candidate += 1)
    if (await isFree(host, candidate)) return candidate
  return 0
}

function isFree(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  // Other problems of the host are reported when the service starts to listen.
  server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRINUSE'))
  server.listen(port, host, () => server.close(() => resolve(true)))
  return promise
}

/** The path, relative if it is inside the current folder. */
function pathOf(path: string): string {
  const fromHere = relative('.', path)
  return fromHere.startsWith('..') ? path : fromHere || '.'
}

function since(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`
}

// A closed output (`| head`, a closed terminal) must not leave the database running.
for (const output of [out, err]) output.on('error', () => {})

const demo = command({
  name: '',
  summary: 'starts the service on an embedded database, fills a folder, and exports it as a partner would',
  options,
  run: (_: undefined, given) => runDemo(given),
})

try {
  const given = readWords(demo, process.argv.slice(2), {})
  if (given !== 'help') await demo.run(undefined, given)
  else print(helpOf({ call: 'npm run demo --', options: {} }, demo))
} catch (error) {
  note((error as Error).message.split('\n'))
  process.exitCode = 1
}
