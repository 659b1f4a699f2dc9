/** The instruments of OpenTelemetry, made of the table of metrics. */
import type { Counter, Histogram, Meter } from '@opentelemetry/api'
import { type GaugeName, type Metric, type MetricName, metrics } from '../metrics.ts'
import { createReading } from '../reading.ts'
import type { Observation } from '../telemetry.ts'
import type { Observations } from './observations.ts'

export type Instruments = ReturnType<typeof createInstruments>

export function createInstruments(meter: Meter, observations: Observations) {
  return {
    counter(name: MetricName): Counter {
      const { unit, description, labels, values }: Metric = metrics[name]
      const counter = meter.createCounter(name, { unit, description })
      if (labels.length === 0) counter.add(0)
      for (const [label, all] of Object.entries(values ?? {}))
        for (const value of all) counter.add(0, { [label]: value })
      return counter
    },
    histogram(name: MetricName): Histogram {
      const { unit, description, buckets = [] }: Metric = metrics[name]
      const advice = { explicitBucketBoundaries: [...buckets] }
      return meter.createHistogram(name, { unit, description, advice })
    },
    /** Counts that are kept elsewhere. */
    observedCounter(name: MetricName, read: () => Observation[]): void {
      observations.add(name, read)
    },
    /** Values that cost nothing to read. */
    gauge(name: GaugeName, read: () => Observation[]): void {
      observations.add(name, read)
    },
    /** Values that are read now and then. */
    observedGauge(name: GaugeName, read: () => Observation[] | Promise<Observation[]>): void {
      const reading = createReading(read)
      observations.add(name, async () => (await reading.latest()) ?? [])
    },
  }
}
