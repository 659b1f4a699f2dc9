/** Packs events into deliveries as the service does: up to 100, and up to 90 KiB unless one alone is larger. Pure. */

import { deliveryBytesMax, deliveryEventsMax } from '../../../../contract/src/webhook-delivery.ts'
import type { EventPage, NumberedEvent } from '../../client/events.ts'

export interface Batch {
  /** At least one, with consecutive numbers. */
  events: NumberedEvent[]
  /** The bytes that the service would send: it writes what JSON.stringify gives. */
  body: Uint8Array
  /** `1042-1061` */
  sequence: string
  /** Of its numbers. */
  epoch: number | undefined
}

/** @param page its events have consecutive numbers */
export function* batchesOf({ events, epoch }: Pick<EventPage, 'events' | 'epoch'>): Generator<Batch> {
  let packed: NumberedEvent[] = []
  let texts: string[] = []
  let bytes = 0
  for (const each of events) {
    const text = JSON.stringify(each.event)
    const size = Buffer.byteLength(text) + 1
    if (packed.length === deliveryEventsMax || (packed.length > 0 && bytes + size > deliveryBytesMax)) {
      yield batch(packed, texts, epoch)
      packed = []
      texts = []
      bytes = 0
    }
    packed.push(each)
    texts.push(text)
    bytes += size
  }
  if (packed.length > 0) yield batch(packed, texts, epoch)
}

function batch(events: NumberedEvent[], texts: string[], epoch: number | undefined): Batch {
  return {
    events,
    body: Buffer.from(`[${texts.join(',')}]`),
    sequence: `${events[0]!.sequence}-${events.at(-1)!.sequence}`,
    epoch,
  }
}
