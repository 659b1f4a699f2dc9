import type { Pool } from 'pg'
import type { AuditTrail } from '../audit/audit-trail.ts'
import type { RequestSlots } from '../auth/request-slots.ts'
import type { MasterKeys } from '../auth/secrets.ts'
import type { Config } from '../config.ts'
import type { Epoch } from '../db/migrations/version.sql.ts'
import type { Notifications } from '../db/notifications.ts'
import type { ExportQueue } from '../jobs/queue.ts'
import type { Log } from '../log.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Reading } from '../telemetry/reading.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Threads } from '../threads/pool.ts'
import type { FairTurns } from '../webhooks/dispatch/fair-turns.ts'
import type { HttpToSubscribers } from '../webhooks/dispatch/post.ts'
import type { Readiness } from './readiness.ts'
import type { ListReads } from './stream/list-reads.ts'
import type { RunningStreams } from './stream/running-streams.ts'

/** What routes use. `start.ts` creates it. */
export interface Services {
  config: Config
  /** Connects as the service role: sees one tenant at a time (`inTenant`). */
  database: Pool
  /** Limits the running requests per route and folder, across all processes. */
  requestSlots: RequestSlots
  /** Lets requests wait for changes. */
  notifications: Notifications
  /**
   * Lets the reads of woken requests take turns, by third party: few read at once, so that other requests find a free
   * connection.
   */
  waitingReads: FairTurns
  /** Reads lists for requests that were woken. */
  listReads: ListReads
  /** Sends requests to subscribers. */
  deliveries: HttpToSubscribers
  /** Encrypts the secrets that sign deliveries. */
  masterKeys: MasterKeys
  /** Holds the files of exports. */
  store: ObjectStore
  /** The queue of full exports. */
  queue: ExportQueue
  /** The threads that run exports. */
  threads: Threads
  /** The streamed exports that are being sent. */
  streams: RunningStreams
  /** Records what was answered to partners. */
  audit: AuditTrail
  /** Knows whether requests can be accepted, and remembers what failed requests lacked. */
  readiness: Readiness
  /** The epoch of the database. */
  epoch: Reading<Epoch>
  /** Metrics and traces, if the operator asked for them. */
  telemetry: Telemetry
  log: Log
}
