/**
 * Gauges, and counters that are kept elsewhere, as they are when metrics are collected. The observable instruments of
 * OpenTelemetry's SDK go on showing what was observed once: a database that is away would keep its last queue forever,
 * and a pool that is closed its connections.
 */
import { type HrTime, ValueType } from '@opentelemetry/api'
import { hrTime, type InstrumentationScope } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import { type MetricName, metrics } from '../metrics.ts'
import type { Observation } from '../telemetry.ts'

type Observe = () => Observation[] | Promise<Observation[]>

export class Observations implements MetricProducer {
  readonly #resource: Resource
  readonly #scope: InstrumentationScope
  readonly #startTime: HrTime = hrTime()
  readonly #observed = new Map<MetricName, Observe[]>()

  constructor(resource: Resource, scope: InstrumentationScope) {
    this.#resource = resource
    this.#scope = scope
  }

  /** Of several readers of one metric, all values are shown. */
  add(name: MetricName, observe: Observe): void {
    this.#observed.set(name, [...(this.#observed.get(name) ?? []), observe])
  }

  async collect(): Promise<CollectionResult> {
    const read = [...this.#observed].map(async ([name, observers]) => {
      const values = await Promise.all(observers.map((observe) => observe()))
      return this.#metricOf(name, values.flat())
    })
    const all = await Promise.all(read)
    const shown = all.filter(({ dataPoints }) => dataPoints.length > 0)
    const scopeMetrics = [{ scope: this.#scope, metrics: shown }]
    return { resourceMetrics: { resource: this.#resource, scopeMetrics }, errors: [] }
  }

  #metricOf(name: MetricName, values: Observation[]): MetricData {
    const { kind, unit, description } = metrics[name]
    const endTime = hrTime()
    const dataPoints: DataPoint<number>[] = values.map(({ value, labels = {} }) => ({
      startTime: this.#startTime,
      endTime,
      attributes: labels,
      value,
    }))
    const metric = {
      descriptor: { name, unit, description, valueType: ValueType.DOUBLE },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
      dataPoints,
    }
    return kind === 'counter'
      ? { ...metric, dataPointType: DataPointType.SUM, isMonotonic: true }
      : { ...metric, dataPointType: DataPointType.GAUGE }
  }
}
