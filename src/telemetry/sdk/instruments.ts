/** The instruments of OpenTelemetry, made of the table of metrics. */
import type { Counter, Histogram, Meter } from '@opentelemetry/api'
import { type GaugeName, type Metric, type MetricName, metrics } from '../metrics.ts'
import { Reading } from '../reading.ts'
import type { Observation } from '../telemetry.ts'
import type { Observations } from './observations.ts'

export class Instruments {
  readonly #meter: Meter
  readonly #observations: Observations

  constructor(meter: Meter, observations: Observations) {
    this.#meter = meter
    this.#observations = observations
  }

  counter(name: MetricName): Counter {
    const counter = this.#meter.createCounter(name, optionsOf(name))
    const { labels, values }: Metric = metrics[name]
    if (labels.length === 0) counter.add(0)
    for (const [label, all] of Object.entries(values ?? {}))
      for (const value of all) counter.add(0, { [label]: value })
    return counter
  }

  histogram(name: MetricName): Histogram {
    const { buckets = [] }: Metric = metrics[name]
    const advice = { explicitBucketBoundaries: [...buckets] }
    return this.#meter.createHistogram(name, { ...optionsOf(name), advice })
  }

  /** Counts that are kept elsewhere. */
  observedCounter(name: MetricName, read: () => Observation[]): void {
    this.#observations.add(name, read)
  }

  /** Values that cost nothing to read. */
  gauge(name: GaugeName, read: () => Observation[]): void {
    this.#observations.add(name, read)
  }

  /** Values that are read now and then. */
  observedGauge(name: GaugeName, read: () => Observation[] | Promise<Observation[]>): void {
    const reading = new Reading(read)
    this.#observations.add(name, async () => (await reading.latest()) ?? [])
  }
}

function optionsOf(name: MetricName): { unit: string; description: string } {
  const { unit, description } = metrics[name]
  return { unit, description }
}
