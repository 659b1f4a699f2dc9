/**
 * `npm run demo` starts the service from scratch and runs a partner's commands on it: a tour, or with `--firm` a copy
 * that follows the bookkeeper of a firm. `npm run demo -- --help` shows the options.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findFolder } from '../../../src/auth/tokens.sql.ts'
import { type Config, defaultPort, namesDatabase, readConfig } from '../../../src/config.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import {
  type Credentials,
  credentialsPath,
  writeCredentials,
} from '../../../src/http/reference/demo-credentials.ts'
import { createLog } from '../../../src/log.ts'
import { startService } from '../../../src/start.ts'
import { stopSignal } from '../../../src/stop-signal.ts'
import { countText, secondsText } from '../../terminal/src/amounts.ts'
import { command, type Given, helpOf, numberKind } from '../../terminal/src/command.ts'
import { createTerminal } from '../../terminal/src/terminal.ts'
import { readWords } from '../../terminal/src/words.ts'
import { correctEntries, type DemoOptions, ensureDemoFolder } from './demo-folder.ts'
import { Random } from './made-up/random.ts'
import { asOwner, movementsMax } from './seed.ts'
import { showProgress } from './seed-command.ts'
import { correctSome } from './simulate.ts'

/** Least number of movements: with fewer, sizes and rates would mean nothing. */
const movementsMin = 1_000

/** For `--firm`: number of folders, how many of them each round corrects, and seconds until the first round. */
const firmDemo = { folders: 30, corrected: 3, firstSeconds: 5 }

const { stdin: input, stdout: out, stderr: err } = process
const { print, note, progress } = createTerminal({ input, out, err })

/** Aborts on Ctrl-C. SIGHUP is the signal of a terminal that is closed. */
const stop = stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP'])

const options = {
  movements: {
    value: 'count',
    is: numberKind('a whole number', movementsMin, movementsMax),
    help: `size of the made-up ledger, from ${countText(movementsMin)} to ${countText(movementsMax)}; default 100000`,
  },
  out: { value: 'folder', help: 'where the exported files go; default out' },
  firm: {
    help: `instead of the tour: a firm of ${firmDemo.folders} folders with a bookkeeper who corrects them, and a copy that follows`,
  },
  every: {
    value: 'seconds',
    is: numberKind('a number of seconds', 1, 86_400),
    help: 'with --firm: pause between corrections; default 60',
  },
  once: { help: 'stop after the tour instead of running on' },
} as const

/** @throws {Error} whose message says what is wrong and what to do. Nothing is left running afterwards */
async function runDemo(given: Given<unknown, typeof options>): Promise<void> {
  const { movements, out = 'out', every, once: isOnce = false } = given
  if (given.firm && (isOnce || given.out !== undefined))
    throw new Error('--out and --once are for the tour: leave them out with --firm')
  if (!given.firm && every !== undefined) throw new Error('--every is for a firm: give --firm, too')
  // Checked before the settings are read, which would ask for a key to go with DATABASE_URL.
  if (namesDatabase()) throw new Error('The demo runs on the embedded database: unset DATABASE_URL')
  const config = readConfig()
  try {
    if (given.firm) await showFirm(config, movements, every ?? 60)
    else await showTour(config, movements ?? 100_000, resolve(out), isOnce)
  } catch (error) {
    if (!stop.aborted) throw error
  }
  if (stop.aborted) print('Stopped.')
}

async function showTour(config: Config, movements: number, out: string, isOnce: boolean): Promise<void> {
  print(['Grandlivre: a ledger, exported to a partner over HTTP. Ctrl-C stops.', ''])
  await makeFolder(out).catch((error: Error) => {
    throw new Error(`The files cannot go to ${out}, choose another --out: ${error.message}`)
  })
  await withService(config, { movements }, async (ownerUrl, credentials) => {
    await runTour(ownerUrl, config, out, credentials)
    await checkTraFile(join(out, files.tra), movements)
    print('')
    await listFiles(out)
    if (isOnce) return
    print('')
    invite(config, credentials, [
      `npx grandlivre listen --profile demo --society ${credentials.societyId} http://localhost:3000/`,
      '',
      'And all commands above, after the login.',
    ])
    if (!stop.aborted) await once(stop, 'abort')
  })
}

/**
 * Makes the folders of a path one after the other. A recursive mkdir of Node never ends if the system refuses folders,
 * as in /proc.
 */
async function makeFolder(path: string): Promise<void> {
  if ((await stat(path).catch(() => undefined))?.isDirectory()) return
  await makeFolder(dirname(path))
  await mkdir(path)
}

/** Keeps a copy of a firm that follows the corrections of its bookkeeper, until Ctrl-C. */
async function showFirm(config: Config, movements: number | undefined, every: number): Promise<void> {
  print(['Grandlivre: a firm, whose ledgers a partner follows. Ctrl-C stops.', ''])
  const copy = join(config.dataDir, files.copy)
  // A copy of an earlier run may belong to another port, and sync would refuse it.
  await rm(copy, { force: true })
  await withService(config, { movements, besides: firmDemo.folders - 1 }, async (ownerUrl, credentials) => {
    invite(config, credentials, [
      `npx grandlivre folders --profile demo --to ${wordOf(pathOf(copy))}`,
      `${settingOf(config)}npm run cli -- status`,
      `${settingOf(config)}npm run cli -- folder list`,
    ])
    print('')
    const ended = new AbortController()
    const signal = AbortSignal.any([stop, ended.signal])
    const sync = ['sync', '--profile', 'demo', '--to', pathOf(copy)]
    await runCommand([...loginWords(config), '--replace'], config, signal)
    // Corrections begin only when the copy is complete, so that each one can be seen to arrive.
    await runCommand(sync, config, signal)
    const both = [
      runCommand([...sync, '--follow'], config, signal),
      keepCorrecting(ownerUrl, credentials.societyId, every, signal),
    ]
    // If one of the two fails, it ends the other.
    const results = await Promise.allSettled(both.map((each) => each.finally(() => ended.abort())))
    const failed = results.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
    if (failed && !stop.aborted) throw failed.reason
  })
  print(
    `Everything is in ${pathOf(config.dataDir)}: database, key, credentials, copy. Delete it to start over.`,
  )
}

async function keepCorrecting(ownerUrl: string, folderId: string, every: number, signal: AbortSignal) {
  const random = new Random(Date.now())
  await asOwner(ownerUrl, 'demo', async (pool) => {
    const { firmId } = (await inTransaction(pool, (client) => findFolder(client, folderId)))!
    for (let seconds = Math.min(every, firmDemo.firstSeconds); ; seconds = every) {
      await delay(seconds * 1_000, undefined, { signal })
      print('The bookkeeper corrects:')
      for await (const line of correctSome(pool, firmId, firmDemo.corrected, random)) print(`  ${line}`)
    }
  }).catch((error) => {
    if (!signal.aborted) throw error
  })
}

/** Starts the service on the demo folder and its firm, calls `run`, and stops the service when `run` has ended. */
async function withService(
  config: Config,
  { movements, besides }: Pick<DemoOptions, 'movements' | 'besides'>,
  run: (ownerUrl: string, credentials: Credentials) => Promise<void>,
): Promise<void> {
  const port = config.port === defaultPort ? await freePort(config) : config.port
  const started = performance.now()
  let credentials: Credentials | undefined
  let ownerUrl = ''
  progress('PostgreSQL is starting', 0)
  const service = await startService(
    // The tour sends as many requests in seconds as a partner in a day.
    { ...config, port, rateLimit: { ...config.rateLimit, requests: 1_000 } },
    {
      log: createLog('warn', process.stderr),
      prepare: async (database, masterKeys) => {
        stop.throwIfAborted()
        ownerUrl = database.ownerUrl
        print(`Database  PostgreSQL, embedded, in ${pathOf(config.dataDir)}; ${since(started)}`)
        const filling = performance.now()
        const show = showProgress({ progress }, filling, 'Ledger: ')
        let wasMade = false
        const onProgress = (done: number, all: number) => {
          // The load is one transaction, so throwing here rolls all of it back.
          stop.throwIfAborted()
          wasMade = true
          show(done, all)
        }
        const options = { dataDir: config.dataDir, movements, besides, onProgress }
        const folder = await ensureDemoFolder(database, masterKeys, options)
        const when = wasMade ? `now; ${since(filling)}` : 'before'
        print(
          besides === undefined
            ? `Ledger    ${countText(movements!)} movements, beside small ledgers, made up ${when}`
            : `Ledgers   ${besides + 1} of one firm, made up ${when}`,
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
    await run(ownerUrl, credentials!)
  } finally {
    await service.close()
  }
}

/** The files that the tour leaves in its folder. */
const files = { year: 'year.ndjson.zst', copy: 'firm.sqlite', json: 'folder.json.zst', tra: 'folder.tra' }

/** The tour: a year as a file, a copy before and after a change, and the whole folder as files. */
async function runTour(
  ownerUrl: string,
  config: Config,
  out: string,
  { societyId, exercices }: Credentials,
): Promise<void> {
  const exerciceId = exercices.at(-1)!.id
  const to = (file: string) => pathOf(join(out, file))
  const grandlivre = (name: string, ...words: string[]) =>
    runCommand([name, '--profile', 'demo', ...words], config)
  const pull = (...words: string[]) => grandlivre('pull', '--society', societyId, ...words, '--force')
  // A copy of an earlier run may belong to another database, and sync would refuse it.
  await rm(join(out, files.copy), { force: true })
  await runCommand([...loginWords(config), '--replace'], config)
  await pull('--exercice', exerciceId, '--out', to(files.year))
  await grandlivre('sync', '--to', to(files.copy))
  if (stop.aborted) return
  print([`The bookkeeper corrects ${await correctEntries(ownerUrl, societyId, exerciceId)} entries.`, ''])
  await grandlivre('sync', '--to', to(files.copy))
  await grandlivre('verify', '--to', to(files.copy))
  await grandlivre('folders', '--to', to(files.copy))
  await pull('--all', '--format', 'json', '--out', to(files.json))
  await pull('--all', '--format', 'tra', '--out', to(files.tra))
}

/**
 * The words of a login with the firm's token, which opens all its folders. It uses the profile `demo`, so that it
 * replaces no profile of the reader.
 */
function loginWords(config: Config): string[] {
  return ['login', '--profile', 'demo', '--firm', '--from', credentialsOf(config)]
}

function commandOf(words: string[]): string {
  return `npx grandlivre ${words.map(wordOf).join(' ')}`
}

/**
 * Runs a command of a partner in a separate process, so that it takes no time from the service's threads. Its login is
 * kept in the data folder, and leaves the reader's own login file alone.
 * @throws {Error} if the command fails, after it has printed the cause
 */
async function runCommand(words: string[], { dataDir }: Config, signal = stop): Promise<void> {
  if (signal.aborted) return
  print(`$ ${commandOf(words)}`)
  const program = fileURLToPath(new URL('../../partner/src/grandlivre.ts', import.meta.url))
  const env = { ...process.env, XDG_CONFIG_HOME: join(dataDir, 'config') }
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

/** Checks the file as a bookkeeping program does before an import. */
async function checkTraFile(file: string, movements: number): Promise<void> {
  const started = performance.now()
  const { size } = await stat(file)
  const found = await checkTra(createReadStream(file), (bytes, lines) =>
    progress(`Checked: ${countText(lines)} lines`, bytes / size),
  )
  const [first] = found.problems
  if (first) throw new Error(`Line ${first.line}, column ${first.column} of ${file}: ${first.message}`)
  if (found.movements !== movements)
    throw new Error(`${file} has ${found.movements} of the ${movements} movements`)
  print(`The TRA file can be imported: ${countText(movements)} movements; ${since(started)}`)
}

/** @param commands that the reader can paste after the login */
function invite(config: Config, { baseUrl }: Credentials, commands: string[]): void {
  print([
    'The service keeps running. In another terminal, in this folder:',
    '',
    commandOf(loginWords(config)),
    'npx grandlivre doctor --profile demo',
    ...commands,
    '',
    `The guides:          ${baseUrl}/docs/partners.html`,
    `The routes, to try:  ${baseUrl}/docs/api/`,
    `All credentials:     ${credentialsOf(config)}`,
    'Ctrl-C stops the service and its database.',
  ])
}

const credentialsOf = ({ dataDir }: Config) => pathOf(credentialsPath(dataDir))

/** The setting that a staff command in another terminal needs to open this database. */
function settingOf({ dataDir }: Config): string {
  return dataDir === readConfig({}).dataDir ? '' : `DATA_DIR=${wordOf(pathOf(dataDir))} `
}

/** The word for the shell, in quotes if it needs them. */
function wordOf(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** The default port, or the next free one, so that another program on this machine does not stop the demo. */
async function freePort({ host, port }: Pick<Config, 'host' | 'port'>): Promise<number> {
  for (let candidate = port; candidate < port + 20; candidate += 1)
    if (await isFree(host, candidate)) return candidate
  return 0
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer().listen(port, host)
  try {
    await once(server, 'listening')
    await once(server.close(), 'close')
    return true
  } catch (error) {
    // Other problems of the host are reported when the service starts to listen.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE'
  }
}

/** The path, as a relative one if it lies in the current folder. */
function pathOf(path: string): string {
  const fromHere = relative('.', path)
  return fromHere.startsWith('..') ? path : fromHere || '.'
}

const since = (started: number) => secondsText(performance.now() - started)

// A closed output (`| head`, a closed terminal) must not end the demo while the database is still running.
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
