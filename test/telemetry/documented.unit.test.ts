/** The table of metrics in docs/operators/metrics.md matches src/telemetry/metrics.ts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { type Metric, type MetricName, metrics, prometheusName } from '../../src/telemetry/metrics.ts'

const root = resolve(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/operators/metrics.md'), 'utf8')

test('the documented table of metrics matches the code', () => {
  const rows = Object.entries(metrics).map(([name, metric]: [string, Metric]) => {
    const labels = Object.keys(metric.labels)
      .map((label) => `\`${label.replaceAll(/[.]/g, '_')}\``)
      .join(', ')
    return `| \`${prometheusName(name as MetricName)}\` | ${metric.kind} | ${labels} | ${metric.description} |`
  })
  const table = page
    .split('\n')
    .filter((line) => /^\| `[a-z_0-9]+` \| (?:counter|histogram|gauge) \|/.test(line))
  expect(table).toEqual(rows)
})

/** The function that code calls for each kind of metric. */
const calls = { counter: 'count', histogram: 'record', gauge: 'observe' }

test('the code uses each metric by its name', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const others = files.filter((file) => file.endsWith('.ts') && file !== 'telemetry/metrics.ts')
  const code = others.map((file) => readFileSync(join(root, 'src', file), 'utf8')).join('\n')
  const isUsed = ([name, { kind }]: [string, Metric]) =>
    new RegExp(`\\b${calls[kind]}\\(\\s*'${name}'`).test(code)
  const unused = Object.entries(metrics).filter((metric) => !isUsed(metric))
  // The machine counts processor time.
  expect(unused.map(([name]) => name)).toEqual(['process.cpu.time'])
  expect(code).toContain("observe('process.cpu.time'")
})

test('metrics have the names that OpenTelemetry gives them for Prometheus', () => {
  expect(prometheusName('http.server.request.duration')).toBe('http_server_request_duration_seconds')
  expect(prometheusName('grandlivre.export.bytes')).toBe('grandlivre_export_bytes_total')
  expect(prometheusName('process.cpu.time')).toBe('process_cpu_time_seconds_total')
  expect(prometheusName('db.client.connection.count')).toBe('db_client_connection_count')
})
