/** The bytes of a delivery, made once, stored, and sent as they are at every attempt. */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { limits } from '../config.ts'

/** The name space of the ids of notifications: drawn once, and never to change. */
const webhookIds = Buffer.from('e7f3a4c26b8d4d0f9a51c0d27f6be318', 'hex')

/** A row of `events`. */
export interface StoredEvent {
  /** Digits. */
  id: string
  name: string
  operation: string
  scope: unknown
  data: unknown
  /** Epoch milliseconds. */
  createdAt: number
}

/** Events that go out in one request. */
export interface Batch {
  body: Buffer
  /** Digits. */
  firstEvent: string
  lastEvent: string
  events: number
}

/**
 * As many of these events, in their order, as one request takes.
 * @param events at least one
 */
export function packBatch(subscriptionId: string, events: StoredEvent[]): Batch {
  const items: string[] = []
  let bytes = 0
  for (const event of events.slice(0, limits.deliveryEventsMax)) {
    const item = stableJson(notificationOf(subscriptionId, event))
    bytes += Buffer.byteLength(item) + 1
    if (items.length > 0 && bytes > limits.deliveryBytesMax) break
    items.push(item)
  }
  const last = events[items.length - 1]
  assert(events[0] && last, 'a delivery holds at least one event')
  const body = Buffer.from(`[${items.join(',')}]`)
  return { body, firstEvent: events[0].id, lastEvent: last.id, events: items.length }
}

/** Interface, section 2.7. */
function notificationOf(subscriptionId: string, event: StoredEvent): object {
  const { name, operation, scope, data, createdAt } = event
  return { name, operation, scope, data, webhookId: webhookId(subscriptionId, event.id), createdAt }
}

/**
 * The same for that event and subscription at every attempt and replay, so that a subscriber can drop repeats: a UUID
 * of version 5 (RFC 9562), as those of version 8 are refused by checks that are older than that. Nothing has to be
 * stored for it.
 */
export function webhookId(subscriptionId: string, eventId: string): string {
  const bytes = createHash('sha1').update(webhookIds).update(`${subscriptionId} ${eventId}`).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/**
 * JSON that stays as it is when a receiver parses it and calls `JSON.stringify` again, because receivers verify
 * signatures that way. Once through is not enough: keys that look like numbers change their place when they are
 * parsed, -0 loses its sign, and a key that stands twice remains once.
 */
export function stableJson(value: unknown): string {
  let text = JSON.stringify(value)
  for (;;) {
    const again = JSON.stringify(JSON.parse(text))
    if (again === text) return text
    text = again
  }
}
