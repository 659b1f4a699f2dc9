/**
 * `npm run bench -- webhooks`: how fast one subscriber receives a backlog, and how soon thirty healthy ones
 * receive new events while twenty others fail, hang or take nine seconds. The service runs as with `npm
 * start`, on the embedded database; the subscribers are a separate process on the same machine.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { readOptions } from '../options.ts'
import { runBench, say } from '../own-process.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { median } from '../statistics.ts'
import { openWebhookStage, type WebhookStage } from './stage.ts'
import { measureStream, streamLine } from './stream.ts'

const backlogEvents = 50_000
const backlogRounds = 5
const subscriber = 'SUBSCRIBER'
const subscribers = { healthy: 30, fail: 10, hang: 5, slow: 5 } as const
/** 250 events per second, 7,500 to be delivered per second. */
const pace = { events: 10_000, perTransaction: 5, everyMs: 20, healthy: subscribers.healthy }

runBench(async (stack) => {
  readOptions('npm run bench -- webhooks', {})
  const stage = await openWebhookStage(stack)
  const perSecond: number[] = []
  // Round 0 warms up.
  for (let round = 0; round <= backlogRounds; round++) {
    say(`backlog, round ${round} of ${backlogRounds}`)
    const rate = await measureBacklog(stage)
    if (round > 0) perSecond.push(rate)
  }
  for (const behaviour of ['healthy', 'fail', 'hang', 'slow'] as const)
    await stage.subscribe(subscriber, behaviour, subscribers[behaviour])
  const stream = await measureStream(stage, 'fifty subscribers', pace)

  const machine = describeMachine(stage.dataset.postgresVersion)
  const backlog = { events: backlogEvents, perSecond }
  const [least, most] = [Math.min(...perSecond), Math.max(...perSecond)]
  return [
    machineLine(machine),
    `backlog of ${backlogEvents} events to one subscriber: ${median(perSecond).toFixed(0)} events/s (median of ` +
      `${perSecond.length}; ${least.toFixed(0)} to ${most.toFixed(0)})`,
    streamLine(stream),
    writeResult('webhooks.json', { at: new Date().toISOString(), machine, subscribers, backlog, stream }),
  ]
})

/**
 * Commits all events at once.
 * @returns events per second from the commit to the last arrival
 */
async function measureBacklog(stage: WebhookStage): Promise<number> {
  await stage.subscribe(subscriber, 'healthy', 1)
  await stage.write(backlogEvents, 0)
  const started = performance.now()
  while ((await stage.count()) < backlogEvents) await delay(5)
  const seconds = (performance.now() - started) / 1000
  await stage.clear()
  return backlogEvents / seconds
}
