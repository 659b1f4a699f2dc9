/**
 * Writes events in the transaction of the change that caused them, so that neither is ever committed without the other.
 *
 * An event is one row, however many subscribers it has: an import of 180,000 entries writes 180,000 narrow rows. (A
 * seed of 500,000 movements writes 249,000 events for its entries and letterings, at 22 µs each, a sixth of its time on
 * a busy machine.) Subscribers read events by position. Ids drawn from a sequence do not follow the order of commits,
 * so a reader could skip an event whose transaction takes longer. Therefore the writer locks the schema's events until
 * its commit, so that ids are in the order of commits.
 *
 * Publish events last in a transaction: taking any other lock after this one can deadlock. For the same reason, a
 * transaction that publishes to several schemas does so in ascending order. Requests do not wait for an import either:
 * the first call of a token, which publishes an event, gives up after 250 ms, and a later call activates the token (SQL
 * function `activate`).
 */
import type { ClientBase } from 'pg'
import { insertEvents, lockEvents, type NewEvent, notifyEvents } from './events.sql.ts'
import { checkEventPayload } from './kinds.ts'

/**
 * Writes events of one schema, in this order, as the last step of the transaction.
 * @throws {Error} if the data do not match their kind
 */
export async function publish(client: ClientBase, schemaId: string, events: readonly NewEvent[]) {
  await publishRows(client, schemaId, () => writeEvents(client, schemaId, events))
}

/** As `publish`, for events that SQL makes from rows: an import has too many to send them one by one. */
export async function publishRows(client: ClientBase, schemaId: string, insert: () => Promise<void>) {
  await lockEvents(client, schemaId)
  await insert()
  await notifyEvents(client, schemaId)
}

/**
 * Writes some of a transaction's events, inside `publishRows`: that locks before all of them and notifies after them,
 * once.
 * @throws {Error} as `publish`
 */
export async function writeEvents(client: ClientBase, schemaId: string, events: readonly NewEvent[]) {
  for (const event of events) checkEventPayload(event)
  await insertEvents(client, schemaId, events)
}
