/** What a scrape shows of each thing that is reported: counted once, in seconds, with its labels. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { startTelemetry } from '../../src/telemetry/start-telemetry.ts'
import { countStoreRequest, type StartedTelemetry } from '../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../src/timing.ts'
import { metricsOf, sumOf } from '../support/telemetry/scrape.ts'

async function started(): Promise<StartedTelemetry> {
  const config = {
    metrics: { host: '127.0.0.1', port: 0, allowedHosts: [] },
    otlpEndpoint: undefined,
    tracesShare: 1,
  }
  const telemetry = await startTelemetry(config, defaultTiming.telemetry, () => {})
  onTestFinished(() => telemetry.close())
  return telemetry
}

test('each event is counted once, with its labels', async () => {
  const { telemetry, metricsUrl } = await started()
  const value = async (name: string, labels: Record<string, string> = {}) =>
    sumOf(await metricsOf({ metricsUrl }), name, labels)
  const deaths = 'grandlivre_thread_deaths_total'
  const failedWrite = { operation: 'write' }
  // A series that begins at 1 has no increase to alert on.
  expect(await value(deaths)).toBe(0)
  expect(await value('grandlivre_store_errors_total', failedWrite)).toBe(0)
  expect(await value('grandlivre_delivery_attempts_total', { outcome: 'tls' })).toBe(0)
  expect(await value('grandlivre_export_ended_total', { outcome: 'failed' })).toBe(0)
  telemetry.count('grandlivre.thread.deaths', {})
  telemetry.count('grandlivre.request.refused', { 'error.type': 'ERR-URI-TOO-LONG' })
  countStoreRequest(telemetry, { operation: 'write', outcome: 'failed', seconds: 2 })
  countStoreRequest(telemetry, { operation: 'write', outcome: 'done', seconds: 3 })
  telemetry.count('grandlivre.database.errors', { class: '57' })
  telemetry.count('grandlivre.replica.fallbacks', { reason: 'conflict' })
  const counts = { totalCount: 5, idleCount: 2, waitingCount: 3, options: { max: 8 } }
  telemetry.watchPool('grandlivre direct', counts)
  telemetry.count('db.client.connection.timeouts', {
    'db.client.connection.pool.name': 'grandlivre direct',
  })
  telemetry.watchThreads('hash', () => ({ threadIds: [1, 2, 3], running: 2, waiting: 4 }))
  const pool = { db_client_connection_pool_name: 'grandlivre direct' }
  const hash = { grandlivre_thread_kind: 'hash' }
  expect(await value(deaths)).toBe(1)
  expect(await value('grandlivre_request_refused_total', { error_type: 'ERR-URI-TOO-LONG' })).toBe(1)
  expect(await value('grandlivre_store_errors_total', failedWrite)).toBe(1)
  expect(await value('grandlivre_database_errors_total', { class: '57' })).toBe(1)
  expect(await value('grandlivre_database_errors_total')).toBe(1)
  expect(await value('grandlivre_replica_fallbacks_total', { reason: 'conflict' })).toBe(1)
  expect(await value('db_client_connection_count', { ...pool, db_client_connection_state: 'idle' })).toBe(2)
  expect(await value('db_client_connection_count', { ...pool, db_client_connection_state: 'used' })).toBe(3)
  expect(await value('db_client_connection_max', pool)).toBe(8)
  expect(await value('db_client_connection_pending_requests', pool)).toBe(3)
  expect(await value('db_client_connection_timeouts_total', pool)).toBe(1)
  expect(await value('grandlivre_thread_count', { ...hash, state: 'busy' })).toBe(2)
  expect(await value('grandlivre_thread_count', { ...hash, state: 'idle' })).toBe(1)
  expect(await value('grandlivre_thread_waiting')).toBe(4)
})

test('a request counts as active until its answer has ended', async () => {
  const { telemetry, metricsUrl } = await started()
  const active = async () => sumOf(await metricsOf({ metricsUrl }), 'http_server_active_requests', {})
  const request = telemetry.requestBegan('BREW', {})
  expect(await active()).toBe(1)
  request.ended({ route: '/healthz', status: 200, errorType: undefined, requestId: 'one' })
  expect(await active()).toBe(0)
  const samples = await metricsOf({ metricsUrl })
  // A caller may invent any number of methods.
  const labels = { http_request_method: '_OTHER', http_route: '/healthz', http_response_status_code: '200' }
  const [counted] = samples.get('http_server_request_duration_seconds_count')!
  expect(counted).toMatchObject({ labels, value: 1 })
  expect(counted!.labels).not.toHaveProperty('error_type')
})

test('a gauge whose reading fails is left out', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { telemetry, metricsUrl } = await started()
  let isAway = false
  telemetry.observe('grandlivre.clock.offset', () => {
    if (isAway) throw new Error('the database is away')
    return [{ value: 3 }]
  })
  const offset = async () => sumOf(await metricsOf({ metricsUrl }), 'grandlivre_clock_offset_seconds', {})
  expect(await offset()).toBe(3)
  isAway = true
  vi.advanceTimersByTime(5_000)
  expect(await offset()).toBeUndefined()
})

test('durations are measured in seconds', async () => {
  const { telemetry, metricsUrl } = await started()
  const began = performance.now()
  telemetry.deliveryBegan().ended('delivered', 200)
  telemetry.requestBegan('GET', {}).ended({ route: '/', status: 200, errorType: undefined, requestId: 'one' })
  const seconds = (performance.now() - began) / 1_000
  const select = { 'db.operation.name': 'select', 'db.system.name': 'postgresql' } as const
  telemetry.record('db.client.operation.duration', 0.25, select)
  telemetry.exportEnded({
    kind: 'folder',
    format: 'json',
    outcome: 'done',
    rows: 7,
    bytes: 700,
    startedAt: Date.now(),
    facts: {
      stages: { wait: 0.5, store: 4 },
      store: [{ operation: 'create', outcome: 'done', seconds: 2 }],
    },
    trace: undefined,
    requestId: 'two',
  })
  const samples = await metricsOf({ metricsUrl })
  const sum = (name: string, labels: Record<string, string>) => sumOf(samples, `${name}_seconds_sum`, labels)
  expect(sum('db_client_operation_duration', { db_operation_name: 'select' })).toBe(0.25)
  expect(sum('grandlivre_export_duration', { grandlivre_export_stage: 'wait' })).toBe(0.5)
  expect(sum('grandlivre_export_duration', { grandlivre_export_stage: 'store' })).toBe(4)
  expect(sum('grandlivre_store_request_duration', { operation: 'create', outcome: 'done' })).toBe(2)
  const delivered = sum('grandlivre_delivery_duration', { outcome: 'delivered' })!
  const answered = sum('http_server_request_duration', { http_route: '/' })!
  expect(delivered + answered).toBeGreaterThan(0)
  expect(delivered + answered).toBeLessThanOrEqual(seconds)
})
