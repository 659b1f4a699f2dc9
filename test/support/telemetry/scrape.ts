/** Reads the metrics of a service as Prometheus does. */

export interface Sample {
  labels: Record<string, string>
  value: number
}

/** Samples by the name of their metric. */
export type Samples = Map<string, Sample[]>

export async function metricsOf({ metricsUrl }: { metricsUrl: string | undefined }): Promise<Samples> {
  return parseMetrics(await (await fetch(metricsUrl!)).text())
}

export function parseMetrics(text: string): Samples {
  const samples: Samples = new Map()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) continue
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key!, text!])
    const sample = { labels: Object.fromEntries(pairs), value: Number(value) }
    samples.set(name, [...(samples.get(name) ?? []), sample])
  }
  return samples
}

/** The sum of the samples that have these labels; undefined if there is none. */
export function sumOf(samples: Samples, name: string, labels: Record<string, string>): number | undefined {
  const found = (samples.get(name) ?? []).filter((sample) =>
    Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}
