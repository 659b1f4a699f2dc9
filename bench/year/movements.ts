/**
 * `npm run bench -- year`: a year of movements over HTTP to a client on the same machine, compared with the time in
 * which the database sends what an export reads to nowhere (the floor), and with other ways of producing the same
 * response (peers/). With `--only NAME` that way alone, beside the floor and ours.
 */
import { movementsMax, movementsMin } from '../../packages/sample/src/seed.ts'
import { type Dataset, openDataset } from '../dataset.ts'
import { startUsage } from '../measure.ts'
import { only, readOptions, wholeNumber } from '../options.ts'
import { runBench } from '../own-process.ts'
import { type Peer, peers } from '../peers/peers.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { tableOf } from '../report/table.ts'
import { runRounds, type Way } from '../rounds.ts'
import { oursName, type Row } from '../rows.ts'
import { type ServiceProcess, startServiceProcess, yearUrl } from '../service-process.ts'
import { measureColumns, tools } from './columns.ts'
import { everyFile, type FileToMake, measureFileInMinio, measureFilesInFolder } from './full-export.ts'
import { pictureOfYear } from './pictures.ts'
import { type Checked, checkedLines, checkRounds, checkSameContent } from './same-content.ts'
import { measureSmallRequests } from './small-requests.ts'
import { partsOfYear, startFloors, startPeers, waysOfService } from './ways.ts'

/** What is left of the ways after `--only`. */
interface Chosen {
  ours: Way[]
  peers: Peer[]
  files: FileToMake[]
  tools: typeof tools
  isWhole: boolean
}

interface Measured {
  sections: Record<string, Row[]>
  checked: Checked[]
}

runBench(async (stack) => {
  const { movements, rounds, large, ...options } = readOptions('npm run bench -- year', {
    movements: wholeNumber('movements of the folder', 600_000, [movementsMin, movementsMax]),
    rounds: wholeNumber('rounds', 5, [1, 100]),
    large: wholeNumber('movements of a larger folder, whose year is measured, too', undefined, [
      movementsMin,
      movementsMax,
    ]),
    only,
  })

  const dataset = await openDataset(movements, stack)
  const endWatch = watchMachine(dataset.databasePid)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const idle = beforeFirstRequest(service, dataset.databasePid)
  const [ours, files] = [waysOfService(service, dataset.year), everyFile(dataset.year)]
  const chosen = options.only.of<Way | Peer | FileToMake | (typeof tools)[number]>([
    ...ours,
    ...peers,
    ...files,
    ...tools,
  ])
  const isChosen = (row: (typeof chosen)[number]) => chosen.includes(row)
  const { sections, checked } = await measureChosen(
    dataset,
    service,
    {
      // The first is what others are compared with.
      ours: ours.filter((way, place) => place === 0 || isChosen(way)),
      peers: peers.filter(isChosen),
      files: files.filter(isChosen),
      tools: tools.filter(isChosen),
      isWhole: options.only.all,
    },
    rounds,
    stack,
  )
  if (options.only.all) sections['before the first request'] = [idle]
  if (large !== undefined)
    sections[`a year of a folder of ${large.toLocaleString('en')}`] = await measureLarge(large, stack)

  const machine = describeMachine(dataset.postgresVersion)
  const load = endWatch()
  const results = { at: new Date().toISOString(), machine, load, movements, checked, sections }
  const file = `movements-${movements}`
  const written = options.only.all
    ? [
        writeResult(`${file}.json`, results),
        writeResult(`${file}.svg`, pictureOfYear(machine, sections['a year']!)),
      ]
    : ['Nothing is written to bench/results with --only.']
  return [
    `A year of a folder of ${movements.toLocaleString('en')} movements, ${results.at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    ...tableOf(sections),
    '',
    `Medians of ${rounds} rounds with the least and the most; a ratio is that of each round. CPU and memory are those of the`,
    'process that answers. A full export is of the whole folder, from its trigger until DONE.',
    ...checkedLines(checked),
    ...written,
  ]
})

async function measureChosen(
  dataset: Dataset,
  service: ServiceProcess,
  chosen: Chosen,
  rounds: number,
  stack: AsyncDisposableStack,
): Promise<Measured> {
  const { year, period, databasePid } = dataset
  const [floor, joined] = await startFloors(year, stack)
  const ways = [floor, joined, ...chosen.ours, ...(await startPeers(chosen.peers, year, stack))]
  const checked = await checkSameContent(ways)
  const ofYear = await runRounds(ways, rounds, databasePid)
  checkRounds(ofYear, checked)
  const sections: Record<string, Row[]> = { 'a year': ofYear }
  if (chosen.isWhole) {
    const parts = partsOfYear(service, year, period)
    await runRounds(parts, 1, databasePid)
    sections['part of it'] = await runRounds(parts, rounds, databasePid)
    const url = yearUrl(service, year.exerciceId)
    sections['small requests'] = await measureSmallRequests(service, url, databasePid)
  }
  // Otherwise it would claim full exports from the same queue.
  await service.stop()
  if (chosen.files.length > 0)
    sections['full export to a folder'] = await measureFilesInFolder(
      dataset,
      chosen.files,
      floor,
      rounds,
      stack,
    )
  const inMinio = chosen.isWhole ? await measureFileInMinio(dataset, floor, rounds, stack) : undefined
  if (inMinio) sections['full export to MinIO'] = inMinio
  if (chosen.tools.length > 0) {
    const ofColumns = await measureColumns(dataset, chosen.tools, floor, rounds, stack)
    if (ofColumns.length > 0) sections['a year as columns'] = ofColumns
  }
  return { sections, checked }
}

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
