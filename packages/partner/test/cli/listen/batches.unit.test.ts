/** Listen sends what the service would send: the same bytes, cut at the same places. */
import { expect, test } from 'vitest'
import { type NumberedEvent, notificationOf, packBatch } from '../../../../../src/webhooks/body.ts'
import { batchesOf } from '../../../src/cli/listen/forwarding.ts'
import type { NumberedEvent as ReadEvent } from '../../../src/client/events.ts'

/** The deliveries of the service for these events. */
function delivered(stored: NumberedEvent[]): { body: string; sequence: string }[] {
  if (stored.length === 0) return []
  const { body, events, firstSequence, lastSequence } = packBatch('7', stored)
  return [
    { body: String(body), sequence: `${firstSequence}-${lastSequence}` },
    ...delivered(stored.slice(events)),
  ]
}

/** The events as the route of events shows them. */
function read(stored: NumberedEvent[]): ReadEvent[] {
  return stored.map((event) => ({
    sequence: event.sequence,
    event: JSON.parse(notificationOf('7', event)),
  }))
}

const storedWith = (data: unknown[]): NumberedEvent[] =>
  data.map((each, index) => ({
    id: String(index + 1),
    name: 'document',
    operation: 'CREATE',
    scope: { schemaId: 100 },
    data: each,
    createdAt: 1_795_255_463_892,
    schemaId: '100',
    epoch: 5,
    sequence: index + 41,
  }))

const kilobytes = (count: number) => ({ text: 'é'.repeat(count * 512) })

test.each([
  ['no event', []],
  ['one event', [{ id: '1' }]],
  ['hostile texts', [{ lone: '\ud800', '2': 1, '1': -0, nul: '\u0000', sep: '\u2028' }]],
  ['a hundred events', Array(100).fill({ id: '1' })],
  ['more than a hundred events', Array(250).fill({ id: '1' })],
  ['90 KiB and more', Array(7).fill(kilobytes(30))],
  ['an event larger than a batch', [{ id: '1' }, kilobytes(200), { id: '3' }]],
])('the batches equal the deliveries of the service for %s', (_, data) => {
  const stored = storedWith(data)
  const batches = [...batchesOf({ events: read(stored), epoch: 5 })]
  expect(batches.map(({ body, sequence }) => ({ body: String(body), sequence }))).toEqual(delivered(stored))
  expect(batches.flatMap(({ events }) => events)).toEqual(read(stored))
})
