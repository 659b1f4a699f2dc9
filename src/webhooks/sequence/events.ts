/** Reading the events of a subscription by number (docs/spec/webhooks.md#reading-events). */
import type { Pool, PoolClient } from 'pg'
import { limits } from '../../config.ts'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { type NumberedEvent, notificationOf } from '../body.ts'
import { findOwnSubscription, type Owner, wakeSubscription } from '../subscriptions.sql.ts'
import { findJump, type Numbers, oldestNumber, readNumbered } from './numbered.sql.ts'
import { numberInParts, readNumbering } from './numbering.sql.ts'

export interface EventPage {
  /** JSON: an array of `{"sequence","event"}`. */
  json: string
  events: number
  /**
   * The last number of the subscription. Every event committed before the call has a number. If all events after the
   * given number were erased, this is the given number: a reader that reads up to the last number would never end.
   */
  latest: number
  /** The epoch in which the events of the page got their numbers; the present epoch if the page has no events. */
  epoch: number
  /** Numbers of events that were erased with their folder. Most of them lie within the page; some may follow it. */
  erased: Numbers[]
}

/**
 * Reads the events after a number, whatever the state of the subscription. Events without a number get their numbers
 * first.
 * @param most events per page; a page has fewer if it would exceed `limits.eventPageBytesMax`
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND; ERR-EVENTS-EXPIRED if the next event is no longer kept
 */
export async function readEvents(
  database: Pool,
  owner: Owner,
  subscriptionId: string,
  after: number,
  most: number,
): Promise<EventPage> {
  const { schemaId } = owner
  // Events are numbered only once for a page: in a busy schema, newer events keep arriving.
  let isNumbered = false
  for (;;) {
    const page = await inTenant(database, schemaId, async (client) => {
      await findOwnSubscription(client, owner, subscriptionId)
      const { numbered, epoch, isBehind, isRetried } = await readNumbering(client, subscriptionId, after)
      if (isBehind && !isNumbered) return 'behind'
      if (isRetried) await wakeSubscription(client, subscriptionId, 'reader')
      const erased: Numbers[] = []
      for (let from = after; ; ) {
        const events = from < numbered ? await readNext(client, subscriptionId, from, most) : []
        const shown = shownEvents(events, erased)
        const last = events.at(-1)?.sequence
        // A page whose events were all erased is skipped: an empty page would look like the end.
        if (shown.length === 0 && last !== undefined) {
          from = last
          continue
        }
        // If only erased events are left, there is nothing to read. A page may go beyond `numbered`: a reader or the
        // dispatcher may have numbered more events just now.
        const latest = from > after && last === undefined ? after : Math.max(numbered, last ?? 0)
        return { ...packPage(subscriptionId, shown), latest, epoch: events[0]?.epoch ?? epoch, erased }
      }
    })
    if (page !== 'behind') return page
    await numberInParts((run) => inTenant(database, schemaId, run), subscriptionId)
    isNumbered = true
  }
}

/** Most ranges of erased numbers per page: a header lists them, and proxies accept only a few thousand bytes. */
const erasedMax = 50

/**
 * Returns the events that are not erased and adds the numbers of the others to `erased`. Stops before `erased` would
 * have too many ranges.
 */
function shownEvents(events: NumberedEvent[], erased: Numbers[]): NumberedEvent[] {
  const shown: NumberedEvent[] = []
  for (const event of events) {
    const { sequence, isErased } = event
    const last = erased.at(-1)
    if (!isErased) shown.push(event)
    else if (last?.last === sequence - 1) last.last = sequence
    else if (erased.length < erasedMax || shown.length === 0) erased.push({ first: sequence, last: sequence })
    else break
  }
  return shown
}

/**
 * Reads the events after a number. If the numbers jump right after it, reads the events after the jump.
 * @throws {AppError} ERR-EVENTS-EXPIRED
 */
async function readNext(client: PoolClient, subscriptionId: string, after: number, most: number) {
  const events = await readNumbered(client, subscriptionId, after, most)
  if (events[0]?.sequence === after + 1) return events
  const jump = await findJump(client, subscriptionId, after)
  const beyond = jump === undefined ? [] : await readNumbered(client, subscriptionId, jump, most)
  if (jump === undefined || beyond[0]?.sequence !== jump + 1)
    throw new AppError('ERR-EVENTS-EXPIRED', {
      oldest: String(await oldestNumber(client, subscriptionId, after)),
    })
  return beyond
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
