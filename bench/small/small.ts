/**
 * `npm run bench -- small`: exports of a small folder, one after the other; processor time of the service and of
 * the database, and time to first byte, per export. With `--against FOLDER` another checkout of the project
 * takes turns with this one.
 */
import { movementsMin } from '../../packages/sample/src/seed.ts'
import { against, readOptions, wholeNumber } from '../options.ts'
import { runBench } from '../own-process.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { tableOf } from '../report/table.ts'
import type { Row } from '../rows.ts'
import { type ServiceProcess, startServiceProcess, yearUrl } from '../service-process.ts'
import { databaseOf, makeCandidates } from './candidate.ts'
import { measureLatency } from './latency.ts'

runBench(async (stack) => {
  const { movements, requests, rounds, ...options } = readOptions('npm run bench -- small', {
    movements: wholeNumber('movements of the folder', 2_000, [movementsMin, 100_000]),
    requests: wholeNumber('exports of a round', 200, [1, 100_000]),
    rounds: wholeNumber('rounds', 5, [1, 100]),
    against,
  })

  const measured = []
  for (const candidate of await makeCandidates(movements, options.against, stack)) {
    const service = await startServiceProcess(candidate.dataDir, {}, candidate.checkout)
    stack.defer(service.stop)
    const { name } = candidate
    measured.push({ name, service, database: await databaseOf(candidate) })
  }
  const rows = measured.map(({ name }): Row => ({ name, samples: [] }))
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++)
    for (const [index, { name, service, database }] of measured.entries()) {
      const what = `round ${round} of ${rounds}: ${name}`
      const { samples } = await exportRepeatedly(what, service, database.pid, requests)
      if (round > 0) rows[index]!.samples.push(...samples)
    }

  const machine = describeMachine(measured[0]!.database.postgresVersion)
  const sections = { [`one export of ${movements.toLocaleString('en')}`]: rows }
  return [
    machineLine(machine),
    ...tableOf(sections),
    '',
    `Medians of ${rounds} rounds, each of ${requests} exports of the last year of the folder, one after the other.`,
    writeResult(`small-${movements}.json`, { at: new Date().toISOString(), machine, requests, sections }),
  ]
})

/** @returns one sample, with medians and the average consumption of an export */
function exportRepeatedly(
  name: string,
  service: ServiceProcess,
  databasePid: number,
  requests: number,
): Promise<Row> {
  const { headers, exercices } = service
  const year = { url: yearUrl(service, exercices.at(-1)!.id), headers, status: 200, requests }
  return measureLatency(name, year, service, databasePid)
}
