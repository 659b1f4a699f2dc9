/**
 * `npm run bench -- changes`: what it costs to keep a copy of a year right. The load of a ledger with and without the log of
 * its changes, deltas and blocks after edits of several sizes, and a thousand requests that wait for a change.
 * bench/README.md says how to read the results.
 */
import { resolve } from 'node:path'
import { movementsMax } from '../../packages/sample/src/seed.ts'
import { makeDataDir, openDataset } from '../dataset.ts'
import { against as anotherCheckout, readOptions, wholeNumber } from '../options.ts'
import { project, runBench } from '../own-process.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { startServiceProcess } from '../service-process.ts'
import { measureDeltas } from './deltas.ts'
import { measureLoads } from './loads.ts'
import { tableOfDeltas, tableOfLoads, tableOfWaits } from './tables.ts'
import { measureWaits } from './waits.ts'

/** Fewer have no tenth of a percent. */
const movementsMin = 10_000

runBench(async (stack) => {
  const { movements, rounds, loads, waiting, against } = readOptions('npm run bench -- changes', {
    movements: wholeNumber('movements of the folder', 600_000, [movementsMin, movementsMax]),
    rounds: wholeNumber('rounds of deltas', 5, [1, 100]),
    loads: wholeNumber('loads of a ledger', 3, [1, 100]),
    waiting: wholeNumber('requests that wait', 1_000, [1, 1_000]),
    against: anotherCheckout,
  })

  // Seeded for this run, because it changes the ledger.
  const dataset = await openDataset(movements, stack, await makeDataDir(stack))
  const checkouts = { here: project, against }
  if (against !== undefined) checkouts.against = resolve(against)
  const loaded = await measureLoads(dataset, movements, loads, checkouts)
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const deltas = await measureDeltas(dataset, service, rounds)
  await service.stop()
  const waits = await measureWaits(dataset, waiting, stack)

  const machine = describeMachine(dataset.postgresVersion)
  const at = new Date().toISOString()
  return [
    `Changes in a folder of ${movements.toLocaleString('en')} movements, ${at.slice(0, 10)}`,
    machineLine(machine),
    '',
    ...tableOfLoads(loaded),
    '',
    ...tableOfDeltas(deltas),
    '',
    ...tableOfWaits(waits),
    '',
    'Medians of the rounds; a ratio is that of each round, then the median.',
    writeResult(`changes-${movements}.json`, { at, machine, movements, loaded, deltas, waits }),
  ]
})
