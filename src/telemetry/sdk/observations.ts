/**
 * Reads gauges, and counters that are kept elsewhere, when metrics are collected. This replaces the observable
 * instruments of OpenTelemetry's SDK, which go on showing what was observed once: the last queue of a database that is
 * away would be shown forever, and so would the connections of a closed pool.
 */
import { ValueType } from '@opentelemetry/api'
import { hrTime, type InstrumentationScope } from '@opentelemetry/core'
import type { Resource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import { type MetricName, metrics } from '../metrics.ts'
import type { GaugeValues, Observation } from '../telemetry.ts'

type Read = () => GaugeValues | Promise<GaugeValues>

/**
 * Shows what `read` returns; `read` must be cheap. If a metric has several readers, the values of all of them are
 * shown.
 */
export type Observe = (name: MetricName, read: Read) => void

export function createObservations(
  resource: Resource,
  scope: InstrumentationScope,
): MetricProducer & { observe: Observe } {
  const startTime = hrTime()
  const readers = new Map<MetricName, Read[]>()
  const metricOf = (name: MetricName, values: Observation[]): MetricData => {
    const { kind, unit, description } = metrics[name]
    const endTime = hrTime()
    const dataPoints = values.map(({ value, labels: attributes = {} }) => ({
      startTime,
      endTime,
      attributes,
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
  const observations = (values: GaugeValues): Observation[] =>
    typeof values === 'number' ? [{ value: values }] : (values ?? [])
  return {
    observe: (name, read) => void readers.set(name, [...(readers.get(name) ?? []), read]),
    collect: async () => {
      const all = await Promise.all(
        [...readers].map(async ([name, reads]) => {
          const values = await Promise.all(reads.map((read) => read()))
          return metricOf(name, values.flatMap(observations))
        }),
      )
      const shown = all.filter(({ dataPoints }) => dataPoints.length > 0)
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics: shown }] }, errors: [] }
    },
  }
}
