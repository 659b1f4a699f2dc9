/**
 * The connections of a process to its database. Requests use `database`, which may lead through a pooler. Everything
 * that a session must own goes to the server itself.
 */
import { AuditTrail } from '../audit/audit-trail.ts'
import { RequestSlots } from '../auth/request-slots.ts'
import { type Config, limits } from '../config.ts'
import type { DatabaseUrls } from '../db/database.ts'
import { Notifications } from '../db/notifications.ts'
import { createPool } from '../db/pool.ts'
import { ExportQueue } from '../jobs/queue.ts'
import type { Log } from '../log.ts'
import type { ThreadedTelemetry } from '../telemetry/telemetry.ts'
import type { Timing } from '../timing.ts'

/** Creates pools and queues, which connect on first use. @param stack closes them in reverse order */
export function openConnections(
  stack: AsyncDisposableStack,
  { service, directUrl }: DatabaseUrls,
  parts: { config: Config; timing: Timing; telemetry: ThreadedTelemetry; log: Log },
) {
  const { config, timing, telemetry, log } = parts
  const database = createPool(service, {
    max: limits.serviceConnectionsMax,
    applicationName: 'grandlivre',
    telemetry,
  })
  stack.defer(() => database.end())
  // Leads to the server itself: for deliveries, and the locks of sweeps.
  const direct = createPool(directUrl, {
    max: limits.directConnectionsMax,
    applicationName: 'grandlivre direct',
    telemetry,
  })
  stack.defer(() => direct.end())
  const audit = new AuditTrail(database, log)
  stack.defer(() => audit.close())
  const requestSlots = new RequestSlots(directUrl, config.rateLimit.concurrent, log)
  stack.defer(() => requestSlots.close())
  const notifications = new Notifications(directUrl, log, timing.databaseAwayMs)
  stack.defer(() => notifications.close())
  const queue = new ExportQueue(directUrl, log, timing.exports)
  stack.defer(() => queue.close())
  return { database, direct, audit, requestSlots, notifications, queue }
}
