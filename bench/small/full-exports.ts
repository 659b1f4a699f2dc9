/**
 * `npm run bench -- folders --full`: a full export of each of thousands of small folders, triggered by some clients as
 * fast as they are answered, while another one asks for key/info. Times are those of the database's clock, from the first
 * trigger to the last DONE. With `--against FOLDER` another checkout of the project takes turns with this one.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import { createOwnerPool } from '../../src/db/pool.ts'
import { startUsage } from '../measure.ts'
import { say } from '../own-process.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable, spreadOf } from '../report/table.ts'
import { importFrom, type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { median, quantile } from '../statistics.ts'
import { type Candidate, copyFolders, databaseOf, makeCandidates } from './candidate.ts'
import { countUnended, dropWaiting, forgetExports, type RunOfExport, readRuns } from './full-exports.sql.ts'
import { request } from './latency.ts'

interface FullExportOptions {
  folders: number
  movements: number
  /** That trigger at once. */
  clients: number
  rounds: number
  /** When a round ends at the latest, with what is done by then. */
  seconds: number
  /** Of the service. */
  processes: number
}

/** One round. */
export interface FullExportSample {
  /** From the first trigger to the last DONE, or to the end of the round. */
  seconds: number
  done: number
  failed: number
  /** Until the last trigger was answered. */
  triggerSeconds: number
  /** From the first trigger to the beginning of the first second with nine tenths of the usual number of DONE. */
  fullSpeedAfter: number | null
  /** DONE in each second. */
  doneBySecond: number[]
  /** Of all processes of the service, and of PostgreSQL; null if the system has no /proc. */
  cpuSeconds: number | null
  databaseCpuSeconds: number | null
  keyInfoMs: { p50: number; p99: number; highest: number }
}

interface Running {
  name: string
  owner: Pool
  databasePid: number
  postgresVersion: string
  services: ServiceProcess[]
  filesFolder: string
  /** One for each folder. */
  headers: Record<string, string>[]
  samples: FullExportSample[]
}

const probeEveryMs = 50

export async function measureFullExports(
  options: FullExportOptions,
  against: string | undefined,
  stack: AsyncDisposableStack,
): Promise<string[]> {
  const { folders, movements, clients, rounds, seconds, processes } = options
  const running: Running[] = []
  for (const candidate of await makeCandidates(movements, against, stack))
    running.push(await startOnCopies(candidate, folders, processes, stack))
  const endWatch = watchMachine(running[0]!.databasePid)
  for (let round = 1; round <= rounds; round++)
    for (const checkout of running) {
      say(`round ${round} of ${rounds}: ${checkout.name}`)
      checkout.samples.push(await measureRound(checkout, clients, seconds))
    }
  const machine = describeMachine(running[0]!.postgresVersion)
  const load = endWatch()
  const at = new Date().toISOString()
  // The path of the other checkout is that of this machine.
  const names = ['this checkout', 'before']
  const rows = running.map(({ samples }, place) => ({ name: names[place]!, samples }))
  return [
    `Full exports of ${folders.toLocaleString('en')} folders of ${movements.toLocaleString('en')} movements, ` +
      `${clients} clients, ${processes === 1 ? 'one process' : `${processes} processes`}, ${at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    '',
    ...tableOfFullExports(rows),
    '',
    `Medians of ${rounds} rounds with the least and the most. A round ends after ${seconds} s at the latest. Every file has the`,
    'movements, debits and credits of the others. Targets on two cores: 40 exports a second from the first trigger to the',
    'last DONE, full speed after 5 s, key/info p99 30 ms.',
    writeResult(`full-exports-${folders}.json`, { at, machine, load, ...options, rows }),
  ]
}

async function startOnCopies(
  candidate: Candidate,
  folders: number,
  processes: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  const { name, checkout, dataDir } = candidate
  const services: ServiceProcess[] = []
  for (let started = 0; started < processes; started++) {
    services.push(await startServiceProcess(dataDir, {}, checkout))
    stack.defer(services.at(-1)!.stop)
  }
  const { openDatabase } = await importFrom<typeof import('../../src/db/database.ts')>(
    checkout,
    'src/db/database.ts',
  )
  const database = await openDatabase({ dataDir, databaseUrl: undefined })
  stack.defer(() => database.close())
  const owner = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre bench' })
  stack.defer(() => owner.end())
  const copies = await copyFolders(candidate, folders - 1)
  const { pid, postgresVersion } = await databaseOf(candidate)
  // Each start makes new credentials, which replace those of the one before.
  const secret = services.at(-1)!.headers['X-Third-Party-Secret']!
  const headers = copies.map(({ token }) => ({
    Authorization: `Bearer ${token}`,
    'X-Third-Party-Secret': secret,
  }))
  const filesFolder = join(dataDir, 'files')
  return { name, owner, databasePid: pid, postgresVersion, services, filesFolder, headers, samples: [] }
}

async function measureRound(
  { owner, databasePid, services, filesFolder, headers }: Running,
  clients: number,
  seconds: number,
): Promise<FullExportSample> {
  await forgetExports(owner)
  await rm(filesFolder, { recursive: true, force: true })
  // Warms up: the first export of each thread loads code.
  await triggerAll(services, headers.slice(0, 20), 1)
  while ((await countUnended(owner)) > 0) await delay(100)
  await forgetExports(owner)
  const ends = services.map(({ pid }) => startUsage({ pid, databasePid }))
  const stopped = new AbortController()
  const probed = probe(services[0]!, headers[0]!, stopped.signal)
  // Awaited only after the last export.
  probed.catch(() => {})
  const started = performance.now()
  await triggerAll(services, headers, clients)
  const triggerSeconds = (performance.now() - started) / 1_000
  while ((await countUnended(owner)) > 0 && performance.now() - started < seconds * 1_000) await delay(250)
  stopped.abort()
  const keyInfoMs = await probed
  const used = ends.map((end) => end())
  const runs = await readRuns(owner)
  await dropWaiting(owner)
  const inSeconds = (ms: number | null) => (ms === null ? null : ms / 1_000)
  const cpuMs = used.map((each) => each.cpuMs)
  return {
    ...speedOf(runs, seconds),
    triggerSeconds,
    cpuSeconds: cpuMs.includes(null) ? null : cpuMs.reduce<number>((sum, ms) => sum + ms! / 1_000, 0),
    databaseCpuSeconds: inSeconds(used[0]!.databaseCpuMs),
    keyInfoMs: { p50: median(keyInfoMs), p99: quantile(keyInfoMs, 0.99), highest: Math.max(...keyInfoMs) },
  }
}

/** @throws {Error} if a trigger is refused */
async function triggerAll(
  services: ServiceProcess[],
  headers: Record<string, string>[],
  clients: number,
): Promise<void> {
  const waiting = headers.entries()
  const client = async (): Promise<void> => {
    for (const [place, own] of waiting) {
      const url = `${services[place % services.length]!.url}/api/v1/mad/all?version=1.0.0&format=JSON`
      const { status } = await request(url, own)
      if (status !== 200) throw new Error(`A trigger was answered ${status}`)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** @returns milliseconds of each request */
async function probe(
  { url, failed }: ServiceProcess,
  headers: Record<string, string>,
  stopped: AbortSignal,
): Promise<number[]> {
  const times: number[] = []
  while (!stopped.aborted) {
    const { status, ms } = await Promise.race([request(`${url}/api/v1/key/info`, headers), failed])
    if (status !== 200) throw new Error(`key/info answered ${status}`)
    times.push(ms)
    await delay(Math.max(0, probeEveryMs - ms))
  }
  return times
}

/** @throws {Error} if two files differ in their movements or sums */
function speedOf(runs: RunOfExport[], seconds: number) {
  const done = runs.filter(({ state }) => state === 'done')
  const contents = new Set(done.map(({ rows, debit, credit }) => `${rows} ${debit} ${credit}`))
  if (contents.size > 1) throw new Error(`Files of equal folders differ: ${[...contents].join('; ')}`)
  const first = Math.min(...runs.map(({ triggered }) => triggered))
  const ends = done.map(({ ended }) => ended! - first)
  const took = done.length === runs.length ? Math.max(...ends) : seconds
  const doneBySecond = Array.from({ length: Math.ceil(took) }, () => 0)
  for (const end of ends) doneBySecond[Math.min(Math.floor(end), doneBySecond.length - 1)]! += 1
  const usual = median(doneBySecond)
  const fullSpeedAfter = doneBySecond.findIndex((count) => count >= 0.9 * usual)
  return {
    seconds: took,
    done: done.length,
    failed: runs.filter(({ state }) => state === 'failed').length,
    fullSpeedAfter: done.length === 0 ? null : fullSpeedAfter,
    doneBySecond,
  }
}

const heading = [
  '',
  's',
  'DONE',
  'exports/s',
  'full speed after s',
  'triggered in s',
  'CPU s',
  'database CPU s',
  'CPU ms an export',
  'key/info ms',
  'p99',
  'FAILED',
]

function tableOfFullExports(rows: { name: string; samples: FullExportSample[] }[]): string[] {
  const lines = rows.map(({ name, samples }) => {
    const spread = (value: (sample: FullExportSample) => number | null) => spreadOf(samples.map(value))
    const cpuOf = ({ cpuSeconds, databaseCpuSeconds, done }: FullExportSample) =>
      cpuSeconds && databaseCpuSeconds && ((cpuSeconds + databaseCpuSeconds) * 1_000) / done
    return [
      name,
      spread(({ seconds }) => seconds),
      spread(({ done }) => done),
      spread(({ done, seconds }) => done / seconds),
      spread(({ fullSpeedAfter }) => fullSpeedAfter),
      spread(({ triggerSeconds }) => triggerSeconds),
      spread(({ cpuSeconds }) => cpuSeconds),
      spread(({ databaseCpuSeconds }) => databaseCpuSeconds),
      spread(cpuOf),
      spread(({ keyInfoMs }) => keyInfoMs.p50),
      spread(({ keyInfoMs }) => keyInfoMs.p99),
      spread(({ failed }) => failed),
    ]
  })
  return alignedTable([heading, ...lines])
}
