/** Packs events into deliveries as the service does: up to 100, and up to 90 KiB unless one alone is larger. Pure. */

import { deliveryBytesMax, deliveryEventsMax } from '../../../../contract/src/webhook-delivery.ts'
import type { NumberedEvent } from '../../client/events.ts'

export interface Batch {
  /** At least one, with consecutive numbers. */
  events: NumberedEvent[]
  /** The bytes that the service would send: it writes what JSON.stringify gives. */
  body: Uint8Array
  /** `1042-1061` */
  sequence: string
}

/** @param events with consecutive numbers */
export function* batchesOf(events: readonly NumberedEvent[]): Generator<Batch> {
  let packed: NumberedEvent[] = []
  let texts: string[] = []
  let bytes = 0
  for (const each of events) {
    const text = JSON.stringify(each.event)
    const size = Buffer.byteLength(text) + 1
    if (packed.length === deliveryEventsMax || (packed.length > 0 && bytes + size > deliveryBytesMax)) {
      yield batch(packed, texts)
      packed = []
      texts = []
      bytes = 0
    }
    packed.push(each)
    texts.push(text)
    bytes += size
  }
  if (packed.length > 0) yield batch(packed, texts)
}

function batch(events: NumberedEvent[], texts: string[]): Batch {
  return {
    events,
    body: Buffer.from(`[${texts.join(',')}]`),
    sequence: `${events[0]!.sequence}-${events.at(-1)!.sequence}`,
  }
}
