/**
 * Every metric of the service. Where OpenTelemetry's conventions have a name and unit, we use them; otherwise the name
 * is ours, under `grandlivre.`. `prometheusName` returns the name in Prometheus. A test compares this table with the
 * one of docs/operators/metrics.md, and with the alert rules and the dashboard.
 */

export interface Metric {
  kind: 'counter' | 'histogram' | 'gauge'
  /** The unit in UCUM notation: `s`, `By`, or a word in braces, which Prometheus does not show. */
  unit: string
  description: string
  /** Labels, by their OpenTelemetry names. */
  labels: readonly string[]
  /**
   * Labels with few values, and those values. A counter starts with 0 for each of them, because an alert sees no
   * increase in a series that begins at 1.
   */
  values?: Readonly<Record<string, readonly string[]>>
  /** Upper bounds of a histogram. */
  buckets?: readonly number[]
}

/** Classes of SQLSTATE: connection, rollback, resources, operator. `other` is every other class. */
export const databaseErrorClasses = ['08', '40', '53', '57', 'other'] as const

/**
 * Why an export read the main database: the replica was late, was gone, was no longer a replica, or cancelled the
 * query.
 */
const fallbackReasons = ['behind', 'away', 'promoted', 'conflict'] as const

export const databaseOperations = ['select', 'insert', 'update', 'delete', 'begin', 'commit', 'copy'] as const

/**
 * Parts of an export, in order. Only a full export has `queue`, the time until a process claims it. `render` and
 * `send`, or `render` and `store`, alternate chunk by chunk.
 */
const exportStages = ['queue', 'wait', 'snapshot', 'first_row', 'render', 'send', 'store'] as const

/**
 * `interrupted`: a full export that is tried again. `broken`: the export failed after its first byte. `left`: the
 * client disconnected before the end.
 */
const exportOutcomes = ['done', 'failed', 'cancelled', 'interrupted', 'broken', 'left'] as const

/** `refused`: the response had no success status. `blocked`: our rules for targets forbid the address. */
const deliveryOutcomes = ['delivered', 'refused', 'unreachable', 'timeout', 'tls', 'blocked'] as const

const storeOperations = ['create', 'write', 'complete', 'remove', 'list', 'check'] as const

/** Bounds for requests, as OpenTelemetry's conventions name them. */
const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
/** Bounds for statements, as OpenTelemetry's conventions name them. */
const statementSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
/** Bounds for stages: a stage of a small export takes a millisecond, rendering the largest exports takes minutes. */
const stageSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600]

const exportLabels = ['grandlivre.export.kind', 'grandlivre.export.format'] as const
export const poolLabel = 'db.client.connection.pool.name'

const gauge = <const Labels extends readonly string[]>(
  unit: string,
  description: string,
  ...labels: Labels
) => ({ kind: 'gauge', unit, description, labels }) as const
const counter = <const Labels extends readonly string[]>(
  unit: string,
  description: string,
  ...labels: Labels
) => ({ kind: 'counter', unit, description, labels }) as const

export const metrics = {
  'http.server.request.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the headers of a request to the end of its answer, waits for changes included.',
    labels: ['http.request.method', 'http.route', 'http.response.status_code', 'error.type', 'url.scheme'],
    buckets: requestSeconds,
  },
  'http.server.active_requests': gauge('{request}', 'Requests whose answer has not ended.'),
  'grandlivre.request.refused': counter(
    '{request}',
    'What arrived was no HTTP, too large or late, and reached no route.',
    'error.type',
  ),
  'grandlivre.export.rows': counter(
    '{row}',
    'Items of exports that were sent or stored whole.',
    ...exportLabels,
  ),
  'grandlivre.export.bytes': counter(
    'By',
    'Bytes of exports that were sent or stored whole, before compression.',
    ...exportLabels,
  ),
  'grandlivre.export.duration': {
    kind: 'histogram',
    unit: 's',
    description:
      'Seconds of an export by stage: queue until a process claims it (full exports), wait for a thread, snapshot, first_row, then render with send or store in turns.',
    labels: ['grandlivre.export.stage'],
    values: { 'grandlivre.export.stage': exportStages },
    buckets: stageSeconds,
  },
  'grandlivre.export.ended': {
    kind: 'counter',
    unit: '{export}',
    description: 'Exports and attempts at full exports by how they ended.',
    labels: ['outcome'],
    values: { outcome: exportOutcomes },
  },
  'grandlivre.export.queue.age': gauge(
    's',
    'How long the oldest full export that may be claimed has waited for a process, a thread and connections.',
  ),
  'grandlivre.export.queue.length': gauge('{export}', 'Full exports that no process has claimed.'),
  'grandlivre.delivery.attempts': {
    kind: 'counter',
    unit: '{attempt}',
    description: 'Requests to subscribers by outcome, pings included.',
    labels: ['outcome'],
    values: { outcome: deliveryOutcomes },
  },
  'grandlivre.delivery.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'Time from connecting to a subscriber to the end of its response.',
    labels: ['outcome'],
    values: { outcome: deliveryOutcomes },
    buckets: requestSeconds,
  },
  'grandlivre.delivery.oldest_undelivered': gauge(
    's',
    'How long the oldest delivery has waited, at most since the last success of its subscription; 0 if there is none.',
    'state',
  ),
  'grandlivre.delivery.failing_subscriptions': gauge(
    '{subscription}',
    'Enabled subscriptions whose last delivery failed.',
  ),
  'grandlivre.subscription.count': gauge(
    '{subscription}',
    'Subscriptions by state; failing ones are not counted as enabled.',
    'state',
  ),
  'db.client.connection.count': gauge(
    '{connection}',
    'Connections of a pool, summed over the threads.',
    poolLabel,
    'db.client.connection.state',
  ),
  'db.client.connection.max': gauge(
    '{connection}',
    'Connections that a pool may open, summed over the threads.',
    poolLabel,
  ),
  'db.client.connection.pending_requests': gauge(
    '{request}',
    'Callers that wait for a connection of a pool.',
    poolLabel,
  ),
  'db.client.connection.timeouts': counter('{timeout}', 'Callers that got no connection in time.', poolLabel),
  'db.client.operation.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'Statements of the main thread by their first word.',
    labels: ['db.operation.name', 'db.system.name'],
    values: { 'db.operation.name': [...databaseOperations, 'other'] },
    buckets: statementSeconds,
  },
  'grandlivre.database.errors': {
    kind: 'counter',
    unit: '{error}',
    description:
      'Errors of the database by class: 08 connection, 40 rollback, 53 resources, 57 operator, other.',
    labels: ['class'],
    values: { class: databaseErrorClasses },
  },
  'grandlivre.thread.count': gauge(
    '{thread}',
    'Threads by kind; a busy one has a task.',
    'grandlivre.thread.kind',
    'state',
  ),
  'grandlivre.thread.waiting': gauge('{export}', 'Exports that wait for a thread of this process.'),
  'grandlivre.thread.deaths': counter('{thread}', 'Threads that died and were replaced.'),
  'nodejs.eventloop.delay.p50': gauge('s', 'Median delay of the main thread in the last seconds.'),
  'nodejs.eventloop.delay.p99': gauge(
    's',
    '99th percentile of the delay of the main thread in the last seconds.',
  ),
  'nodejs.eventloop.delay.max': gauge('s', 'Longest delay of the main thread in the last seconds.'),
  'process.cpu.time': counter('s', 'Processor time of all threads.', 'cpu.mode'),
  'process.memory.usage': gauge('By', 'Resident memory of the process.'),
  'grandlivre.replica.lag': gauge(
    's',
    'Age of the state that the replica shows; 0 if the main database has none that is newer.',
  ),
  'grandlivre.replica.fallbacks': {
    kind: 'counter',
    unit: '{export}',
    description: 'Reads of the replica that were made on the main database instead.',
    labels: ['reason'],
    values: { reason: fallbackReasons },
  },
  'grandlivre.store.request.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'Requests to the store of files, retries of a request included.',
    labels: ['operation', 'outcome'],
    values: { operation: storeOperations, outcome: ['done', 'failed'] },
    buckets: stageSeconds,
  },
  'grandlivre.store.errors': {
    kind: 'counter',
    unit: '{error}',
    description: 'Requests to the store of files that failed in the end.',
    labels: ['operation'],
    values: { operation: storeOperations },
  },
  'grandlivre.ready': gauge(
    '',
    'Whether a need of the service is met: 1 or 0. /readyz names the same needs.',
    'need',
  ),
  'grandlivre.epoch': gauge('', 'The epoch of the database, as the second number of cursors names it.'),
  'grandlivre.epoch.age': gauge(
    's',
    'Time since that epoch began, or since the database first noted it: at a migration.',
  ),
  'grandlivre.clock.offset': gauge(
    's',
    'How far the clock of this machine is ahead of that of the database.',
  ),
  'grandlivre.certificate.expiry': gauge(
    's',
    'Time until the certificate of an endpoint expires; negative after it.',
    'endpoint',
  ),
  'grandlivre.token.expiry': gauge('s', 'Time until the next token ends; absent if none has an end.'),
  'grandlivre.pooler.ready': gauge(
    '',
    'Whether the pooler of DATABASE_URL answers: 1 or 0. Absent without a pooler.',
  ),
  'grandlivre.audit.waiting': gauge('{row}', 'Rows of the audit that are not written yet.'),
  'grandlivre.audit.stalled': gauge(
    's',
    'Time in which rows of the audit waited and the database took none.',
  ),
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics

type NamesOf<Kind extends Metric['kind']> = {
  [Name in MetricName]: (typeof metrics)[Name]['kind'] extends Kind ? Name : never
}[MetricName]

/** Counters that export threads also count, in memory that they share with the main thread. */
export const sharedCounters = [
  'db.client.connection.timeouts',
  'grandlivre.database.errors',
  'grandlivre.replica.fallbacks',
] as const
export type SharedCounterName = (typeof sharedCounters)[number]
/** Counters that the service adds to. Processor time is missing, because the machine counts it. */
export type CounterName = Exclude<NamesOf<'counter'>, 'process.cpu.time'>
export type HistogramName = NamesOf<'histogram'>
/** Gauges, whose values are read when metrics are collected. */
export type GaugeName = NamesOf<'gauge'>

type Values<Name extends MetricName> = (typeof metrics)[Name] extends { values: infer All } ? All : unknown

/**
 * The labels of a metric. A label without listed values may be left out; an undefined value would be shown as empty.
 */
export type LabelsOf<Name extends MetricName> = {
  [Label in keyof Values<Name>]: Values<Name>[Label] extends readonly (infer Value)[] ? Value : never
} & {
  [Label in Exclude<(typeof metrics)[Name]['labels'][number], keyof Values<Name>>]?: string | number
}

export type DatabaseErrorClass = LabelsOf<'grandlivre.database.errors'>['class']
export type DatabaseOperation = LabelsOf<'db.client.operation.duration'>['db.operation.name']
export type FallbackReason = LabelsOf<'grandlivre.replica.fallbacks'>['reason']
export type ExportStage = LabelsOf<'grandlivre.export.duration'>['grandlivre.export.stage']
export type ExportOutcome = LabelsOf<'grandlivre.export.ended'>['outcome']
export type DeliveryOutcome = LabelsOf<'grandlivre.delivery.attempts'>['outcome']

const unitWords: Record<string, string> = { s: '_seconds', By: '_bytes' }

/**
 * The name in Prometheus: `http.server.request.duration` in seconds is `http_server_request_duration_seconds`; the name
 * of a counter ends in `_total`.
 */
export function prometheusName(name: MetricName): string {
  const { kind, unit }: Metric = metrics[name]
  const plain = name.replaceAll('.', '_')
  const unitWord = unitWords[unit] ?? ''
  return `${plain}${plain.endsWith(unitWord) ? '' : unitWord}${kind === 'counter' ? '_total' : ''}`
}
