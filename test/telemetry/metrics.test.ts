/** What a scrape of the whole service shows after an export, a full export, deliveries and so on. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type MetricName, metrics, prometheusName } from '../../src/telemetry/metrics.ts'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { answerWith } from '../support/receiver.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { startTestService } from '../support/service.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { metricsOf, type Samples, sumOf } from '../support/telemetry/scrape.ts'
import { until } from '../support/until.ts'

const metricsOnAnyPort = { metrics: { host: '127.0.0.1', port: 0, allowedHosts: ['Metrics.internal'] } }

const stage = forTests(() => setExportStage(metricsOnAnyPort))
const webhooks = forTests(() => setReceivingStage(metricsOnAnyPort))

const scrape = () => metricsOf(stage.service)

/** Waits for a sample: counts of connections are up to a second old. */
async function seen(where: { service: ExportStage['service'] }, is: (samples: Samples) => boolean) {
  let samples: Samples = new Map()
  await until(async () => {
    samples = await metricsOf(where.service)
    return is(samples)
  })
  return samples
}

/** Waits until the sum of the series with these labels is above 0. */
const counted = (name: string, labels: Record<string, string>) =>
  seen(stage, (now) => (sumOf(now, name, labels) ?? 0) > 0)

test('a streamed export is counted by rows, bytes and stages, and its request by route template', async () => {
  const before = await scrape()
  const began = performance.now()
  const answer = await download(movementsUrl(stage.service.url, { idExercice: '12' }), stage.company)
  const rows = Number(answer.trailers['x-row-count'])
  const labels = { grandlivre_export_kind: 'movements', grandlivre_export_format: 'json' }
  const route = { http_route: '/api/v1/mad/movements', http_response_status_code: '200' }
  const samples = await counted('http_server_request_duration_seconds_count', route)
  const grown = (name: string, of: Record<string, string>) =>
    (sumOf(samples, name, of) ?? 0) - (sumOf(before, name, of) ?? 0)
  expect(grown('grandlivre_export_rows_total', labels)).toBe(rows)
  expect(grown('grandlivre_export_bytes_total', labels)).toBe(Buffer.byteLength(answer.text))
  expect(grown('grandlivre_export_ended_total', { outcome: 'done' })).toBe(1)
  for (const grandlivre_export_stage of ['wait', 'snapshot', 'first_row', 'render', 'send'])
    expect(grown('grandlivre_export_duration_seconds_count', { grandlivre_export_stage })).toBe(1)
  // Two connections at most work on it at once, and each stage is a part of the request.
  const seconds = (performance.now() - began) / 1_000
  expect(grown('http_server_request_duration_seconds_sum', route)).toBeLessThan(seconds)
  expect(grown('grandlivre_export_duration_seconds_sum', {})).toBeLessThan(2 * seconds)
  const statements = { db_operation_name: 'select' }
  const each =
    grown('db_client_operation_duration_seconds_sum', statements) /
    grown('db_client_operation_duration_seconds_count', statements)
  expect(each).toBeLessThan(seconds)
})

test('a refused request is counted by its error code, and no path, id or token becomes a label', async () => {
  await download(movementsUrl(stage.service.url, { idExercice: '999' }), stage.company)
  await download(`${stage.service.url}/no/such/4711`, stage.company)
  const notFound = { error_type: 'ERR-NOT-FOUND', http_response_status_code: '404' }
  const samples = await counted('http_server_request_duration_seconds_count', notFound)
  const codes = [...samples].flatMap(([, all]) => all.flatMap(({ labels }) => labels['error_type'] ?? []))
  expect(codes).toContain('ERR-EXERCICE-NOT-FOUND')
  const values = [...samples].flatMap(([, all]) => all.flatMap(({ labels }) => Object.values(labels)))
  expect(values.filter((value) => /4711|999|glv_|^\/no/.test(value))).toEqual([])
  // A request for what does not exist is no failed export.
  expect(sumOf(samples, 'grandlivre_export_ended_total', { outcome: 'failed' })).toBe(0)
})

test('a full export and its requests to the store are counted', async () => {
  const { body } = await trigger(stage.service.url, stage.company)
  await ended(stage.service.url, stage.company, body.id)
  const labels = { grandlivre_export_kind: 'folder', grandlivre_export_format: 'json' }
  const samples = await counted('grandlivre_export_rows_total', labels)
  for (const operation of ['create', 'write', 'complete'])
    expect(
      sumOf(samples, 'grandlivre_store_request_duration_seconds_count', { operation, outcome: 'done' }),
    ).toBe(1)
  expect(sumOf(samples, 'grandlivre_export_queue_length', {})).toBe(0)
})

test('deliveries are counted by outcome, and subscriptions by state', async () => {
  webhooks.receiver.behave('/refuses', answerWith(500))
  await webhooks.subscribe('/accepts')
  await webhooks.subscribe('/refuses')
  await webhooks.publish([documentEvent('a', folders.first.folderId)])
  const samples = await seen(
    webhooks,
    (now) =>
      sumOf(now, 'grandlivre_delivery_attempts_total', { outcome: 'delivered' }) === 1 &&
      sumOf(now, 'grandlivre_subscription_count', { state: 'failing' }) === 1,
  )
  expect(sumOf(samples, 'grandlivre_delivery_attempts_total', { outcome: 'refused' })).toBeGreaterThan(0)
  expect(sumOf(samples, 'grandlivre_subscription_count', { state: 'enabled' })).toBe(1)
  expect(sumOf(samples, 'grandlivre_delivery_failing_subscriptions', {})).toBe(1)
  expect(sumOf(samples, 'grandlivre_delivery_oldest_undelivered_seconds', {})).toBeGreaterThan(0)
})

test('the metrics show when the next token in use expires', async () => {
  const inDays = (days: number) => ({ expiresAt: new Date(Date.now() + days * 86_400_000) })
  const { issue } = webhooks
  const revoked = await issue('api', folders.first, inDays(1))
  await webhooks.revoke(revoked.id)
  await issue('api', folders.first, inDays(-1))
  await issue('api', folders.first, inDays(20))
  await issue('firm', folders.first, inDays(10))
  const days = (now: Samples) => (sumOf(now, 'grandlivre_token_expiry_seconds', {}) ?? 0) / 86_400
  expect(days(await seen(webhooks, (now) => days(now) > 0))).toBeCloseTo(10, 2)
})

test('connections are counted by pool, including those of export threads', async () => {
  const pool = { db_client_connection_pool_name: 'grandlivre export' }
  const idle = { ...pool, db_client_connection_state: 'idle' }
  const samples = await counted('db_client_connection_count', idle)
  expect(sumOf(samples, 'db_client_connection_max', pool)).toBeGreaterThanOrEqual(2)
  expect(sumOf(samples, 'db_client_connection_pending_requests', pool)).toBe(0)
  expect(sumOf(samples, 'db_client_connection_timeouts_total', pool)).toBe(0)
  const main = { db_client_connection_pool_name: 'grandlivre' }
  expect(sumOf(samples, 'db_client_connection_max', main)).toBeGreaterThan(0)
})

test('database errors in export threads are also counted by class', async () => {
  const before = sumOf(await scrape(), 'grandlivre_database_errors_total', { class: 'other' })!
  await stage.staff.client.query('revoke select on grandlivre.movements from grandlivre_service')
  const answer = await download(movementsUrl(stage.service.url, { idExercice: '12' }), stage.company)
  await stage.staff.client.query('grant select on grandlivre.movements to grandlivre_service')
  expect(answer.status).toBe(500)
  const samples = await scrape()
  expect(sumOf(samples, 'grandlivre_database_errors_total', { class: 'other' })! - before).toBe(1)
  expect(sumOf(samples, 'grandlivre_export_ended_total', { outcome: 'failed' })).toBe(1)
})

test('every metric of the table is shown, except those that cannot occur in this test', async () => {
  const absent: MetricName[] = [
    // The service has no replica, no pooler and no certificate.
    'grandlivre.replica.lag',
    'grandlivre.pooler.ready',
    'grandlivre.certificate.expiry',
  ]
  // A URL that is too long reaches no route.
  await download(`${stage.service.url}/${'x'.repeat(20_000)}`, {})
  await seen(stage, (now) => now.has('grandlivre_clock_offset_seconds') && now.has('grandlivre_ready'))
  const [first, second] = await Promise.all([scrape(), metricsOf(webhooks.service)])
  const shown = new Set([...first.keys(), ...second.keys()])
  const missing = (Object.keys(metrics) as MetricName[]).filter(
    (name) => !shown.has(prometheusName(name)) && !shown.has(`${prometheusName(name)}_count`),
  )
  expect(missing.filter((name) => !absent.includes(name))).toEqual([])
  const total = (name: string) => (sumOf(first, name, {}) ?? 0) + (sumOf(second, name, {}) ?? 0)
  const neverCounted = (Object.keys(metrics) as MetricName[]).filter(
    (name) => metrics[name].kind === 'counter' && total(prometheusName(name)) === 0,
  )
  expect(neverCounted).toEqual([
    // ops/faults.slow.test.ts causes these, and waits for their alerts.
    'db.client.connection.timeouts',
    'grandlivre.thread.deaths',
    'grandlivre.replica.fallbacks',
    'grandlivre.store.errors',
  ] satisfies MetricName[])
  for (const [name, samples] of first)
    for (const { labels } of samples) {
      const metric = (Object.keys(metrics) as MetricName[]).find((each) =>
        ['', '_count', '_sum', '_bucket'].some((end) => name === prometheusName(each) + end),
      )
      if (name === 'target_info') continue
      const known = metric && Object.keys(metrics[metric].labels).map((label) => label.replaceAll('.', '_'))
      expect(known, name).toEqual(expect.arrayContaining(Object.keys(labels).filter((key) => key !== 'le')))
    }
})

test('alerts select only label values that a scrape contains', async () => {
  const rules = await readFile('ops/prometheus/alerts.yml', 'utf8')
  const [first, second] = await Promise.all([scrape(), metricsOf(webhooks.service)])
  const has = (name: string, label: string, value: string) =>
    [first, second].some((samples) => sumOf(samples, name, { [label]: value }) !== undefined)
  const chosen = [...rules.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, name, matchers]) =>
    [...matchers!.matchAll(/(\w+)(?:=|!=|=~|!~)"([^"]*)"/g)].flatMap(([, label, values]) =>
      values!.split('|').map((value) => [name!, label!, value] as const),
    ),
  )
  expect(chosen.length).toBeGreaterThan(15)
  // Prometheus adds the job. Here, there is no replica, and not every status occurs.
  const others = /^(?:job|http_response_status_code)$/
  const isReplica = (value: string) => value === 'replica' || value === 'grandlivre replica'
  const unknown = chosen.filter(
    ([name, label, value]) => !others.test(label) && !isReplica(value) && !has(name, label, value),
  )
  expect(unknown).toEqual([])
})

test('promtool objects only to names that end in "count", which OpenTelemetry prescribes', async ({
  skip,
}) => {
  const text = await (await fetch(stage.service.metricsUrl!)).text()
  const { error, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  if (error) skip('promtool is not installed')
  const lines = stderr.split('\n').filter((line) => line !== '')
  expect(lines.filter((line) => !line.includes('should not have "_count" suffix'))).toEqual([])
})

test('the metrics port serves only /metrics', async () => {
  const url = new URL(stage.service.metricsUrl!)
  expect((await fetch(new URL('/', url))).status).toBe(404)
  expect((await fetch(new URL('/api/v1/mad/movements', url))).status).toBe(404)
  expect((await fetch(url, { method: 'POST' })).status).toBe(405)
})

test('a hanging database does not delay a scrape; only metrics read from the database are missing', async () => {
  const database = await createTestDatabase()
  const proxy = await startProxy(database.ownerUrl)
  const service = await startTestService({ ownerUrl: proxy.url }, metricsOnAnyPort)
  const names = [
    'grandlivre_export_queue_age_seconds',
    'grandlivre_delivery_oldest_undelivered_seconds',
    'grandlivre_subscription_count',
  ]
  const shown = async () => {
    const samples = await metricsOf(service)
    return {
      ours: names.filter((name) => samples.has(name)),
      cpu: samples.has('process_cpu_time_seconds_total'),
    }
  }
  await until(async () => (await shown()).ours.length === names.length)
  proxy.freeze()
  await until(async () => (await shown()).ours.length === 0)
  expect((await shown()).cpu).toBe(true)
  proxy.thaw()
  await until(async () => (await shown()).ours.length === names.length)
  await service.stop()
  await proxy.cut()
  await database.drop()
})

const scrapedHosts: Record<number, (string | undefined)[]> = {
  200: [
    ...['127.0.0.1', '10.0.0.1:9464', '[::1]', '[2001:db8::1]:9464'],
    ...['localhost', 'LOCALHOST:9464', 'metrics.internal', 'METRICS.internal:9464'],
  ],
  // If a page makes its own name lead to this machine, the browser sends that name.
  421: [
    ...['evil.test', 'evil.test:9464', 'metrics.internal.evil.test', '127.0.0.1.evil.test'],
    ...['user@localhost', '', undefined],
  ],
}

test.each(Object.entries(scrapedHosts).flatMap(([status, hosts]) => hosts.map((host) => ({ host, status }))))(
  'a scrape of the host $host is answered with $status',
  async ({ host, status }) => {
    const { hostname, port } = new URL(stage.service.metricsUrl!)
    const socket = connect(Number(port), hostname)
    // Only a request of HTTP/1.0 may lack the header.
    socket.write(`GET /metrics HTTP/1.0\r\n${host === undefined ? '' : `Host: ${host}\r\n`}\r\n`)
    const answer = await text(socket)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer.includes('# TYPE')).toBe(status === '200')
  },
)

test('if the port is in use, the start fails with a sentence that names the setting', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const start = startTestService(stage.database, { metrics: { host: '127.0.0.1', port, allowedHosts: [] } })
  await expect(start).rejects.toThrow(
    `Port ${port} of 127.0.0.1 is in use: stop the program that listens there, or set METRICS_PORT`,
  )
  other.close()
})
