/** The background work of a process: full exports, webhook deliveries, retention. */
import type { ClientBase, Pool } from 'pg'
import { sweepAudit } from '../audit/retention.ts'
import { sealingKey } from '../auth/master-key.ts'
import type { MasterKeys } from '../auth/secrets.ts'
import type { Config } from '../config.ts'
import { sweepsInTurn } from '../db/sweeping.ts'
import type { ExportQueue } from '../jobs/queue.ts'
import { sweepExports } from '../jobs/retention/retention.ts'
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import { Supervisor } from '../jobs/supervisor.ts'
import { adoptRendering } from '../ledger/changes/cursor.sql.ts'
import { sweepChanges } from '../ledger/changes/retention.sql.ts'
import type { Log } from '../log.ts'
import { observedStore } from '../store/observed-store.ts'
import type { ObjectStore } from '../store/store.ts'
import { countStoreRequest, type Telemetry } from '../telemetry/telemetry.ts'
import type { Threads } from '../threads/pool.ts'
import type { Timing } from '../timing.ts'
import { Dispatcher } from '../webhooks/dispatch/dispatcher.ts'
import type { PostParts } from '../webhooks/dispatch/post.ts'
import { sweepEvents } from '../webhooks/retention.ts'

interface BackgroundParts {
  config: Config
  /** Connects as the service role. */
  database: Pool
  /** Connects to the server of that database itself: for deliveries, and the locks of sweeps. */
  direct: Pool
  /** The address of that server. */
  directUrl: string
  masterKeys: MasterKeys
  queue: ExportQueue
  threads: Threads
  attempts: RunningAttempts
  store: ObjectStore
  deliveries: PostParts
  timing: Timing
  telemetry: Telemetry
  log: Log
}

/** @throws {Error} if the database is unreachable or does not fit; nothing is left running */
export async function startBackground(parts: BackgroundParts): Promise<{ close(): Promise<void> }> {
  const { config, database, direct, timing, telemetry } = parts
  const store = observedStore(parts.store, (request) => countStoreRequest(telemetry, request))
  await adoptRendering(database, config.timeZone)
  await parts.queue.start()
  const supervisor = new Supervisor({ ...parts, store, timing: timing.exports })
  await supervisor.start(config.exportThreads)
  const sweeps = startRetention({ ...parts, store })
  const clock = { now: Date.now, random: Math.random }
  const dispatcher = Dispatcher.start({ ...parts, ...parts.deliveries, ...clock, database: direct })
  const loops = [supervisor, ...sweeps, dispatcher]
  return {
    close: async () => {
      await Promise.all(loops.map((loop) => loop.close()))
    },
  }
}

function startRetention({ config, database, direct, masterKeys, store, log }: BackgroundParts) {
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
