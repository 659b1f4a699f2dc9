/**
 * `npm run bench -- telemetry`: what metrics and traces cost. Two services on the same database take turns: one collects
 * nothing, the other is scraped every second and sends metrics and traces to a collector.
 * Each round measures exports of a year and small requests, and compares the two. With `--against FOLDER` the first is that
 * of another checkout: one from before the audit, which cannot be switched off, shows what all three cost.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { movementsMax, movementsMin } from '../../packages/sample/src/seed.ts'
import { openDataset } from '../dataset.ts'
import { against as anotherCheckout, readOptions, wholeNumber } from '../options.ts'
import { runBench, script, startListener } from '../own-process.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable } from '../report/table.ts'
import { type ServiceProcess, startServiceProcess, yearUrl } from '../service-process.ts'
import { measureLatency } from '../small/latency.ts'
import { median } from '../statistics.ts'

/** Operators scrape every 15 seconds: this costs more than theirs. */
const scrapeEveryMs = 1_000
/** The first free one would be unknown to the bench. */
const metricsPort = 19_464

/** Of one service in one round. */
interface Measured {
  /** Processor time and time of an export. */
  exportCpuMs: number
  exportMs: number
  /** Processor time and median time of a small request. */
  smallCpuMs: number
  smallMs: number
}

interface Side {
  name: string
  service: ServiceProcess
  rounds: Measured[]
}

runBench(async (stack) => {
  const { movements, rounds, against, ...repeated } = readOptions('npm run bench -- telemetry', {
    movements: wholeNumber('movements of the folder', 600_000, [movementsMin, movementsMax]),
    rounds: wholeNumber('rounds', 10, [1, 100]),
    exports: wholeNumber('exports of a year in a round', 5, [1, 100]),
    requests: wholeNumber('key/info of a round', 1_000, [1, 100_000]),
    against: anotherCheckout,
  })
  const dataset = await openDataset(movements, stack)
  const endWatch = watchMachine(dataset.databasePid)
  const sides = await startSides(dataset.dataDir, against, stack)
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++)
    // Who comes second finds a warmer machine.
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const measured = await measure(`round ${round} of ${rounds}, ${side.name}`, side.service, repeated, {
        exerciceId: dataset.year.exerciceId,
        databasePid: dataset.databasePid,
      })
      if (round > 0) side.rounds.push(measured)
    }
  const machine = describeMachine(dataset.postgresVersion)
  const load = endWatch()
  const results = { at: new Date().toISOString(), machine, load, movements, ...repeated }
  const named = Object.fromEntries(sides.map(({ name, rounds: measured }) => [name, measured]))
  return [
    `What ${against === undefined ? 'metrics and traces' : 'metrics, traces and the audit'} cost, ${results.at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    ...alignedTable(tableOf(sides)),
    '',
    `Medians of ${rounds} rounds in turns, each of ${repeated.exports} exports of a year and ${repeated.requests} key/info.`,
    'The last line is the median of the differences of each round.',
    writeResult(`telemetry-${against === undefined ? '' : 'audit-'}${movements}.json`, {
      ...results,
      rounds: named,
    }),
  ]
})

async function startSides(
  dataDir: string,
  against: string | undefined,
  stack: AsyncDisposableStack,
): Promise<Side[]> {
  const collector = await startListener(script('./telemetry/collector.ts'), { env: {} })
  stack.defer(collector.stop)
  const off = await startServiceProcess(dataDir, {}, against)
  stack.defer(off.stop)
  const on = await startServiceProcess(dataDir, {
    METRICS_PORT: String(metricsPort),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  })
  stack.defer(on.stop)
  const scraping = new AbortController()
  stack.defer(() => scraping.abort())
  // It ends by the abort; a service that is gone is reported by the next request to it.
  scrape(scraping.signal).catch(() => {})
  return [
    // The start of the second has replaced the token of the first.
    { name: against === undefined ? 'off' : 'before', service: { ...off, headers: on.headers }, rounds: [] },
    { name: 'on', service: on, rounds: [] },
  ]
}

async function scrape(stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { signal: stopped })).text()
    await delay(scrapeEveryMs, undefined, { signal: stopped })
  }
}

async function measure(
  name: string,
  service: ServiceProcess,
  { exports, requests }: { exports: number; requests: number },
  { exerciceId, databasePid }: { exerciceId: string; databasePid: number },
): Promise<Measured> {
  const { headers } = service
  const of = async (what: string, url: string, count: number) => {
    const repeated = { url, headers, status: 200, requests: count }
    const row = await measureLatency(`${name}: ${what}`, repeated, service, databasePid)
    return row.samples[0]!
  }
  const year = await of('exports', yearUrl(service, exerciceId), exports)
  const small = await of('key/info', `${service.url}/api/v1/key/info`, requests)
  return {
    exportCpuMs: year.cpuMs ?? 0,
    exportMs: year.ms,
    smallCpuMs: small.cpuMs ?? 0,
    smallMs: small.ms,
  }
}

const columns = {
  exportCpuMs: 'export CPU ms',
  exportMs: 'export ms',
  smallCpuMs: 'key/info CPU ms',
  smallMs: 'key/info ms',
} satisfies Record<keyof Measured, string>

function tableOf([off, on]: Side[]): string[][] {
  const keys = Object.keys(columns) as (keyof Measured)[]
  const medians = ({ name, rounds }: Side) => [
    name,
    ...keys.map((key) => median(rounds.map((round) => round[key])).toFixed(2)),
  ]
  const differences = keys.map((key) => {
    const pairs = off!.rounds.map((round, index) => [round[key], on!.rounds[index]![key]] as const)
    const ms = median(pairs.map(([without, with_]) => with_ - without))
    const share = median(pairs.map(([without, with_]) => with_ / without - 1))
    return `${ms.toFixed(2)} (${(share * 100).toFixed(1)} %)`
  })
  return [['', ...Object.values(columns)], medians(off!), medians(on!), ['difference', ...differences]]
}
