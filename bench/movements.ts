/**
 * `npm run bench`: a year of movements over HTTP to a client on the same machine, beside what the database takes to
 * send its rows to nowhere, and beside two other ways of making the same answer.
 */
import { openDataset } from './dataset.ts'
import { type BenchOptions, readOptions } from './options.ts'
import { pictureOf } from './picture.ts'
import { createProgress, type ReportProgress } from './progress.ts'
import { reportOf } from './report.ts'
import { describeMachine, type LargeFolder, type Results, writeResults } from './results.ts'
import { measure, runRounds } from './rounds.ts'
import { checkSameContent } from './same-content.ts'
import { startServiceProcess } from './service-process.ts'
import { measureParts, measureSmallRequests } from './small-requests.ts'
import { startFloor, startPeers, waysOfService } from './ways.ts'

async function compare(
  options: BenchOptions,
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<Results> {
  const dataset = await openDataset(options.movements, progress)
  stack.defer(dataset.close)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const ofService = waysOfService(service, dataset.year)
  const ways = [
    await startFloor(dataset.year, stack),
    ...ofService,
    ...(await startPeers(dataset.year, stack)),
  ]
  const content = await checkSameContent(ways, progress)
  const rounds = await runRounds(ways, options.rounds, progress)
  const parts = await measureParts(service, dataset, options.rounds, progress)
  const small = await measureSmallRequests(service, ofService[0]!.address!.url, progress)
  return {
    at: new Date().toISOString(),
    machine: describeMachine(dataset.postgresVersion),
    movements: options.movements,
    rows: content.rows,
    contentBytes: content.bytes,
    rounds,
    parts,
    small,
    large: options.large === undefined ? null : await measureLarge(options.large, progress, stack),
  }
}

/** The service started anew, so that its memory is that of this folder alone. */
async function measureLarge(
  movements: number,
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<LargeFolder> {
  const dataset = await openDataset(movements, progress)
  stack.defer(dataset.close)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  progress(`exporting ${movements.toLocaleString('en')} movements`, 0)
  const [ours] = waysOfService(service, dataset.year)
  const { rows } = await checkSameContent([ours!], progress)
  return { movements, rows, sample: await measure(ours!) }
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  const { report, end } = createProgress()
  // Whatever happens, also at Ctrl-C: what was started is stopped, last first.
  await using stack = new AsyncDisposableStack()
  stack.defer(end)
  const results = await Promise.race([compare(options, report, stack), interrupted()])
  end()
  process.stdout.write(`${reportOf(results)}\n`)
  const path = writeResults(results, pictureOf(results))
  process.stdout.write(`\nWritten: ${path}.json, ${path}.svg\n`)
}

function interrupted(): Promise<never> {
  return new Promise((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new Error(`Stopped by ${signal}`)))
  })
}

main().then(
  () => process.exit(),
  (error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  },
)
