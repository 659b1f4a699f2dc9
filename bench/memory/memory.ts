/**
 * `npm run bench -- memory`: the peak memory of the service while it sends one, two and eight exports of a year at
 * once, as JSON and as zstd. Memory that a process has used once stays with it, so each of them has a service of
 * its own, started for it. Two at once are measured twice more: after the service has sent the year in every
 * form, and in a service that is the first to compile its code.
 *
 * All others find their code compiled, as every start but the first does: a start that is not measured compiles it.
 */
import { strict as assert } from 'node:assert'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { movementsMax, movementsMin } from '../../packages/sample/src/seed.ts'
import { type Dataset, openDataset } from '../dataset.ts'
import { drain } from '../drain.ts'
import { only, readOptions, wholeNumber } from '../options.ts'
import { runBench, say } from '../own-process.ts'
import { barsOf } from '../report/bars.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, type Machine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable, digits } from '../report/table.ts'
import { measure } from '../rounds.ts'
import type { Row, Sample, Transfer } from '../rows.ts'
import { startServiceProcess, yearUrl } from '../service-process.ts'
import { highest, median } from '../statistics.ts'

/** For one export and for two at once. */
const memoryTargetMb = 256

type Form = Record<string, string>

interface Load {
  name: string
  atOnce: number
  headers: Form
  /** Forms in which the service has sent the year before. */
  before?: Form[]
  /** The service finds no compiled code. */
  compiles?: boolean
}

const zstd = { 'Accept-Encoding': 'zstd' }
const everyForm: Form[] = [{}, { Accept: 'application/x-ndjson' }, zstd, { 'Accept-Encoding': 'gzip' }]

const loads: Load[] = [
  { form: 'JSON', headers: {} },
  { form: 'zstd', headers: zstd },
].flatMap(({ form, headers }): Load[] => [
  ...[1, 2, 8].map((atOnce) => ({ name: `${form}, ${atOnce} at once`, atOnce, headers })),
  { name: `${form}, 2 at once, after every form`, atOnce: 2, headers, before: everyForm },
  { name: `${form}, 2 at once, first start`, atOnce: 2, headers, compiles: true },
])

runBench(async (stack) => {
  const { movements, starts, times, ...options } = readOptions('npm run bench -- memory', {
    movements: wholeNumber('movements of the folder', 600_000, [movementsMin, movementsMax]),
    starts: wholeNumber('starts of the service for each row', 10, [1, 1_000]),
    times: wholeNumber('how often each start repeats the exports', 1, [1, 100]),
    only,
  })
  const chosen = options.only.of(loads)

  const dataset = await openDataset(movements, stack)
  const endWatch = watchMachine(dataset.databasePid)
  say('a start that is not measured, which compiles the code')
  await measureOneStart(dataset, { name: 'compiling', atOnce: 1, headers: zstd }, 1, stack)
  const rows = chosen.map(({ name }): Row => ({ name, samples: [] }))
  for (let start = 1; start <= starts; start++)
    for (const [index, load] of chosen.entries()) {
      say(`start ${start} of ${starts}: ${load.name}`)
      rows[index]!.samples.push(await measureOneStart(dataset, load, times, stack))
    }

  const machine = describeMachine(dataset.postgresVersion)
  const load = endWatch()
  const at = new Date().toISOString()
  const results = { at, machine, load, movements, starts, times, rows }
  return [
    `Exports at once of a year of a folder of ${movements.toLocaleString('en')} movements, ${at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    '',
    ...tableOf(rows),
    '',
    `Of ${starts} starts. The peak is that of ${times} in a row. Seconds, until the last export has ended, and processor time`,
    'of the service are those of the first. Only a "first start" compiles the code; the others find it compiled.',
    writeResult(`memory-${movements}.json`, results),
    writeResult(`memory-${movements}.svg`, pictureOf(machine, rows)),
  ]
})

async function measureOneStart(
  dataset: Dataset,
  { name, atOnce, headers, before = [], compiles = false }: Load,
  times: number,
  stack: AsyncDisposableStack,
): Promise<Sample> {
  const settings = compiles ? { NODE_COMPILE_CACHE: await emptyFolder(stack) } : undefined
  const service = await startServiceProcess(dataset.dataDir, settings)
  stack.defer(service.stop)
  const url = yearUrl(service, dataset.year.exerciceId)
  const read = (form: Form) => Promise.race([drain(url, { ...service.headers, ...form }), service.failed])
  for (const form of before) await read(form)
  const run = async (): Promise<Transfer> => {
    const started = performance.now()
    const answers = await Promise.all(Array.from({ length: atOnce }, () => read(headers)))
    const [first] = answers
    for (const { rows } of answers) assert.equal(rows, first!.rows, `${name}: all exports have the same rows`)
    return {
      ms: performance.now() - started,
      firstByteMs: Math.max(...answers.map(({ firstByteMs }) => firstByteMs)),
      bytes: answers.reduce((sum, { bytes }) => sum + bytes, 0),
      rows: first!.rows,
    }
  }
  const way = { name, pid: service.pid, address: undefined, run }
  const samples: Sample[] = []
  for (let time = 1; time <= times; time++) samples.push(await measure(way, dataset.databasePid))
  await service.stop()
  return { ...samples[0]!, peakMb: highest(samples.map(({ peakMb }) => peakMb)) }
}

/** @param stack removes it */
async function emptyFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-compile-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}

function tableOf(rows: Row[]): string[] {
  const heading = ['', 'peak MB, median', 'least', 'highest', 's', 'CPU s', 'first byte of the last, ms']
  const lines = rows.map(({ name, samples }) => {
    const peaks = samples.map(({ peakMb }) => peakMb ?? 0)
    const middle = (value: (sample: Sample) => number | null) =>
      digits(median(samples.map((sample) => value(sample) ?? 0)))
    return [
      name,
      median(peaks).toFixed(0),
      Math.min(...peaks).toFixed(0),
      Math.max(...peaks).toFixed(0),
      middle(({ ms }) => ms / 1000),
      middle(({ cpuMs }) => (cpuMs ?? 0) / 1000),
      middle(({ firstByteMs }) => firstByteMs),
    ]
  })
  return alignedTable([heading, ...lines])
}

function pictureOf(machine: Machine, rows: Row[]): string {
  const lines = rows.map(({ name }) => ({ name, kind: 'ours' as const }))
  return barsOf('Exports of a year at once', machine, lines, [
    {
      title: 'Peak memory of the service, started for each figure',
      subtitle: `dashed: ${memoryTargetMb} MB, the limit of one and of two at once`,
      bars: rows.map(({ samples }) => ({ values: samples.map(({ peakMb }) => peakMb ?? 0) })),
      print: (value) => `${value.toFixed(0)} MB`,
      mark: memoryTargetMb,
    },
  ])
}
