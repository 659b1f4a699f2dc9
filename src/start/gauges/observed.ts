/**
 * Gauges of what the process needs from others. They are read only when metrics are collected: a process whose metrics
 * nobody reads opens no connection for them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { AuditTrail } from '../../audit/audit-trail.ts'
import { onConnection } from '../../db/pool.ts'
import type { NeedState } from '../../http/readiness.ts'
import type { Services } from '../../http/services.ts'
import { endpointsOf, watchCertificates } from '../../telemetry/certificates.ts'
import type { Observation, Telemetry } from '../../telemetry/telemetry.ts'
import { readClock } from './standing.sql.ts'

/** How long a collection waits for a check of the needs. After that, it shows the result of the previous check. */
const checkWaitMs = 1_000

/**
 * The offset of a clock is only known to within half a round trip. After a round trip longer than this, it is not
 * shown.
 */
const roundTripMsMax = 500

/** @param services.database connects as the service role */
export function observe(
  services: Pick<Services, 'config' | 'database' | 'readiness' | 'epoch' | 'log'>,
  audit: Pick<AuditTrail, 'waiting' | 'stalledSeconds'>,
  telemetry: Pick<Telemetry, 'observe'>,
  certificatesMs: number,
): void {
  const { config, database, readiness, epoch, log } = services
  const latest = latestOf(() => readiness.needStates())
  const isPooled = config.directDatabaseUrl !== undefined
  telemetry.observe('grandlivre.ready', async () => readyGauge(await latest(), isPooled))
  telemetry.observe('grandlivre.pooler.ready', async () => {
    const pooler = isPooled ? (await latest()).filter(({ label }) => label === 'database') : []
    return pooler.map(({ isMet }) => ({ value: Number(isMet) }))
  })
  const ofEpoch = (key: 'number' | 'ageSeconds') => async () => {
    const latest = await epoch.latest()
    return latest ? [{ value: latest[key] }] : []
  }
  telemetry.observe('grandlivre.epoch', ofEpoch('number'))
  telemetry.observe('grandlivre.epoch.age', ofEpoch('ageSeconds'))
  telemetry.observe('grandlivre.clock.offset', () => clockOffset(database))
  const certificates = watchCertificates(endpointsOf(config), certificatesMs, log)
  telemetry.observe('grandlivre.certificate.expiry', certificates)
  telemetry.observe('grandlivre.audit.waiting', () => [{ value: audit.waiting }])
  telemetry.observe('grandlivre.audit.stalled', () => [{ value: audit.stalledSeconds }])
}

/**
 * Gauge of each need. With a pooler, the need named DATABASE_URL says whether the pooler answers, and
 * DIRECT_DATABASE_URL whether the database does.
 */
function readyGauge(needs: readonly NeedState[], isPooled: boolean): Observation[] {
  return needs
    .filter(({ label }) => !(isPooled && label === 'database'))
    .map(({ label, isMet }) => ({
      value: Number(isMet),
      labels: { need: label === 'direct' ? 'database' : label },
    }))
}

/**
 * Returns the result of the latest check. A check of a silent server takes ten seconds, longer than anyone waits for
 * metrics. Until it has ended, the result of the previous check is shown.
 */
function latestOf<Result>(check: () => Promise<Result[]>): () => Promise<Result[]> {
  let latest: Result[] = []
  let running: Promise<void> | undefined
  return async () => {
    running ??= check()
      .then((result) => {
        latest = result
      })
      .finally(() => {
        running = undefined
      })
    await Promise.race([running, delay(checkWaitMs, undefined, { ref: false })])
    return latest
  }
}

/**
 * Seconds by which the clock of this process is ahead of the database's clock; no value if the database answers slowly.
 */
function clockOffset(database: Pool): Promise<Observation[]> {
  return onConnection(database, async (client) => {
    const before = Date.now()
    const began = performance.now()
    const theirs = await readClock(client)
    const roundTripMs = performance.now() - began
    return roundTripMs > roundTripMsMax ? [] : [{ value: (before + roundTripMs / 2 - theirs) / 1_000 }]
  })
}
