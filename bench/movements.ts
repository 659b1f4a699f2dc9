/**
 * `npm run bench`: a year of movements over HTTP to a client on the same machine, compared with the time in
 * which the database sends its rows to nowhere (the floor), and with other ways of producing the same
 * response (peers/).
 */
import { movementsMax, movementsMin } from '../src/sample/seed.ts'
import { openDataset } from './dataset.ts'
import { measureFullExports } from './full-export.ts'
import { measureSmallRequests } from './latency.ts'
import { startUsage } from './measure.ts'
import { readOptions } from './options.ts'
import { runBench } from './own-process.ts'
import { pictureOf } from './picture.ts'
import { describeMachine, machineLine, writeResult } from './results.ts'
import { type Row, runRounds } from './rounds.ts'
import { checkSameContent } from './same-content.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import { tableOf } from './table.ts'
import { oursName, partsOfYear, startFloor, startPeers, waysOfService, yearUrl } from './ways.ts'

runBench(async (stack) => {
  const usage = 'npm run bench -- [--movements 600000] [--rounds 5] [--large 3000000]'
  const options = readOptions(usage, ['movements', 'rounds', 'large'])
  const movements = options.wholeNumber('movements', 600_000, movementsMin, movementsMax)
  const rounds = options.wholeNumber('rounds', 5, 1, 100)
  const large = options.wholeNumber('large', movementsMin, movementsMin, movementsMax)

  const dataset = await openDataset(movements, stack)
  const { year, period, databasePid } = dataset
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const idle = beforeFirstRequest(service, databasePid)
  const floor = await startFloor(year, stack)
  const ways = [floor, ...waysOfService(service, year), ...(await startPeers(year, stack))]
  await checkSameContent(ways)
  const ofYear = await runRounds(ways, rounds, databasePid)
  const parts = partsOfYear(service, year, period)
  await runRounds(parts, 1, databasePid)
  const sections: Record<string, Row[]> = {
    'a year': ofYear,
    'part of it': await runRounds(parts, rounds, databasePid),
    'small requests': await measureSmallRequests(service, yearUrl(service, year.exerciceId), databasePid),
  }
  // Otherwise it would claim full exports from the same queue.
  await service.stop()
  Object.assign(sections, await measureFullExports(dataset, floor, rounds, stack))
  sections['before the first request'] = [idle]
  if (options.text('large') !== undefined)
    sections[`a year of a folder of ${large.toLocaleString('en')}`] = await measureLarge(large, stack)

  const machine = describeMachine(dataset.postgresVersion)
  const results = { at: new Date().toISOString(), machine, movements, sections }
  const file = `movements-${movements}`
  return [
    `A year of a folder of ${movements.toLocaleString('en')} movements, ${results.at.slice(0, 10)}`,
    machineLine(machine),
    ...tableOf(sections),
    '',
    'Medians of the rounds; a ratio is that of each round, then the median; CPU and memory are those of the process that',
    'answers, the highest peak. A full export is of the whole folder, from its trigger until DONE.',
    writeResult(`${file}.json`, results),
    writeResult(`${file}.svg`, pictureOf(machine, ofYear)),
  ]
})

/** Memory only. */
function beforeFirstRequest({ pid }: ServiceProcess, databasePid: number): Row {
  const used = { ...startUsage({ pid, databasePid })(), cpuMs: null, databaseCpuMs: null, clientCpuMs: 0 }
  return {
    name: oursName,
    samples: [{ ms: 0, firstByteMs: null, bytes: null, rows: null, ...used }],
  }
}

/** Measures another folder. Restarts the service, so that its memory is that of this folder only. */
async function measureLarge(movements: number, stack: AsyncDisposableStack): Promise<Row[]> {
  const { dataDir, year, databasePid } = await openDataset(movements, stack)
  const service = await startServiceProcess(dataDir)
  stack.defer(service.stop)
  const ways = waysOfService(service, year).slice(0, 1)
  await checkSameContent(ways)
  return runRounds(ways, 3, databasePid)
}
