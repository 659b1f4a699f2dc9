/**
 * What has to change in a database that took the place of another and may lack its last commits: a standby that was
 * promoted, or a restored backup. Others may have seen what is lost: a copy of a ledger, its ETag or cursor, an id, the
 * number of an event. None of these may ever mean something else.
 *
 * - The epoch is part of every cursor, and with it of every ETag. A random one cannot come back to that of a state that
 *   was lost before.
 * - Ids, ledger versions and numbers of events go on far beyond what was lost (`beyond_lost`).
 * - Events of one schema that are left get their numbers first: these are the ones that they had, since numbers follow
 *   from the order of commits. The numbers of lost events are then skipped, and subscribers see a gap, as they lack
 *   something. For all schemas the order was that in which numbers were given, which may be lost too; so these events
 *   get numbers after the gap.
 * - A full export that runs may still read a server that has the lost commits. It fails, and its partner starts a new
 *   one. One that has ended, or waits, no longer answers triggers.
 *
 * Nothing else names a lost state. Kept blocks have the former epoch, and are made again. Files without a row are
 * removed by retention. Processes read the epoch with each request, so they need no restart.
 *
 * The rendering that `ledger` events name (`adopt_rendering`) stays what the processes wrote: the environment of a staff
 * command may have another TIME_ZONE.
 */
import type { ClientBase } from 'pg'
import { end } from '../../jobs/end.ts'
import { reasonOf } from '../../jobs/job.ts'
import { latestEventId, numberMore } from '../../webhooks/sequence/numbering.sql.ts'
import {
  beginEpoch,
  findBehind,
  findRunning,
  lockAllSubscriptions,
  lockExports,
  type Moved,
  notifyAll,
  retireExports,
  skipNumbers,
} from './failover.sql.ts'

export interface Failover {
  moved: Moved[]
  subscriptions: number
  failedExports: number
  retiredExports: number
}

/**
 * In the transaction of the caller, as the owner. Locks the subscriptions, the exports, then the events of schemas in
 * ascending order: no other transaction takes two of these in another order.
 * @throws {Error} if the clock of the server is wrong
 */
export async function failOver(client: ClientBase): Promise<Failover> {
  await lockAllSubscriptions(client)
  await numberRest(client)
  const subscriptions = await skipNumbers(client)
  const moved = await beginEpoch(client)
  await lockExports(client)
  const retiredExports = await retireExports(client)
  const running = await findRunning(client)
  for (const { requestId, ...key } of running) await end(client, key, reasonOf('failover', requestId))
  await notifyAll(client)
  return { moved, subscriptions, failedExports: running.length, retiredExports }
}

async function numberRest(client: ClientBase): Promise<void> {
  const until = await latestEventId(client)
  for (const id of await findBehind(client)) while ((await numberMore(client, id, until)) > 0);
}
