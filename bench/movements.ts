/**
 * `npm run bench`: a year of movements over HTTP to a client on the same machine, beside what the database takes to
 * send its rows to nowhere, and beside two other ways of making the same answer.
 */
import { openDataset } from './dataset.ts'
import { measureFullExports } from './full-export.ts'
import { startUsage } from './measure.ts'
import { type BenchOptions, readOptions } from './options.ts'
import { interrupted } from './own-process.ts'
import { pictureOf } from './picture.ts'
import { createProgress, type ReportProgress } from './progress.ts'
import { reportOf } from './report.ts'
import { describeMachine, type LargeFolder, type Results, writeResults } from './results.ts'
import { runRounds } from './rounds.ts'
import { checkSameContent } from './same-content.ts'
import { startServiceProcess } from './service-process.ts'
import { measureParts, measureSmallRequests } from './small-requests.ts'
import { oursName, startFloor, startPeers, waysOfService } from './ways.ts'

async function compare(
  options: BenchOptions,
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<Results> {
  const dataset = await openDataset(options.movements, progress, stack)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const { peakMb: idleMb } = startUsage(service.pid)()
  const ofService = waysOfService(service, dataset.year)
  const floor = await startFloor(dataset.year, stack)
  const ways = [floor, ...ofService, ...(await startPeers(dataset.year, stack))]
  const content = await checkSameContent(ways, progress)
  const rounds = await runRounds(ways, options.rounds, progress)
  const parts = await measureParts(service, dataset, options.rounds, progress)
  const small = await measureSmallRequests(service, ofService[0]!.address!.url, progress)
  // It would take full exports from the same queue.
  await service.stop()
  const fullExports = await measureFullExports(dataset, floor, options.rounds, progress, stack)
  return {
    at: new Date().toISOString(),
    machine: describeMachine(dataset.postgresVersion),
    movements: options.movements,
    rows: content.rows,
    contentBytes: content.bytes,
    rounds,
    parts,
    small,
    idleMb,
    fullExports,
    large: options.large === undefined ? null : await measureLarge(options.large, progress, stack),
  }
}

/** The service started anew, so that its memory is that of this folder alone. */
async function measureLarge(
  movements: number,
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<LargeFolder> {
  const dataset = await openDataset(movements, progress, stack)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const [ours] = waysOfService(service, dataset.year)
  const report: ReportProgress = (what, share) =>
    progress(`${movements.toLocaleString('en')} movements, ${what}`, share)
  const { rows, bytes } = await checkSameContent([ours!], report)
  const rounds = await runRounds([ours!], 3, report)
  return { movements, rows, contentBytes: bytes[oursName]!, samples: rounds[oursName]! }
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  const { report, end } = createProgress()
  // Whatever happens, also at Ctrl-C: what was started is stopped, last first.
  await using stack = new AsyncDisposableStack()
  stack.defer(end)
  const results = await Promise.race([compare(options, report, stack), interrupted()])
  end()
  const path = writeResults(results, pictureOf(results))
  // A reader that has seen enough, such as head, is no failure.
  process.stdout.on('error', () => {})
  process.stdout.write(`${reportOf(results)}\n\nWritten: ${path}.json, ${path}.svg\n`)
}

main().then(
  () => process.exit(),
  (error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  },
)
