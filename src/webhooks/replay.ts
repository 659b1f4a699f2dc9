/** Replays: deliveries with the numbers and ids that their events have had before, so subscribers can drop repeats. */
import type { ClientBase } from 'pg'
import { invalid } from '../errors.ts'
import { notifyEvents } from '../events/events.sql.ts'
import { packBatch, toldOf } from './body.ts'
import { type Numbers, numbersOfSpan, readNumbered, type Span } from './sequence/numbered.sql.ts'
import { insertReplay, replayFailed } from './staff.sql.ts'

/** Events per query. */
const pageEvents = 1_000

/** A subscription, and the last number in a delivery. */
interface Sent {
  id: string
  collected: number
}

/** To be called with the subscription locked. @returns how many deliveries will be sent again */
export async function replayFailedDeliveries(
  client: ClientBase,
  subscriptionId: string,
  now: number,
): Promise<number> {
  const schemaIds = new Set<string>()
  let deliveries = 0
  for (let after: string | null = '0'; after !== null; ) {
    const replayed = await replayFailed(client, subscriptionId, after, now)
    for (const schemaId of replayed.schemaIds) schemaIds.add(schemaId)
    deliveries += replayed.deliveries
    after = replayed.last
  }
  for (const schemaId of schemaIds) await notifyEvents(client, schemaId)
  return deliveries
}

/**
 * Replays what happened in a time span, as far as it is kept and was delivered or skipped before. (The rest is yet to be
 * delivered.) To be called with the subscription locked.
 * @param now epoch milliseconds
 * @returns how many events
 */
export async function replaySpan(
  client: ClientBase,
  { id, collected }: Sent,
  span: Span,
  now: number,
): Promise<number> {
  let events = 0
  for (const { first, last } of await numbersOfSpan(client, id, span)) {
    const sent = { first, last: Math.min(last, collected) }
    events += (await replayNumbers(client, id, sent, now)).events
  }
  return events
}

/** @param to a number that is to be replayed. @throws {AppError} ERR-VALIDATION if it was not sent yet */
export function checkSent(to: number, { collected }: Pick<Sent, 'collected'>): void {
  if (collected === 0) throw invalid('to', 'is the number of no event that was sent: nothing was sent yet')
  if (to > collected) throw invalid('to', `must be at most ${collected}, the last number that was sent`)
}

interface Replayed {
  deliveries: number
  events: number
}

/**
 * Replays the events with these numbers, as far as they are kept. To be called with the subscription locked.
 * @param now epoch milliseconds
 */
export async function replayNumbers(
  client: ClientBase,
  subscriptionId: string,
  { first, last }: Numbers,
  now: number,
): Promise<Replayed> {
  const schemaIds = new Set<string>()
  const replayed = { deliveries: 0, events: 0 }
  let after = first - 1
  while (after < last) {
    const page = await readNumbered(client, subscriptionId, after, Math.min(pageEvents, last - after))
    for (let unsent = toldOf(page); unsent.length > 0; ) {
      const batch = packBatch(subscriptionId, unsent)
      await insertReplay(client, subscriptionId, batch, now)
      schemaIds.add(batch.schemaId)
      replayed.deliveries += 1
      replayed.events += batch.events
      unsent = unsent.slice(batch.events)
    }
    after += pageEvents
  }
  for (const schemaId of schemaIds) await notifyEvents(client, schemaId)
  return replayed
}
