/**
 * Events are written in the transaction of the change that caused them: no event without its change, no change without
 * its event.
 *
 * Writing them is the last thing a transaction does. It holds a lock on the events of its schema until its commit, so
 * that ids are in the order of the commits; whoever asked for another lock behind it could wait for one who waits
 * here. For the same reason a transaction that tells several schemas goes through them in ascending order.
 */
import type { ClientBase } from 'pg'
import { insertEvents, lockEvents, type NewEvent, notifyEvents } from './events.sql.ts'
import { checkEventPayload } from './kinds.ts'

/**
 * Writes events of one schema, in this order, as the last thing of the transaction.
 * @throws {Error} where data are not what their kind says
 */
export async function publish(
  client: ClientBase,
  schemaId: string,
  events: readonly NewEvent[],
): Promise<void> {
  for (const event of events) checkEventPayload(event)
  await publishRows(client, schemaId, () => insertEvents(client, schemaId, events))
}

/** The same, for events that SQL makes of rows: an import has too many of them to come by here one by one. */
export async function publishRows(
  client: ClientBase,
  schemaId: string,
  insert: () => Promise<void>,
): Promise<void> {
  await lockEvents(client, schemaId)
  await insert()
  await notifyEvents(client, schemaId)
}
