/** Reading the events of a subscription by number (docs/spec/webhooks.md#reading-events). */
import type { Pool } from 'pg'
import { limits } from '../../config.ts'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { type NumberedEvent, notificationOf, toldOf } from '../body.ts'
import { findOwnSubscription, type Owner, wakeSubscription } from '../subscriptions.sql.ts'
import { numberInParts } from './number-in-parts.ts'
import { findJump, oldestNumber, readNumbered } from './numbered.sql.ts'
import { readNumbering } from './numbering.sql.ts'

export interface EventPage {
  /** A JSON array of `{"sequence","event"}`. */
  json: string
  events: number
  /** The last number of the subscription. Every event that was committed before the call has one. */
  latest: number
  /** In which the events of the page got their numbers; without events, the present one: all that was committed has its number. */
  epoch: number
}

/**
 * Reads the events after a number, whatever the state of the subscription, and numbers those that have none yet.
 * @param most the page is shorter if it would exceed `limits.eventPageBytesMax`
 * @returns undefined if it does not exist or is not the caller's
 * @throws {AppError} ERR-EVENTS-EXPIRED if the next event is no longer kept
 */
export async function readEvents(
  database: Pool,
  owner: Owner,
  subscriptionId: string,
  after: number,
  most: number,
): Promise<EventPage | undefined> {
  const { schemaId } = owner
  // Asked once: in a busy schema, there are always newer events.
  let isNumbered = false
  for (;;) {
    const page = await inTenant(database, schemaId, async (client) => {
      if (!(await findOwnSubscription(client, owner, subscriptionId))) return undefined
      const { numbered, epoch, isBehind, isRetried } = await readNumbering(client, subscriptionId, after)
      if (isBehind && !isNumbered) return 'behind'
      if (isRetried) await wakeSubscription(client, subscriptionId, 'reader')
      let events = after < numbered ? await readNumbered(client, subscriptionId, after, most) : []
      if (after < numbered && events[0]?.sequence !== after + 1) {
        const jump = await findJump(client, subscriptionId, after)
        events = jump === undefined ? [] : await readNumbered(client, subscriptionId, jump, most)
        const isExpired = jump === undefined || events[0]?.sequence !== jump + 1
        if (isExpired) throw expired(await oldestNumber(client, subscriptionId, after))
      }
      // A reader or the dispatcher may just have numbered more.
      const latest = Math.max(numbered, events.at(-1)?.sequence ?? 0)
      // A page of erased events alone would look like the end.
      while (events.length > 0 && toldOf(events).length === 0)
        events = await readNumbered(client, subscriptionId, events.at(-1)!.sequence, most)
      return { ...packPage(subscriptionId, toldOf(events)), latest, epoch: events[0]?.epoch ?? epoch }
    })
    if (page !== 'behind') return page
    await numberInParts((run) => inTenant(database, schemaId, run), subscriptionId)
    isNumbered = true
  }
}

function packPage(subscriptionId: string, events: NumberedEvent[]): Pick<EventPage, 'json' | 'events'> {
  const items: string[] = []
  let bytes = 0
  for (const event of events) {
    const item = `{"sequence":"${event.sequence}","event":${notificationOf(subscriptionId, event)}}`
    bytes += Buffer.byteLength(item)
    if (items.length > 0 && bytes > limits.eventPageBytesMax) break
    items.push(item)
  }
  return { json: `[${items.join(',')}]`, events: items.length }
}

function expired(oldest: number): AppError {
  return new AppError('ERR-EVENTS-EXPIRED', { oldest: String(oldest) })
}
