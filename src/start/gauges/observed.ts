/**
 * Gauges of what the process needs of others. They are read when metrics are collected, and only then: a process whose
 * metrics nobody reads connects to nothing for them.
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

/** How long a collection waits for a check of the needs. Then it shows the result of the check before. */
const checkWaitMs = 1_000

/** The offset of a clock is known up to half a round trip. After a longer one it is not shown. */
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

/** With a pooler, DATABASE_URL says whether that answers, and DIRECT_DATABASE_URL whether the database does. */
function readyGauge(needs: readonly NeedState[], isPooled: boolean): Observation[] {
  return needs
    .filter(({ label }) => !(isPooled && label === 'database'))
    .map(({ label, isMet }) => ({
      value: Number(isMet),
      labels: { need: label === 'direct' ? 'database' : label },
    }))
}

/**
 * A check of a silent server takes ten seconds, longer than anyone waits for metrics. Until it has ended, the result
 * of the one before is shown.
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

/** Seconds by which the clock of this process is ahead of that of the database; nothing if that answers slowly. */
function clockOffset(database: Pool): Promise<Observation[]> {
  return onConnection(database, async (client) => {
    const before = Date.now()
    const began = performance.now()
    const theirs = await readClock(client)
    const roundTripMs = performance.now() - began
    return roundTripMs > roundTripMsMax ? [] : [{ value: (before + roundTripMs / 2 - theirs) / 1_000 }]
  })
}
