/** The gauges that need a statement: how far the queue and deliveries are behind, and when the next token ends. */
import type { ClientBase, Pool } from 'pg'
import { readNextEnd } from '../../auth/tokens.sql.ts'
import { readQueueStanding } from '../../db/migrations/queue-schema.ts'
import { inTransaction, whileDelivering } from '../../db/pool.ts'
import type { GaugeName } from '../../telemetry/metrics.ts'
import { createReading, type Reading } from '../../telemetry/reading.ts'
import type { Observation, Telemetry } from '../../telemetry/telemetry.ts'
import { readDeliveryHealth } from '../../webhooks/lateness.sql.ts'
import { boundStatements } from './standing.sql.ts'

/** @returns the readings of the gauges, for the charts of the console */
export function observeStanding(telemetry: Pick<Telemetry, 'observe'>, database: Pool) {
  const queue = createReading(() => inTransaction(database, bounded(readQueueStanding)))
  const deliveries = createReading(() => whileDelivering(database, bounded(readDeliveryHealth)))
  const nextEnd = createReading(() => whileDelivering(database, bounded(readNextEnd)))
  const observe = <Value>(
    gauge: GaugeName,
    reading: Reading<Value>,
    observationsOf: (value: Value) => Observation[],
  ) =>
    telemetry.observe(gauge, async () => {
      const value = await reading.latest()
      return value === undefined ? [] : observationsOf(value)
    })
  observe('grandlivre.export.queue.age', queue, ({ ageSeconds: value }) => [{ value }])
  observe('grandlivre.export.queue.length', queue, ({ length: value }) => [{ value }])
  observe('grandlivre.delivery.oldest_undelivered', deliveries, (standing) => [
    { value: standing.oldestSeconds, labels: { state: 'enabled' } },
    { value: standing.oldestFailingSeconds, labels: { state: 'failing' } },
  ])
  observe('grandlivre.delivery.failing_subscriptions', deliveries, ({ failing: value }) => [{ value }])
  observe('grandlivre.subscription.count', deliveries, (standing) =>
    (['enabled', 'failing', 'disabled', 'suspended'] as const).map((state) => ({
      value: standing[state],
      labels: { state },
    })),
  )
  observe('grandlivre.token.expiry', nextEnd, (value) => [{ value }])
  return { queue, deliveries }
}

/** Limits the time of a statement, because it uses a connection of requests. */
function bounded<Value>(read: (client: ClientBase) => Promise<Value>) {
  return async (client: ClientBase): Promise<Value> => {
    await boundStatements(client)
    return read(client)
  }
}
