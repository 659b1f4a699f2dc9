/** The rules of alerts and the dashboard name only metrics that the service has, and the guide names every alert. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Metric, type MetricName, metrics, prometheusName } from '../../src/telemetry/metrics.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Labels that Prometheus adds, and those of the alerts themselves. */
const ofPrometheus = ['job', 'instance', 'alertname', 'severity', 'alertstate']

interface Dashboard {
  templating: { list: { query: string | { query: string } }[] }
  panels: { targets?: { expr: string; legendFormat: string }[] }[]
}

/** An expression with metrics and labels. */
interface Use {
  expression: string
  /** The text that shows its result. */
  shown: string
}

function usesInRules(): Use[] {
  const rules = read('ops/prometheus/alerts.yml')
    .split(/^ {6}- alert: /m)
    .slice(1)
  return rules.map((rule) => {
    const [, expression] = /\n +expr: ([\s\S]*?)\n +(?:for|labels):/.exec(rule)!
    return { expression: expression!, shown: rule.slice(rule.indexOf('annotations:')) }
  })
}

function usesInDashboard(): Use[] {
  const { panels, templating } = JSON.parse(read('ops/grafana/grandlivre.json')) as Dashboard
  const targets = panels.flatMap(({ targets = [] }) => targets)
  const variables = templating.list.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]))
  return [
    ...targets.map(({ expr, legendFormat }) => ({ expression: expr, shown: legendFormat })),
    ...variables.map((expression) => ({ expression, shown: '' })),
  ]
}

/** A histogram has three series in Prometheus. */
function seriesOf(name: MetricName): string[] {
  const series = prometheusName(name)
  const { kind }: Metric = metrics[name]
  return kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => series + end) : [series]
}

const labelsOf = new Map(
  (Object.keys(metrics) as MetricName[]).flatMap((name) => {
    const { labels, kind }: Metric = metrics[name]
    const all = [...Object.keys(labels).map((label) => label.replaceAll('.', '_')), ...ofPrometheus]
    return seriesOf(name).map((series) => [series, kind === 'histogram' ? [...all, 'le'] : all])
  }),
)
labelsOf.set('up', ofPrometheus)
labelsOf.set('ALERTS', ofPrometheus)

const functions =
  /\b(?:sum|min|max|count|by|on|without|or|and|unless|offset|abs|absent|changes|rate|increase|histogram_quantile|label_values)\b/g

/** Metrics and labels that an expression names and the service does not have. */
function unknownIn({ expression, shown }: Use): string[] {
  const withoutTexts = expression.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]|\boffset \w+/g, '')
  const names = withoutTexts.replaceAll(functions, '').match(/[A-Za-z_]\w*/g) ?? []
  const series = names.filter((name) => labelsOf.has(name))
  const known = new Set(series.flatMap((name) => labelsOf.get(name)!))
  const shownLabels = [...shown.matchAll(/\$labels\.(\w+)|\{\{(\w+)\}\}/g)].map(([, a, b]) => a ?? b!)
  const unknown = [...names, ...shownLabels].filter((name) => !labelsOf.has(name) && !known.has(name))
  return series.length === 0 ? [`no metric in ${expression}`] : unknown
}

test.each([
  ['rules', usesInRules(), 20],
  ['dashboard', usesInDashboard(), 40],
])('the %s use only metrics and labels that the service has', (_, uses, least) => {
  expect(uses.length).toBeGreaterThan(least)
  expect(uses.flatMap(unknownIn)).toEqual([])
})

interface Choice {
  series: string
  label: string
  operator: string
  value: string
}

/** The label matchers of an expression. */
function choicesIn(expression: string): Choice[] {
  return [...expression.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, series, matchers]) =>
    [...matchers!.matchAll(/(\w+)(=|!=|=~|!~)"([^"]*)"/g)].map(([, label, operator, value]) => ({
      series: series!,
      label: label!,
      operator: operator!,
      value: value!,
    })),
  )
}

test('the dashboard distinguishes the same labels as the alerts', () => {
  const shown = usesInDashboard().map(({ expression }) => expression)
  const tells = (expression: string, { series, label, operator, value }: Choice) =>
    new RegExp(`\\b${series}\\b`).test(expression) &&
    (new RegExp(`\\bby \\([^)]*\\b${label}\\b`).test(expression) ||
      choicesIn(expression).some(
        (each) =>
          each.series === series &&
          each.label === label &&
          each.operator === operator &&
          each.value === value,
      ))
  const chosen = usesInRules()
    .flatMap(({ expression }) => choicesIn(expression))
    .filter(({ label }) => !ofPrometheus.includes(label))
  expect(chosen.length).toBeGreaterThan(10)
  expect(chosen.filter((choice) => !shown.some((each) => tells(each, choice)))).toEqual([])
})

test('the dashboard shows every metric', () => {
  const text = read('ops/grafana/grandlivre.json')
  const missing = (Object.keys(metrics) as MetricName[]).filter(
    (name) => !seriesOf(name).some((series) => new RegExp(`\\b${series}\\b`).test(text)),
  )
  expect(missing).toEqual([])
})

test('the guide says what to do about every alert, and names no other alert', () => {
  const alerts = [...read('ops/prometheus/alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  const [, section = ''] = read('docs/operators/metrics.md').split(/^#+ Alerts\n/m)
  const rows = [...section.matchAll(/^\| `(Grandlivre\w+)` \| (.+) \| (.+) \|$/gm)]
  expect(rows.map(([, name]) => name)).toEqual(alerts)
  expect(rows.filter(([, , means, act]) => means!.length < 20 || act!.length < 20)).toEqual([])
})
