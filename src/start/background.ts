/** The background work of a process: full exports, webhook deliveries, retention. */
import type { ClientBase, Pool } from 'pg'
import { sweepAudit } from '../audit/retention.ts'
import { sealingKey } from '../auth/master-key.sql.ts'
import { sweepsInTurn } from '../db/sweeping.ts'
import type { Services } from '../http/services.ts'
import { sweepExports } from '../jobs/retention/retention.ts'
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import { Supervisor } from '../jobs/supervisor.ts'
import { adoptRendering } from '../ledger/changes/cursor.sql.ts'
import { sweepChanges } from '../ledger/changes/retention.sql.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Timing } from '../timing.ts'
import { Dispatcher } from '../webhooks/dispatch/dispatcher.ts'
import { sweepEvents } from '../webhooks/retention.sql.ts'

/**
 * Starts the background work.
 * @param parts.store counts its requests
 * @param parts.direct pool that connects to PostgreSQL itself: for deliveries, and the locks of sweeps
 * @param parts.directUrl address of PostgreSQL itself
 * @throws {Error} if the database is unreachable or does not fit; nothing is left running
 */
export async function startBackground(
  services: Services,
  parts: { store: ObjectStore; direct: Pool; directUrl: string; attempts: RunningAttempts; timing: Timing },
): Promise<{ close(): Promise<void> }> {
  const { config, database, deliveries } = services
  const { direct, timing } = parts
  const all = { ...services, ...parts }
  await adoptRendering(database, config.timeZone)
  await services.queue.start()
  const supervisor = new Supervisor({ ...all, timing: timing.exports })
  await supervisor.start(config.exportThreads)
  const sweeps = startRetention(all, direct)
  const clock = { now: Date.now, random: Math.random }
  const dispatcher = Dispatcher.start({ ...all, ...deliveries, ...clock, database: direct })
  const loops = [supervisor, ...sweeps, dispatcher]
  return {
    close: async () => {
      await Promise.all(loops.map((loop) => loop.close()))
    },
  }
}

function startRetention({ config, database, masterKeys, store, log }: Services, direct: Pool) {
  const startSweep = sweepsInTurn(direct, log)
  const files = { database, store, retentionDays: config.fileRetentionDays }
  const changes = { database, retentionDays: config.changesRetentionDays }
  const signingKey = (client: ClientBase) => sealingKey(client, masterKeys)
  const audit = { database, months: config.auditRetentionMonths, signingKey }
  return [
    startSweep({
      name: 'retention',
      logged: 'retention.swept',
      run: (stopped) => sweepExports(files, new Date(), stopped),
    }),
    startSweep({
      name: 'retention of events',
      logged: 'retention.eventsSwept',
      run: (stopped) => sweepEvents(database, Date.now(), stopped),
    }),
    startSweep({
      name: 'retention of changes',
      logged: 'retention.changesSwept',
      run: (stopped) => sweepChanges(changes, Date.now(), stopped),
    }),
    startSweep({
      name: 'retention of the audit',
      logged: 'retention.auditSwept',
      run: async (stopped) => ({ rows: await sweepAudit(audit, stopped) }),
    }),
  ]
}
