/** The epoch as this process sees it: for /readyz, the metrics and the log. */
import type { Pool } from 'pg'
import { type Epoch, readEpoch } from '../db/migrations/version.sql.ts'
import type { Log } from '../log.ts'
import { createReading, type Reading } from '../telemetry/reading.ts'

/** Logs each new epoch once, when a probe or a collection of metrics finds it. */
export function watchEpoch(database: Pool, log: Log): Reading<Epoch> {
  let seen: number | undefined
  return createReading(async () => {
    const epoch = await readEpoch(database)
    const former = seen
    seen = epoch.number
    if (former !== undefined && former !== seen)
      log('epoch.began', { epoch: seen, former, began: epoch.began })
    return epoch
  })
}
