/**
 * `npm run bench -- fairness`: how soon events reach three healthy subscriptions of one third party, first
 * alone, then beside thousands of subscriptions of another one to the same events, whose receivers are slow
 * or hang.
 */
import { readOptions, wholeNumber } from '../options.ts'
import { runBench } from '../own-process.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { openWebhookStage } from './stage.ts'
import { measureStream, streamLine } from './stream.ts'

/** One event per transaction: 1,000 in 30 seconds. */
const pace = { events: 1_000, perTransaction: 1, everyMs: 30, healthy: 3 }

runBench(async (stack) => {
  // Subscriptions of the greedy third party.
  const crowd = readOptions('npm run bench -- fairness', {
    sluggish: wholeNumber('receivers of the other third party that take 0.9 s', 1_000, [0, 100_000]),
    hang: wholeNumber('its receivers that hang', 3_000, [0, 100_000]),
  })
  const stage = await openWebhookStage(stack)
  const run = async (name: string) => {
    await stage.subscribe('HEALTHY', 'healthy', pace.healthy)
    return measureStream(stage, name, pace)
  }
  await run('warming up')
  const alone = await run('alone')
  for (const behaviour of ['sluggish', 'hang'] as const)
    await stage.subscribe('CROWD', behaviour, crowd[behaviour])
  const crowded = await run(`beside ${crowd.sluggish} that take 0.9 s and ${crowd.hang} that hang`)

  const machine = describeMachine(stage.dataset.postgresVersion)
  return [
    machineLine(machine),
    streamLine(alone),
    streamLine(crowded),
    writeResult('webhook-fairness.json', { at: new Date().toISOString(), machine, crowd, alone, crowded }),
  ]
})
