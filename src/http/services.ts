import type { Pool } from 'pg'
import type { Piscina } from 'piscina'
import type { RequestSlots } from '../auth/request-slots.ts'
import type { Config } from '../config.ts'
import type { ExportQueue } from '../jobs/queue.ts'
import type { Log } from '../log.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Readiness } from './readiness.ts'

/** What routes answer from. `start.ts` puts it together. */
export interface Services {
  config: Config
  /** As the service role: sees one tenant at a time (`inTenant`). */
  database: Pool
  /** Running requests by route and folder, over all processes. */
  requestSlots: RequestSlots
  /** Where the files of exports lie. */
  store: ObjectStore
  /** Where full exports wait. */
  queue: ExportQueue
  /** Where exports run. */
  threads: Piscina
  /** Whether requests can be taken; learns from those that fail. */
  readiness: Readiness
  log: Log
}
