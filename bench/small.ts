/**
 * `npm run bench:small`: exports of a small folder, one after the other; processor time of the service and of
 * the database, and time to first byte, per export. With `--against FOLDER` another checkout of the project
 * takes turns with this one. Each has its own data folder, made by its own command line, so their schemas may
 * differ.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { movementsMin } from '../src/sample/seed.ts'
import { makeDataDir } from './data-dir.ts'
import { measureLatency } from './latency.ts'
import { readOptions } from './options.ts'
import { runBench, say } from './own-process.ts'
import { describeMachine, machineLine, writeResult } from './results.ts'
import type { Row } from './rounds.ts'
import { environmentOf, type ServiceProcess, startServiceProcess } from './service-process.ts'
import { tableOf } from './table.ts'
import { yearUrl } from './ways.ts'

interface Candidate {
  name: string
  service: ServiceProcess
  databasePid: number
  postgresVersion: string
}

runBench(async (stack) => {
  const usage =
    'npm run bench:small -- [--movements 2000] [--requests 200] [--rounds 5] [--against <another checkout>]'
  const options = readOptions(usage, ['movements', 'requests', 'rounds', 'against'])
  const movements = options.wholeNumber('movements', 2_000, movementsMin, 100_000)
  const requests = options.wholeNumber('requests', 200, 1, 100_000)
  const rounds = options.wholeNumber('rounds', 5, 1, 100)
  const against = options.text('against')

  const here = fileURLToPath(new URL('..', import.meta.url))
  const candidates = [await startCandidate('this checkout', here, movements, stack)]
  if (against !== undefined)
    candidates.push(await startCandidate(against, resolve(against), movements, stack))
  const rows = candidates.map(({ name }): Row => ({ name, samples: [] }))
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [index, candidate] of candidates.entries()) {
      const { samples } = await exportRepeatedly(candidate, requests, `round ${round} of ${rounds}`)
      if (round > 0) rows[index]!.samples.push(...samples)
    }

  const machine = describeMachine(candidates[0]!.postgresVersion)
  const sections = { [`one export of ${movements.toLocaleString('en')}`]: rows }
  return [
    machineLine(machine),
    ...tableOf(sections),
    '',
    `Medians of ${rounds} rounds, each of ${requests} exports of the last year of the folder, one after the other.`,
    writeResult(`small-${movements}.json`, { at: new Date().toISOString(), machine, requests, sections }),
  ]
})

/** Seeds a folder with the command line of the checkout, and starts its service. */
async function startCandidate(
  name: string,
  checkout: string,
  movements: number,
  stack: AsyncDisposableStack,
): Promise<Candidate> {
  say(`seeding ${movements.toLocaleString('en')} movements for ${name}`)
  const dataDir = await makeDataDir(stack)
  // The service uses the folder with this reference as its own.
  const seed = ['src/cli.ts', 'seed', '--movements', String(movements), '--folder-reference', 'DEMO']
  await promisify(execFile)(process.execPath, seed, { cwd: checkout, env: environmentOf(dataDir) })
  const service = await startServiceProcess(dataDir, {}, checkout)
  stack.defer(service.stop)
  const postmaster = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')
  const postgresVersion = (await readFile(join(dataDir, 'postgres/PG_VERSION'), 'utf8')).trim()
  return { name, service, databasePid: Number.parseInt(postmaster, 10), postgresVersion }
}

/** @returns one sample, with medians and the average consumption of an export */
function exportRepeatedly(
  { name, service, databasePid }: Candidate,
  requests: number,
  round: string,
): Promise<Row> {
  const { headers, exercices } = service
  const year = { url: yearUrl(service, exercices.at(-1)!.id), headers, status: 200, requests }
  return measureLatency(`${round}: ${name}`, year, service, databasePid)
}
