/** What of a subscription is not in a delivery yet, or not delivered. */
import type { ClientBase } from 'pg'
import { countNumbers, oldestNumber, readNumbered } from './sequence/numbered.sql.ts'
import { countUnnumbered, type SubscriptionRecord } from './staff.sql.ts'
import { readLateness } from './standing.sql.ts'

export interface Backlog {
  /** Events that are in no delivery, with or without numbers; more than `eventsMax` where there may be more. */
  events: number
  eventsMax: number
  /** When the oldest that is not delivered happened or was put in a delivery: ISO 8601, UTC. */
  since: string | null
  /** As metrics and their alert count; undefined if nothing is to be sent. */
  lateSeconds: number | undefined
}

/** As the owner. @param counted counts events without a number up to one more than this. Absent: counts all */
export async function readBacklog(
  client: ClientBase,
  { id, numbered, collected, pendingSince }: SubscriptionRecord,
  counted?: number,
): Promise<Backlog> {
  const unnumbered = await countUnnumbered(client, id, counted)
  // Fewer than the numbers themselves after a failover, which leaves a gap.
  const numbers = await countNumbers(client, id, collected)
  const oldest = numbered === collected ? null : await readOldest(client, id, Number(collected))
  return {
    events: numbers + unnumbered.events,
    eventsMax: numbers + (counted ?? unnumbered.events),
    since: pendingSince ?? oldest ?? unnumbered.since,
    lateSeconds: await readLateness(client, id),
  }
}

/** When the first event after a number happened, if it is kept. */
async function readOldest(client: ClientBase, id: string, after: number): Promise<string | null> {
  const [event] = await readNumbered(client, id, (await oldestNumber(client, id, after)) - 1, 1)
  return event ? `${new Date(event.createdAt).toISOString().slice(0, 19)}Z` : null
}
