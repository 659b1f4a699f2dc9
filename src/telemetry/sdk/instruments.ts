/** The instruments of OpenTelemetry, made of the table of metrics. */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import { type Metric, type MetricName, metrics, type ObservedGauge } from '../metrics.ts'
import { Reading } from '../reading.ts'
import type { Observation } from '../telemetry.ts'

type Observe = () => Observation[] | Promise<Observation[]>

export class Instruments {
  readonly #meter: Meter
  readonly #gauges = new Map<ObservedGauge, Reading<Observation[]>[]>()

  constructor(meter: Meter) {
    this.#meter = meter
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
    this.#meter.createObservableCounter(name, optionsOf(name)).addCallback((result) => {
      for (const { value, labels } of read()) result.observe(value, labels)
    })
  }

  /** Values that cost nothing to read. */
  gauge(name: ObservedGauge, read: () => Observation[]): void {
    this.#meter.createObservableGauge(name, optionsOf(name)).addCallback((result) => {
      for (const { value, labels } of read()) result.observe(value, labels)
    })
  }

  /** Values that are read now and then. A gauge may have several readers. */
  observedGauge(name: ObservedGauge, read: Observe): void {
    const known = this.#gauges.get(name)
    if (known) {
      known.push(new Reading(read))
      return
    }
    const readings = [new Reading(read)]
    this.#gauges.set(name, readings)
    this.#meter.createObservableGauge(name, optionsOf(name)).addCallback(async (result) => {
      for (const observed of await Promise.all(readings.map((reading) => reading.latest())))
        for (const { value, labels } of observed ?? []) result.observe(value, labels)
    })
  }
}

function optionsOf(name: MetricName): { unit: string; description: string } {
  const { unit, description } = metrics[name]
  return { unit, description }
}
