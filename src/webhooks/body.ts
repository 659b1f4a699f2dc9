/** Builds the body of a delivery. It is built once, stored, and sent unchanged on every attempt. */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { limits } from '../config.ts'

/** UUID name space of the ids of notifications. Generated once; must never change. */
const webhookIds = Buffer.from('e7f3a4c26b8d4d0f9a51c0d27f6be318', 'hex')

/** A row of `events`. */
interface StoredEvent {
  /** Decimal digits. */
  id: string
  name: string
  operation: string
  scope: unknown
  data: unknown
  /** Epoch milliseconds. */
  createdAt: number
}

/** An event with its number in a subscription. */
export interface NumberedEvent extends StoredEvent {
  schemaId: string
  /** The epoch in which the event got its number. */
  epoch: number
  sequence: number
  /**
   * Whether the event was erased. It then keeps its number and is not sent (`isErased` in sequence/numbering.sql.ts).
   */
  isErased?: boolean
}

/** Returns the events that were not erased. Erased events are not sent, and leave a gap in the numbers. */
export function withoutErased(events: NumberedEvent[]): NumberedEvent[] {
  return events.filter(({ isErased }) => !isErased)
}

/** The events of one request: all of one schema, with consecutive numbers. */
export type Batch = ReturnType<typeof packBatch>

/**
 * Packs as many of these events, in order, as fit into one request. Stops at the first event of another schema and at
 * the first gap in the numbers.
 * @param events at least one
 */
export function packBatch(subscriptionId: string, events: NumberedEvent[]) {
  const [first] = events
  assert(first, 'a delivery holds at least one event')
  let last = first
  const items: string[] = []
  let bytes = 0
  for (const event of events.slice(0, limits.deliveryEventsMax)) {
    if (event.schemaId !== first.schemaId || event.sequence !== first.sequence + items.length) break
    const item = notificationOf(subscriptionId, event)
    bytes += Buffer.byteLength(item) + 1
    if (items.length > 0 && bytes > limits.deliveryBytesMax) break
    items.push(item)
    last = event
  }
  return {
    body: Buffer.from(`[${items.join(',')}]`),
    schemaId: first.schemaId,
    /** The epoch of all its numbers: numbers jump where the epoch changes. */
    epoch: first.epoch,
    /** Decimal digits. */
    firstEvent: first.id,
    lastEvent: last.id,
    events: items.length,
    firstSequence: first.sequence,
    lastSequence: last.sequence,
  }
}

/**
 * Returns an event as JSON, as this subscription gets it (docs/spec/webhooks.md#notification). Receivers verify
 * signatures over the JSON that they parse and serialize again. That gives the same bytes, because `JSON.stringify`
 * already writes keys that look like numbers first, and -0 as 0. Scope and data must be plain JSON values.
 */
export function notificationOf(subscriptionId: string, event: StoredEvent): string {
  const { id, name, operation, scope, data, createdAt } = event
  return JSON.stringify({ name, operation, scope, data, webhookId: webhookId(subscriptionId, id), createdAt })
}

/**
 * The id of an event for one subscription, the same on every attempt and replay, so that a subscriber can drop repeats.
 * A UUID of version 5 (RFC 9562), because older validators refuse version 8. It is computed, so nothing has to be
 * stored.
 */
export function webhookId(subscriptionId: string, eventId: string): string {
  const bytes = createHash('sha1').update(webhookIds).update(`${subscriptionId} ${eventId}`).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
