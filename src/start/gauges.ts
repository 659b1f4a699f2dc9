/**
 * Gauges of what the process needs from others, and of how far its work is behind. They are read only when metrics are
 * collected: a process whose metrics nobody reads opens no connection for them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import type { AuditTrail } from '../audit/audit-trail.ts'
import { readNextEnd } from '../auth/tokens.sql.ts'
import { readQueueStanding } from '../db/migrations/queue-schema.ts'
import { type Epoch, readEpoch } from '../db/migrations/version.sql.ts'
import { inTransaction, onConnection, whileDelivering } from '../db/pool.ts'
import type { NeedState } from '../http/readiness.ts'
import type { Services } from '../http/services.ts'
import type { Log } from '../log.ts'
import { endpointsOf, watchCertificates } from '../telemetry/certificates.ts'
import { createReading, type Reading } from '../telemetry/reading.ts'
import type { Observation, Telemetry } from '../telemetry/telemetry.ts'
import { readDeliveryHealth } from '../webhooks/lateness.sql.ts'
import { boundStatements, readClock } from './gauges.sql.ts'

/** How long a collection waits for a check of the needs. After that, it shows the result of the previous check. */
const checkWaitMs = 1_000

/**
 * The offset of a clock is only known to within half a round trip. After a round trip longer than this, it is not
 * shown.
 */
const roundTripMsMax = 500

/**
 * @param services.database connects as the service role
 * @returns the epoch as this process sees it, for /readyz
 */
export function observeProcess(
  services: Pick<Services, 'config' | 'database' | 'readiness' | 'log'>,
  audit: Pick<AuditTrail, 'waiting' | 'stalledSeconds'>,
  telemetry: Pick<Telemetry, 'observe'>,
  certificatesMs: number,
): Reading<Epoch> {
  const { config, database, readiness, log } = services
  const latestNeeds = latestOf(() => readiness.needStates())
  const isPooled = config.directDatabaseUrl !== undefined
  telemetry.observe('grandlivre.ready', async () => readyGauge(await latestNeeds(), isPooled))
  telemetry.observe('grandlivre.pooler.ready', async () => {
    const pooler = isPooled ? (await latestNeeds()).filter(({ label }) => label === 'database') : []
    return pooler.map(({ isMet }) => ({ value: Number(isMet) }))
  })
  const epoch = watchEpoch(database, log)
  telemetry.observe('grandlivre.epoch', async () => (await epoch.latest())?.number)
  telemetry.observe('grandlivre.epoch.age', async () => (await epoch.latest())?.ageSeconds)
  telemetry.observe('grandlivre.clock.offset', () => clockOffset(database))
  const certificates = watchCertificates(endpointsOf(config), certificatesMs, log)
  telemetry.observe('grandlivre.certificate.expiry', certificates)
  telemetry.observe('grandlivre.audit.waiting', () => audit.waiting)
  telemetry.observe('grandlivre.audit.stalled', () => audit.stalledSeconds)
  return epoch
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

/** Logs each new epoch once, when a probe or a collection of metrics finds it. */
function watchEpoch(database: Pool, log: Log): Reading<Epoch> {
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

/**
 * Seconds by which the clock of this process is ahead of the database's clock; undefined if the database answers
 * slowly.
 */
function clockOffset(database: Pool): Promise<number | undefined> {
  return onConnection(database, async (client) => {
    const before = Date.now()
    const began = performance.now()
    const theirs = await readClock(client)
    const roundTripMs = performance.now() - began
    return roundTripMs > roundTripMsMax ? undefined : (before + roundTripMs / 2 - theirs) / 1_000
  })
}

/**
 * Observes how far the queue and deliveries are behind, and when the next token ends.
 * @returns the readings of the gauges, for the charts of the console
 */
export function observeStanding(telemetry: Pick<Telemetry, 'observe'>, database: Pool) {
  const queue = createReading(() => inTransaction(database, bounded(readQueueStanding)))
  const deliveries = createReading(() => whileDelivering(database, bounded(readDeliveryHealth)))
  telemetry.observe('grandlivre.export.queue.age', async () => (await queue.latest())?.ageSeconds)
  telemetry.observe('grandlivre.export.queue.length', async () => (await queue.latest())?.length)
  telemetry.observe('grandlivre.delivery.oldest_undelivered', async () => {
    const health = await deliveries.latest()
    return (
      health && [
        { value: health.oldestSeconds, labels: { state: 'enabled' } },
        { value: health.oldestFailingSeconds, labels: { state: 'failing' } },
      ]
    )
  })
  const failing = async () => (await deliveries.latest())?.failing
  telemetry.observe('grandlivre.delivery.failing_subscriptions', failing)
  telemetry.observe('grandlivre.subscription.count', async () => {
    const health = await deliveries.latest()
    const states = ['enabled', 'failing', 'disabled', 'suspended'] as const
    return health && states.map((state) => ({ value: health[state], labels: { state } }))
  })
  const nextEnd = () => whileDelivering(database, bounded(readNextEnd))
  telemetry.observe('grandlivre.token.expiry', nextEnd)
  return { queue, deliveries }
}

/** Limits the time of a statement, because it uses a connection of requests. */
function bounded<Value>(read: (client: ClientBase) => Promise<Value>) {
  return async (client: ClientBase): Promise<Value> => {
    await boundStatements(client)
    return read(client)
  }
}
