/** The instruments of OpenTelemetry, made of the table of metrics. */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import { type Metric, type MetricName, metrics, type ObservedGauge } from '../metrics.ts'
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

  /** @param starts what it counts from the start: a series that begins at 1 has no increase to alert on */
  counter(name: MetricName, starts: Attributes[] = []): Counter {
    const counter = this.#meter.createCounter(name, optionsOf(name))
    for (const attributes of starts) counter.add(0, attributes)
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
  gauge(name: ObservedGauge, read: () => Observation[]): void {
    this.#observations.add(name, read)
  }

  /** Values that are read now and then. */
  observedGauge(name: ObservedGauge, read: () => Observation[] | Promise<Observation[]>): void {
    const reading = new Reading(read)
    this.#observations.add(name, async () => (await reading.latest()) ?? [])
  }
}

function optionsOf(name: MetricName): { unit: string; description: string } {
  const { unit, description } = metrics[name]
  return { unit, description }
}
