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
  /**
   * Labels, by their OpenTelemetry names, each with its values. A counter starts with 0 for each value, because an alert
   * sees no increase in a series that begins at 1.
   */
  labels: Readonly<Record<string, readonly string[] | typeof unlisted>>
  /** Upper bounds of a histogram. */
  buckets?: readonly number[]
}

/** For a label whose values are not in this table. */
const unlisted = null

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

const exportLabels = { 'grandlivre.export.kind': unlisted, 'grandlivre.export.format': unlisted } as const
export const poolLabel = 'db.client.connection.pool.name'
const poolLabels = { [poolLabel]: unlisted } as const

/** A function that declares metrics of one kind. */
const declares =
  <Kind extends Metric['kind']>(kind: Kind) =>
  <const Labels extends Metric['labels'] = Record<never, never>>(
    unit: string,
    description: string,
    labels = {} as Labels,
    buckets: readonly number[] = [],
  ) => ({ kind, unit, description, labels, buckets })
const gauge = declares('gauge')
const counter = declares('counter')
const histogram = declares('histogram')

export const metrics = {
  'http.server.request.duration': histogram(
    's',
    'Time from the headers of a request to the end of its answer, waits for changes included.',
    {
      'http.request.method': unlisted,
      'http.route': unlisted,
      'http.response.status_code': unlisted,
      'error.type': unlisted,
      'url.scheme': unlisted,
    },
    requestSeconds,
  ),
  'http.server.active_requests': gauge('{request}', 'Requests whose answer has not ended.'),
  'grandlivre.request.refused': counter(
    '{request}',
    'What arrived was no HTTP, too large or late, and reached no route.',
    { 'error.type': unlisted },
  ),
  'grandlivre.export.rows': counter(
    '{row}',
    'Items of exports that were sent or stored whole.',
    exportLabels,
  ),
  'grandlivre.export.bytes': counter(
    'By',
    'Bytes of exports that were sent or stored whole, before compression.',
    exportLabels,
  ),
  'grandlivre.export.duration': histogram(
    's',
    'Seconds of an export by stage: queue until a process claims it (full exports), wait for a thread, snapshot, first_row, then render with send or store in turns.',
    { 'grandlivre.export.stage': exportStages },
    stageSeconds,
  ),
  'grandlivre.export.ended': counter('{export}', 'Exports and attempts at full exports by how they ended.', {
    outcome: exportOutcomes,
  }),
  'grandlivre.export.queue.age': gauge(
    's',
    'How long the oldest full export that may be claimed has waited for a process, a thread and connections.',
  ),
  'grandlivre.export.queue.length': gauge('{export}', 'Full exports that no process has claimed.'),
  'grandlivre.delivery.attempts': counter(
    '{attempt}',
    'Requests to subscribers by outcome, pings included.',
    { outcome: deliveryOutcomes },
  ),
  'grandlivre.delivery.duration': histogram(
    's',
    'Time from connecting to a subscriber to the end of its response.',
    { outcome: deliveryOutcomes },
    requestSeconds,
  ),
  'grandlivre.delivery.oldest_undelivered': gauge(
    's',
    'How long the oldest delivery has waited, at most since the last success of its subscription; 0 if there is none.',
    { state: unlisted },
  ),
  'grandlivre.delivery.failing_subscriptions': gauge(
    '{subscription}',
    'Enabled subscriptions whose last delivery failed.',
  ),
  'grandlivre.subscription.count': gauge(
    '{subscription}',
    'Subscriptions by state; failing ones are not counted as enabled.',
    { state: unlisted },
  ),
  'db.client.connection.count': gauge('{connection}', 'Connections of a pool, summed over the threads.', {
    [poolLabel]: unlisted,
    'db.client.connection.state': unlisted,
  }),
  'db.client.connection.max': gauge(
    '{connection}',
    'Connections that a pool may open, summed over the threads.',
    poolLabels,
  ),
  'db.client.connection.pending_requests': gauge(
    '{request}',
    'Callers that wait for a connection of a pool.',
    poolLabels,
  ),
  'db.client.connection.timeouts': counter(
    '{timeout}',
    'Callers that got no connection in time.',
    poolLabels,
  ),
  'db.client.operation.duration': histogram(
    's',
    'Statements of the main thread by their first word.',
    { 'db.operation.name': [...databaseOperations, 'other'], 'db.system.name': unlisted },
    statementSeconds,
  ),
  'grandlivre.database.errors': counter(
    '{error}',
    'Errors of the database by class: 08 connection, 40 rollback, 53 resources, 57 operator, other.',
    { class: databaseErrorClasses },
  ),
  'grandlivre.thread.count': gauge('{thread}', 'Threads by kind; a busy one has a task.', {
    'grandlivre.thread.kind': unlisted,
    state: unlisted,
  }),
  'grandlivre.thread.waiting': gauge('{export}', 'Exports that wait for a thread of this process.'),
  'grandlivre.thread.deaths': counter('{thread}', 'Threads that died and were replaced.'),
  'nodejs.eventloop.delay.p50': gauge('s', 'Median delay of the main thread in the last seconds.'),
  'nodejs.eventloop.delay.p99': gauge(
    's',
    '99th percentile of the delay of the main thread in the last seconds.',
  ),
  'nodejs.eventloop.delay.max': gauge('s', 'Longest delay of the main thread in the last seconds.'),
  'process.cpu.time': counter('s', 'Processor time of all threads.', { 'cpu.mode': unlisted }),
  'process.memory.usage': gauge('By', 'Resident memory of the process.'),
  'grandlivre.replica.lag': gauge(
    's',
    'Age of the state that the replica shows; 0 if the main database has none that is newer.',
  ),
  'grandlivre.replica.fallbacks': counter(
    '{export}',
    'Reads of the replica that were made on the main database instead.',
    { reason: fallbackReasons },
  ),
  'grandlivre.store.request.duration': histogram(
    's',
    'Requests to the store of files, retries of a request included.',
    { operation: storeOperations, outcome: ['done', 'failed'] },
    stageSeconds,
  ),
  'grandlivre.store.errors': counter('{error}', 'Requests to the store of files that failed in the end.', {
    operation: storeOperations,
  }),
  'grandlivre.ready': gauge(
    '',
    'Whether a need of the service is met: 1 or 0. /readyz names the same needs.',
    { need: unlisted },
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
    { endpoint: unlisted },
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
} satisfies Record<string, Metric>

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

type Labels<Name extends MetricName> = (typeof metrics)[Name]['labels']

/** The labels of a metric. An unlisted label may be left out; an undefined value would be shown as empty. */
export type LabelsOf<Name extends MetricName> = {
  -readonly [Label in keyof Labels<Name> as Labels<Name>[Label] extends null ? never : Label]: Extract<
    Labels<Name>[Label],
    readonly unknown[]
  >[number]
} & {
  -readonly [Label in keyof Labels<Name> as Labels<Name>[Label] extends null ? Label : never]?:
    | string
    | number
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
