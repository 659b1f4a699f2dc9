/**
 * `npm run bench -- firm`: what a partner waits for who copies a whole firm, and what it costs: the first copy, a night in
 * which nothing changed, one in which a few folders did, the proof of every row, a commit until it is in the copy; one
 * large ledger into SQLite and PostgreSQL. Client, service and database share the machine.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { movementsMin } from '../../packages/sample/src/seed.ts'
import { type Dataset, makeDataDir, openDataset } from '../dataset.ts'
import { readOptions, wholeNumber } from '../options.ts'
import { runBench, say } from '../own-process.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable, digits } from '../report/table.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { median } from '../statistics.ts'
import { type Access, type CommandUsage, runCommand } from './command.ts'
import { measureFollow } from './follow.sql.ts'
import { measureBesideStreams, measureStream } from './streams.ts'
import { importedBySqlite, makeFirm, runStaff } from './tenants.ts'

/** A figure of the table, with the most that it may be. */
interface Figure {
  name: string
  unit: 's' | 'ms' | 'MB'
  values: number[]
  atMost?: number | undefined
}

/** What every measurement works with. */
interface Bench {
  dataset: Dataset
  service: ServiceProcess
  /** For copies. */
  work: string
  rounds: number
  figures: Figure[]
}

function add(
  { figures }: Bench,
  name: string,
  unit: Figure['unit'],
  values: number[],
  atMost?: number,
): void {
  figures.push({ name, unit, values, atMost })
  say(`${name}: ${digits(median(values))} ${unit}`)
}

async function repeat(times: number, run: (round: number) => Promise<CommandUsage>): Promise<CommandUsage[]> {
  const runs: CommandUsage[] = []
  for (let round = 0; round < times; round++) runs.push(await run(round))
  return runs
}

const seconds = (runs: CommandUsage[]) => runs.map(({ ms }) => ms / 1000)
const cpu = (runs: CommandUsage[]) => runs.map(({ cpuMs }) => cpuMs / 1000)
const peak = (runs: CommandUsage[]) => runs.map(({ peakMb }) => peakMb)

runBench(async (stack) => {
  const { folders, movements, large, rounds, followed } = readOptions('npm run bench -- firm', {
    folders: wholeNumber('folders of the firm', 300, [1, 10_000]),
    movements: wholeNumber('movements of each', 1_000, [movementsMin, 100_000]),
    large: wholeNumber('movements of the large ledger; 0 for none', 600_000, [0, 1_000_000]),
    rounds: wholeNumber('rounds', 3, [1, 100]),
    followed: wholeNumber('commits that are waited for', 30, [0, 1_000]),
  })
  const dataset = await openDataset(movementsMin, stack, await makeDataDir(stack))
  const { dataDir, databasePid, postgresVersion } = dataset
  const work = await mkdtemp(join(tmpdir(), 'grandlivre-firm-'))
  stack.defer(() => rm(work, { recursive: true, force: true }))
  say(`seeding ${folders} folders of ${movements} movements`)
  const firm = await makeFirm(dataDir, folders, movements)
  const service = await startServiceProcess(dataDir)
  stack.defer(service.stop)
  const endWatch = watchMachine(databasePid)
  const bench: Bench = { dataset, service, work, rounds, figures: [] }
  await measureFirm(bench, firm, folders, followed)
  await measureService(bench)
  if (large > 0) await measureLarge(bench, large)
  const { figures } = bench
  const machine = describeMachine(postgresVersion)
  const at = new Date().toISOString()
  const load = endWatch()
  return [
    `A firm of ${folders.toLocaleString('en')} folders of ${movements.toLocaleString('en')} movements, ${at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    '',
    ...tableOfFigures(figures),
    '',
    writeResult(`firm-${folders}.json`, { at, machine, load, folders, movements, large, figures }),
  ]
})

/** Copies of the firm: the first, without a change, after some, its proof, and while it is followed. */
async function measureFirm(
  bench: Bench,
  firm: Awaited<ReturnType<typeof makeFirm>>,
  folders: number,
  followed: number,
): Promise<void> {
  const { dataset, service, work, rounds } = bench
  const access: Access = { ...firm.access, GRANDLIVRE_URL: service.url }
  const isMany = folders >= 3_000
  const most = (usual: number, many?: number) => (folders === 300 ? usual : isMany ? many : undefined)
  const copy = (round: number) => join(work, `firm-${round}.sqlite`)
  const first = await repeat(rounds, (round) => runCommand(['sync', '--to', copy(round)], access))
  add(bench, 'first copy', 's', seconds(first), most(7, 70))
  add(bench, 'first copy, memory of the command', 'MB', peak(first), most(250, 250))
  const unchanged = await repeat(3 * rounds, () => runCommand(['sync', '--to', copy(0)], access))
  add(bench, 'nothing changed', 's', seconds(unchanged), most(0.6, 1))
  const changed = isMany ? 100 : 7
  const some = await repeat(rounds, async () => {
    await runStaff(dataset.dataDir, ['simulate', '--folders', String(changed), '--firm', firm.firmId])
    return runCommand(['sync', '--to', copy(0)], access)
  })
  add(bench, `${changed} folders changed`, 's', seconds(some), most(1.5, 2.5))
  const verified = await repeat(rounds, () => runCommand(['verify', '--to', copy(0)], access))
  add(bench, 'verify of all', 's', seconds(verified), most(5))
  if (followed === 0) return
  const delays = await measureFollow(copy(0), dataset.ownerUrl, access, followed)
  add(
    bench,
    'a commit until it is in the copy',
    's',
    delays.map((ms) => ms / 1000),
    0.5,
  )
}

/** What a stream of many ledgers costs, and what others wait beside two. */
async function measureService(bench: Bench): Promise<void> {
  const { dataset, service, rounds } = bench
  const firm = await makeFirm(dataset.dataDir, 50, 2_000)
  const access: Access = { ...firm.access, GRANDLIVRE_URL: service.url }
  const streams = await measureStream(service, access, dataset.databasePid, rounds)
  const name = 'a folder of 2,000 in a stream, processor of the'
  const [ofService, ofDatabase] = [
    streams.map(({ serviceMs }) => serviceMs),
    streams.map(({ databaseMs }) => databaseMs),
  ]
  add(bench, `${name} service`, 'ms', ofService, 8)
  add(bench, `${name} database`, 'ms', ofDatabase, 8)
  const info: number[] = []
  for (let round = 0; round < rounds; round++)
    info.push(await measureBesideStreams(service, access, dataset.databasePid))
  add(bench, 'key/info beside two streams, p99', 'ms', info, 20)
}

/** One ledger into SQLite, beside the import of SQLite's own shell, and into PostgreSQL. */
async function measureLarge(bench: Bench, large: number): Promise<void> {
  const { dataset, service, work, rounds } = bench
  say(`seeding a folder of ${large} movements`)
  const firm = await makeFirm(dataset.dataDir, 1, large)
  const access: Access = { ...firm.access, GRANDLIVRE_URL: service.url }
  const name = large.toLocaleString('en')
  const file = (round: number) => join(work, `large-${round}.sqlite`)
  const copied = await repeat(rounds, (round) => runCommand(['sync', '--to', file(round)], access))
  add(bench, `${name} into SQLite, processor of the client`, 's', cpu(copied), 6.5)
  add(bench, `${name} into SQLite`, 's', seconds(copied))
  add(bench, `${name} into SQLite, memory`, 'MB', peak(copied), 270)
  const imported = await importedBySqlite(file(0), work, rounds)
  if (imported) add(bench, '.import of sqlite3, texts without an index, processor', 's', imported)
  const proved = await repeat(rounds, () => runCommand(['verify', '--to', file(0)], access))
  add(bench, 'verify of it, processor of the client', 's', cpu(proved), 3.8)
  for (let round = 0; round < rounds; round++) await rm(file(round), { force: true })
  const into = (round: number) => {
    const address = new URL(dataset.ownerUrl)
    address.searchParams.set('schema', `copy_${round}`)
    return address.href
  }
  const stored = await repeat(rounds, (round) => runCommand(['sync', '--to', into(round)], access))
  add(bench, `${name} into PostgreSQL, processor of the client`, 's', cpu(stored), 1.5)
  add(bench, `${name} into PostgreSQL`, 's', seconds(stored))
  const again = await repeat(rounds, () => runCommand(['verify', '--to', into(0)], access))
  add(bench, 'verify of that, processor of the client', 's', cpu(again), 1.5)
}

function tableOfFigures(figures: Figure[]): string[] {
  return alignedTable([
    ['', 'median', 'least', 'most', 'at most', ''],
    ...figures.map(({ name, unit, values, atMost }) => {
      const middle = median(values)
      const isMet = atMost === undefined ? '' : middle <= atMost ? 'met' : 'MISSED'
      const shown = (value: number) => `${digits(value)} ${unit}`
      const bound = atMost === undefined ? '' : shown(atMost)
      return [name, shown(middle), shown(Math.min(...values)), shown(Math.max(...values)), bound, isMet]
    }),
  ])
}
