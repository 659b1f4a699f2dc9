/** The demo as a newcomer runs it, on an embedded database of its own. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { environment, runNode } from '../../../test/support/process.ts'
import { until } from '../../../test/support/until.ts'

let folder: string
/** Name of the folder of the database, in `folder`. */
let data: string
/** Settings of one test. */
let more: Record<string, string>
let child: ChildProcess
let output: { out: string; error: string }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
})

beforeEach(() => {
  data = 'data'
  more = {}
})

afterEach(async () => {
  // After a failed test the demo still runs. SIGTERM also ends its commands, which would outlive a kill.
  if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM'))
    await once(child, 'close')
  child.kill('SIGKILL')
  const lock = await readFile(join(folder, data, 'postgres/postmaster.pid'), 'utf8').catch(() => undefined)
  if (lock !== undefined) process.kill(Number(lock.split('\n')[0]), 'SIGKILL')
  expect(lock, 'no server is left running').toBeUndefined()
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** @returns its exit code and signal */
function demo(...words: string[]): Promise<[number | null, string | null]> {
  // The reader has chosen another access and folder. The demo must not use them.
  const chosen = { GRANDLIVRE_URL: 'http://127.0.0.1:1', GRANDLIVRE_SOCIETY: '1' }
  const env = { ...environment, ...chosen, DATA_DIR: join(folder, data), PORT: '0', ...more }
  const out = words.includes('--out') || words.includes('--firm') ? [] : ['--out', join(folder, 'out')]
  const argv = ['packages/sample/src/demo.ts', ...out, ...words]
  const run = runNode(argv, env)
  child = run.child
  output = run.output
  return run.ended
}

test('the demo succeeds and lists exactly the files that it wrote', async () => {
  expect(await demo('--once', '--movements', '1000'), output.error).toEqual([0, null])
  const named = [...output.out.matchAll(/^ {2}\S+\/(\S+) +\d+\.\d MB /gm)].map(([, name]) => name!)
  expect(named).toHaveLength(4)
  // The lock of a copy is an empty file beside it.
  const written = (await readdir(join(folder, 'out'))).filter((name) => !name.endsWith('.lock'))
  expect(written.toSorted()).toEqual(named.toSorted())
  // The tour makes a copy, and then changes it.
  expect(output.out).toMatch(
    /5 of 5 ledgers copied, .*^The bookkeeper corrects 100 entries\.$.*1 of 5 ledgers copied, .* 5 ledgers with 2,000 movements are equal; .*^\d+ .* DEMO-4 +current$/ms,
  )
  expect(output.out).toMatch(/^The TRA file can be imported: 1,000 movements; /m)
})

/** A reader pastes lines into another terminal, whose Node may be an older one. */
function otherTerminal(): { PATH: string; HOME: string } {
  const path = process.env['PATH']!.split(delimiter).filter((part) => !part.includes('node_modules'))
  // The pasted login writes its file below HOME, which the test removes.
  return { PATH: path.join(delimiter), HOME: join(folder, data) }
}

/** @returns what the line prints */
async function paste(line: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line], { env: otherTerminal() })
  return stdout
}

/** Runs a line, and interrupts it once it prints this text. */
async function pasteAndInterrupt(line: string, saying: string): Promise<void> {
  const shell = spawn('/bin/sh', ['-c', line], { env: otherTerminal(), detached: true })
  let said = ''
  for (const from of [shell.stdout, shell.stderr]) from.on('data', (bytes) => (said += bytes))
  const closed = once(shell, 'close')
  await until(() => said.includes(saying) || shell.exitCode !== null)
  expect(said).toContain(saying)
  // As Ctrl-C does: npx and the command.
  process.kill(-shell.pid!, 'SIGINT')
  await closed
}

test('the demo refills its folder with another size, and stops entirely when its terminal is closed', async () => {
  const ended = demo('--movements', '1500')
  await until(() => output.out.includes('Ctrl-C stops the service') || child.exitCode !== null)
  const pasted = output.out.match(/(?<=^(\$ )?)npx grandlivre .*$/gm)!
  expect(pasted).toHaveLength(11)
  const listen = pasted.pop()!
  for (const line of pasted) await paste(line)
  await pasteAndInterrupt(listen, 'Listening for all kinds of events of folder ')
  expect(output.out).toMatch(/^The TRA file can be imported: 1,500 movements; /m)
  // Lines of the demo fit a terminal. Paths of this test and the output of commands may be longer.
  const own = output.out.replaceAll(folder, '').replaceAll(/^\$.*?\n\n/gms, '')
  expect(own).toContain('npx grandlivre login --profile demo --firm --from')
  expect(own.split('\n').filter((line) => line.length > 79)).toEqual([])
  child.kill('SIGHUP')
  expect(await ended).toEqual([0, null])
})

test('a closed pipe leaves no database running', async () => {
  const ended = demo('--once', '--movements', '1500')
  child.stdout!.destroy()
  expect(await ended, output.error).toEqual([0, null])
})

test('a copy follows a simulated bookkeeper, each printed command can be pasted, and one folder is left', async () => {
  data = "the firm's data"
  await mkdir(join(folder, data))
  const before = await readdir(folder)
  const ended = demo('--firm', '--every', '1')
  const arrived = () =>
    new Set([...output.out.matchAll(/Z {2}(\d+) .*: \d+ movements replaced by /g)].map(([, id]) => id))
  await until(() => arrived().size > 4 || child.exitCode !== null)
  expect(output.out).toMatch(
    /^Ledgers {3}30 of one firm, made up now; .*30 of 30 ledgers copied, 12,250 movements;/ms,
  )
  const corrected = [...output.out.matchAll(/^ {2}Folder (\d+): /gm)].map(([, id]) => id)
  expect([...arrived()].filter((id) => !corrected.includes(id))).toEqual([])
  const pasted = output.out.split('\n').filter((line) => /^(DATA_DIR=\S.* )?np[xm] /.test(line))
  expect(pasted).toHaveLength(5)
  const printed: string[] = []
  for (const line of pasted) printed.push(await paste(line))
  const [, doctor, folders, status, list] = printed
  expect(doctor).toContain('folder: all 30 of the firm;')
  expect(folders!.match(/^\d+ .* DEMO(-\d+)? /gm)).toHaveLength(30)
  expect(status).toContain('All is well.')
  expect(list!.match(/^\d+ .* DEMO(-\d+)? /gm)).toHaveLength(30)
  child.kill('SIGINT')
  expect(await ended, output.error).toEqual([0, null])
  expect(output.out).toMatch(/^Everything is in \S.*the firm's data: .*\nStopped\.$/m)
  expect(await readdir(folder)).toEqual(before)
})

test('a mistake in the options is reported in one line that says what to do', async () => {
  const wrong = [
    [['--movements', '999'], /^--movements takes a whole number from 1000 to 5000000, not "999"\n$/],
    [['--firm', '--once'], /^--out and --once are for the tour: leave them out with --firm\n$/],
    [['--every', '5'], /^--every is for a firm: give --firm, too\n$/],
    [['--firm', '--every', '0'], /^--every takes a number of seconds from 1 to 86400, not "0"\n$/],
    [['--out', '/dev/null'], /^The files cannot go to \/dev\/null, choose another --out: .*\n$/],
    // Where a recursive mkdir of Node never ends.
    [['--out', '/proc/none'], /^The files cannot go to \/proc\/none, choose another --out: .*\n$/],
  ] as const
  for (const [words, message] of wrong) {
    expect(await demo(...words)).toEqual([1, null])
    expect(output.error).toMatch(message)
  }
  more = { DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  expect(await demo()).toEqual([1, null])
  expect(output.error).toBe('The demo runs on the embedded database: unset DATABASE_URL\n')
})
