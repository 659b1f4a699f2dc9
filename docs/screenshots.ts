/**
 * Makes the pictures of the documentation, from real runs: `npm run docs -- screenshots`, or with the names of some. A
 * service with the demo folder is started for them, in a temporary folder. Needs Linux and Chromium (.ci/run).
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { correctEntries } from '../packages/sample/src/demo-folder.ts'
import { loadMasterKeys } from '../src/auth/master-key.sql.ts'
import { openDatabase } from '../src/db/database.ts'
import { type Credentials, readCredentials } from '../src/http/reference/demo-credentials.ts'
import { consolePictures, setConsoleStage } from './console-pictures.ts'
import { staffPictures } from './console-staff-pictures.ts'
import { runInTerminal, type TerminalRun } from './terminal-run.ts'

interface Stage {
  credentials: Credentials
  browser: Browser
  /** Where commands run. */
  folder: string
  env: NodeJS.ProcessEnv
  /** Changes entries of the latest fiscal year, as a bookkeeper would. */
  correct(): Promise<unknown>
  /** Publishes an event, as staff would. */
  emit(name: string, data: object): Promise<void>
}

type Picture = (stage: Stage) => Promise<Buffer>

/** As in the guides; nothing else may listen there. */
const receiverUrl = 'http://localhost:3000/hook'

/** Of every terminal. */
const rows = 24

const root = resolve(import.meta.dirname, '..')

const pictures: Record<string, Picture> = {
  reference: (stage) =>
    ofReference(stage, async (page) => {
      await page.locator('#contents a').first().waitFor()
    }),
  'reference-answer': (stage) =>
    ofReference(stage, async (page) => {
      await page.locator('#contents').getByText('/mad/balance').click()
      const operation = page.locator('.opblock.is-open')
      await operation.locator('.execute').click()
      await operation.locator('.live-responses-table .highlight-code').waitFor()
      await operation
        .locator('.live-responses-table')
        .evaluate((table: { scrollIntoView(): void }) => table.scrollIntoView())
    }),
  sync: (stage) =>
    terminal({
      command: 'grandlivre sync --to firm.sqlite --follow',
      columns: 136,
      steps: ({ correct }) => [{ when: 'Following the ledgers', meanwhile: correct }],
      until: 'replaced by',
    })({ ...stage, env: { ...stage.env, GRANDLIVRE_TOKEN: stage.credentials.firmToken } }),
  listen: (stage) =>
    withReceiver(() =>
      terminal({
        command: `grandlivre listen ${receiverUrl}`,
        columns: 96,
        steps: ({ correct, emit }) => [
          { when: 'q ends.', meanwhile: correct },
          {
            when: '204 in',
            meanwhile: () => emit('document', { id: '77', kind: 'PF', name: 'invoice.pdf' }),
          },
          { when: '204 in', keys: 'r' },
        ],
        until: ', again',
      })(stage),
    ),
}

async function ofReference(
  { browser, credentials }: Stage,
  prepare: (page: Page) => Promise<void>,
): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1120, height: 660 } })
  await page.goto(`${credentials.baseUrl}/docs/api/`)
  await page.locator('.opblock').first().waitFor()
  await prepare(page)
  return page.screenshot()
}

/** What a reader types stands above what the command writes. */
function terminal(
  run: Omit<TerminalRun, 'rows' | 'folder' | 'env' | 'steps'> & {
    steps?: (stage: Stage) => TerminalRun['steps']
  },
): Picture {
  return async (stage) => {
    const { folder, env } = stage
    const written = await runInTerminal({ ...run, rows, steps: run.steps?.(stage) ?? [], folder, env })
    const typed = Buffer.from(`\x1b[1;32m$\x1b[0m ${run.command}\r\n`)
    return drawTerminal(stage.browser, Buffer.concat([typed, written]), run.columns)
  }
}

/** Draws the last screen that the bytes lead to, down to its last line, with xterm.js. */
async function drawTerminal(browser: Browser, bytes: Buffer, columns: number): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1200 } })
  const xterm = (file: string) => ({ path: join(root, 'node_modules/@xterm/xterm', file) })
  await page.setContent(
    '<body style="margin:0"><div id="frame" style="display:inline-block;padding:14px;background:#1c2022"></div>',
  )
  await page.addStyleTag(xterm('css/xterm.css'))
  await page.addScriptTag(xterm('lib/xterm.js'))
  const options = {
    cols: columns,
    rows,
    scrollback: 0,
    fontFamily: 'DejaVu Sans Mono, monospace',
    fontSize: 13,
    cursorInactiveStyle: 'none',
    theme: { background: '#1c2022', foreground: '#e4e6e6' },
  }
  await page.evaluate(`new Promise((drawn) => {
    const terminal = new Terminal(${JSON.stringify(options)})
    terminal.open(document.getElementById('frame'))
    const bytes = Uint8Array.from(atob('${bytes.toString('base64')}'), (char) => char.charCodeAt(0))
    terminal.write(bytes, () => {
      terminal.resize(terminal.cols, terminal.buffer.active.cursorY + 1)
      requestAnimationFrame(() => setTimeout(drawn, 100))
    })
  })`)
  return page.locator('#frame').screenshot()
}

interface Running {
  credentials: Credentials
  consoleUrl: string
  stop(): Promise<void>
}

async function startService(dataDir: string): Promise<Running> {
  const service = spawn(process.execPath, [join(root, 'src/main.ts')], {
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      PORT: '0',
      LOG_LEVEL: 'info',
      RATE_LIMIT_REQUESTS: '1000',
      CONSOLE_PORT: '0',
      WEBHOOK_ALLOW_INSECURE: 'true',
      EXPORT_THREADS: '2',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(service, 'close')
  let lines = ''
  for await (const chunk of service.stdout) {
    lines += String(chunk)
    if (lines.includes('service.listening')) break
  }
  service.stdout.resume()
  const [, consoleUrl = ''] = /"console.listening","url":"([^"]+)"/.exec(lines)!
  const credentials = readCredentials(dataDir) as Credentials
  const stop = async () => {
    service.kill('SIGTERM')
    await ended
  }
  return { credentials, consoleUrl, stop }
}

/** `grandlivre` as partners have it: a command on the path. */
async function installCommand(folder: string): Promise<string> {
  const bin = join(folder, 'bin')
  await mkdir(bin)
  const program = join(bin, 'grandlivre')
  await writeFile(
    program,
    `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'packages/partner/src/grandlivre.ts')}' "$@"\n`,
  )
  await chmod(program, 0o755)
  return bin
}

/** Accepts every delivery at `receiverUrl` meanwhile. */
async function withReceiver<Result>(use: () => Promise<Result>): Promise<Result> {
  const { hostname, port } = new URL(receiverUrl)
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end())
  })
  receiver.listen(Number(port), hostname)
  await once(receiver, 'listening')
  try {
    return await use()
  } finally {
    receiver.closeAllConnections()
    receiver.close()
  }
}

const picturesOfConsole = { ...consolePictures, ...staffPictures }

async function makePictures(names: readonly string[]): Promise<void> {
  const all = { ...pictures, ...picturesOfConsole }
  const unknown = names.filter((name) => !Object.hasOwn(all, name))
  if (unknown.length > 0)
    throw new Error(`There is no picture ${unknown.join(', ')}: there are ${Object.keys(all).join(', ')}`)
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-pictures-'))
  stack.defer(() => rm(folder, { recursive: true }))
  // Accessible to the user nobody, as whom PostgreSQL runs for root.
  await chmod(folder, 0o755)
  const dataDir = join(folder, 'data')
  const { credentials, consoleUrl, stop } = await startService(dataDir)
  stack.defer(stop)
  const database = await openDatabase({ dataDir, databaseUrl: undefined })
  stack.defer(() => database.close())
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  })
  stack.defer(() => browser.close())
  const env = {
    ...process.env,
    PATH: `${await installCommand(folder)}${delimiter}${process.env['PATH']}`,
    DATA_DIR: dataDir,
    GRANDLIVRE_URL: credentials.baseUrl,
    GRANDLIVRE_TOKEN: credentials.companyToken,
    GRANDLIVRE_SECRET: credentials.thirdPartySecret,
  }
  const { societyId, exercices } = credentials
  const schemaId = await schemaOf(credentials)
  const correct = () => correctEntries(database.ownerUrl, societyId, exercices.at(-1)!.id)
  const emit = async (name: string, data: object) => {
    const options = ['--schema', schemaId, '--folder', societyId, '--name', name, '--operation', 'CREATE']
    const cli = [join(root, 'src/cli.ts'), 'event', 'emit', ...options, '--data', JSON.stringify(data)]
    await promisify(execFile)(process.execPath, cli, { env })
  }
  const [masterKey] = await loadMasterKeys({ masterKey: undefined, dataDir })
  const { baseUrl } = credentials
  const { ownerUrl } = database
  const ofConsole = names.some((name) => Object.hasOwn(picturesOfConsole, name))
    ? await setConsoleStage({ browser, ownerUrl, masterKey, baseUrl, consoleUrl })
    : undefined
  for (const name of names) {
    const png =
      ofConsole && Object.hasOwn(picturesOfConsole, name)
        ? await picturesOfConsole[name]!(ofConsole)
        : await pictures[name]!({ credentials, browser, folder, env, correct, emit })
    await mkdir(join(import.meta.dirname, 'pictures'), { recursive: true })
    await writeFile(join(import.meta.dirname, 'pictures', `${name}.png`), png)
    process.stdout.write(`docs/pictures/${name}.png ${Math.ceil(png.length / 1024)} KB\n`)
  }
}

/** Staff commands name the schema, which the token knows. */
async function schemaOf({ baseUrl, companyToken, thirdPartySecret }: Credentials): Promise<string> {
  const headers = { Authorization: `Bearer ${companyToken}`, 'X-Third-Party-Secret': thirdPartySecret }
  const answer = await fetch(`${baseUrl}/api/v1/key/info?mode=extended`, { headers })
  const { target } = (await answer.json()) as { target: { schemaId: number } }
  return String(target.schemaId)
}

const named = process.argv.slice(2)
await makePictures(named.length > 0 ? named : Object.keys({ ...pictures, ...picturesOfConsole }))
