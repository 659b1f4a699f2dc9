/** The alert rules on made-up series: each alert fires for its fault and for no other, and none on a healthy process. */
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { isPrometheusInstalled, opsFile, shortened } from '../support/ops/prometheus.ts'

/** Values each minute, in promtool's notation: `1+2x3` is 1, 3, 5, 7. */
type Series = Record<string, string>

const requests = (route: string, status: number) =>
  `http_server_request_duration_seconds_count{http_route="${route}",http_response_status_code="${status}"}`
const storeRequests = (le: string) =>
  `grandlivre_store_request_duration_seconds_bucket{operation="write",outcome="done",le="${le}"}`
const oldestUndelivered = (state: 'enabled' | 'failing') =>
  `grandlivre_delivery_oldest_undelivered_seconds{state="${state}"}`

const healthy: Series = {
  up: '1x100',
  'grandlivre_ready{need="database"}': '1x100',
  'grandlivre_ready{need="replica"}': '1x100',
  'grandlivre_ready{need="store"}': '1x100',
  'grandlivre_ready{need="threads"}': '1x100',
  grandlivre_pooler_ready: '1x100',
  [requests('/api/v1/mad/movements', 200)]: '0+100x100',
  [requests('/api/v1/mad/movements', 503)]: '0+1x100',
  grandlivre_thread_deaths_total: '1x100',
  nodejs_eventloop_delay_p99_seconds: '0.02x100',
  process_memory_usage_bytes: '300000000x100',
  grandlivre_epoch: '48210x100',
  grandlivre_clock_offset_seconds: '-0.3x100',
  'grandlivre_certificate_expiry_seconds{endpoint="public"}': '5000000-60x100',
  grandlivre_token_expiry_seconds: '5000000-60x100',
  'grandlivre_database_errors_total{class="08"}': '4x100',
  'grandlivre_database_errors_total{class="40"}': '0+1x100',
  'grandlivre_database_errors_total{class="53"}': '0x100',
  'grandlivre_database_errors_total{class="57"}': '0x100',
  'db_client_connection_timeouts_total{db_client_connection_pool_name="grandlivre"}': '3x100',
  'db_client_connection_timeouts_total{db_client_connection_pool_name="grandlivre replica"}': '0+1x100',
  grandlivre_replica_lag_seconds: '0.5x100',
  grandlivre_audit_waiting: '12x100',
  grandlivre_audit_stalled_seconds: '0.4x100',
  'grandlivre_export_ended_total{outcome="done"}': '0+1x100',
  'grandlivre_export_ended_total{outcome="failed"}': '7x100',
  grandlivre_export_queue_age_seconds: '40x100',
  'grandlivre_store_errors_total{operation="write"}': '9x100',
  [storeRequests('0.5')]: '0+10x100',
  [storeRequests('5')]: '0+10x100',
  [storeRequests('10')]: '0+10x100',
  [storeRequests('+Inf')]: '0+10x100',
  grandlivre_delivery_failing_subscriptions: '0x100',
  [oldestUndelivered('enabled')]: '3x100',
  // Deliveries to a failing receiver do not count as late.
  [oldestUndelivered('failing')]: '0+60x100',
}

/** Each fault begins at the 20th value. `_` means no value. */
const faults: [alert: string, series: Series][] = [
  ['', {}],
  ['GrandlivreDown', { up: '1x20 0x80' }],
  ['GrandlivreNotReady', { 'grandlivre_ready{need="threads"}': '1x20 0x80' }],
  ['GrandlivreInternalErrors', { [requests('/api/v1/mad/movements', 500)]: '_x20 1x80' }],
  ['GrandlivreUnavailable', { [requests('/api/v1/mad/movements', 503)]: '0x20 10+10x80' }],
  ['GrandlivreThreadCrashed', { grandlivre_thread_deaths_total: '1x20 2x80' }],
  ['GrandlivreEventLoopBlocked', { nodejs_eventloop_delay_p99_seconds: '0.02x20 1.5x80' }],
  ['GrandlivreMemoryHigh', { process_memory_usage_bytes: '300000000x20 3000000000x80' }],
  ['GrandlivreClockOff', { grandlivre_clock_offset_seconds: '0x20 -30x80' }],
  [
    'GrandlivreCertificateExpires',
    { 'grandlivre_certificate_expiry_seconds{endpoint="public"}': '1000000-60x100' },
  ],
  [
    'GrandlivreCertificateExpired',
    { 'grandlivre_certificate_expiry_seconds{endpoint="public"}': '600-60x100' },
  ],
  ['GrandlivreTokenEnds', { grandlivre_token_expiry_seconds: '1000000-60x100' }],
  // The token ends before the alert would fire.
  ['', { grandlivre_token_expiry_seconds: '600-60x9 _x91' }],
  ['GrandlivreDatabaseDown', { 'grandlivre_ready{need="database"}': '1x20 0x80' }],
  ['GrandlivrePoolerDown', { grandlivre_pooler_ready: '1x20 0x80' }],
  ['GrandlivreConnectionsLost', { 'grandlivre_database_errors_total{class="57"}': '0x20 1x80' }],
  ['GrandlivreDatabaseExhausted', { 'grandlivre_database_errors_total{class="53"}': '0x20 1x80' }],
  [
    'GrandlivreConnectionsExhausted',
    { 'db_client_connection_timeouts_total{db_client_connection_pool_name="grandlivre"}': '3x20 4x80' },
  ],
  ['GrandlivreReplicaDown', { 'grandlivre_ready{need="replica"}': '1x20 0x80' }],
  ['GrandlivreReplicaBehind', { grandlivre_replica_lag_seconds: '0x20 100x80' }],
  ['GrandlivreEpochBegan', { grandlivre_epoch: '48210x20 _x5 917x75' }],
  ['GrandlivreAuditWaiting', { grandlivre_audit_waiting: '0x20 2000x80' }],
  ['GrandlivreAuditWaiting', { grandlivre_audit_stalled_seconds: '0x20 0+60x80' }],
  ['GrandlivreExportsFailing', { 'grandlivre_export_ended_total{outcome="failed"}': '7x20 8x80' }],
  ['GrandlivreExportQueueStuck', { grandlivre_export_queue_age_seconds: '0x20 0+60x80' }],
  ['GrandlivreStoreFailing', { 'grandlivre_store_errors_total{operation="write"}': '9x20 9+1x80' }],
  ['GrandlivreStoreSlow', { [storeRequests('0.5')]: '0+8x100', [storeRequests('5')]: '0+8x100' }],
  ['GrandlivreReceiversFailing', { grandlivre_delivery_failing_subscriptions: '0x20 2x80' }],
  ['GrandlivreDeliveriesLate', { [oldestUndelivered('enabled')]: '0x20 0+60x80' }],
]

/** Each fault has a job of its own, so that promtool evaluates the rules once for all. Only `up` needs a certain job. */
function jobOf(alert: string, index: number): string {
  return alert === 'GrandlivreDown' ? 'grandlivre' : `fault ${index}`
}

function seriesOf([alert, series]: (typeof faults)[number], index: number) {
  const own = `job="${jobOf(alert, index)}",instance="a"`
  const labelled = (name: string) => (name.includes('{') ? name.replace('{', `{${own},`) : `${name}{${own}}`)
  return Object.entries({ ...healthy, ...series }).map(([name, values]) => ({
    series: labelled(name),
    values,
  }))
}

/** Expects exactly these alerts to fire at any time. */
const promtoolTest = {
  interval: '1m',
  input_series: faults.flatMap(seriesOf),
  promql_expr_test: [
    {
      expr: 'count by (job, alertname) (max_over_time(ALERTS{alertstate="firing"}[100m]))',
      eval_time: '100m',
      exp_samples: faults
        .map(([alert], index) => ({ alert, job: jobOf(alert, index) }))
        .filter(({ alert }) => alert !== '')
        .map(({ alert, job }) => ({ labels: `{alertname="${alert}", job="${job}"}`, value: 1 })),
    },
  ],
}

test.runIf(isPrometheusInstalled)('promtool accepts the alert rules and the example configuration', () => {
  const checked = execFileSync('promtool', ['check', 'config', opsFile('prometheus.yml')], {
    encoding: 'utf8',
  })
  expect(checked).toContain('rules found')
})

test.runIf(isPrometheusInstalled)('each alert fires only for its own fault', async () => {
  await using folder = await openFolder('alerts')
  const path = join(folder.path, 'tests.json')
  const rules = { rule_files: [opsFile('alerts.yml')], evaluation_interval: '1m', tests: [promtoolTest] }
  await writeFile(path, JSON.stringify(rules))
  expect(execFileSync('promtool', ['test', 'rules', path], { encoding: 'utf8' })).toContain('SUCCESS')
})

test('shortened rules differ only in durations and in thresholds that are seconds', async () => {
  const rules = await readFile(opsFile('alerts.yml'), 'utf8')
  const short = shortened(rules, 30)
  expect(short).toContain('max by (job) (grandlivre_export_queue_age_seconds) > 20\n        for: 10000ms')
  const durations = (text: string) => text.match(/(?:for: |offset |\[)\d+[a-z]+/g)!
  expect(durations(short)).toHaveLength(durations(rules).length)
  expect(durations(short).filter((duration) => !duration.endsWith('ms'))).toEqual([])
  const others = (text: string) =>
    text.replaceAll(/(?:for: |offset |\[(?:\w+:)?|_seconds(?:\{[^}]*\})?\) > )\d+[a-z]*/g, '')
  expect(others(short)).toBe(others(rules))
})
