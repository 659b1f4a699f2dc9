/** Prometheus and promtool, as packaged by Debian, with the rules of `ops/prometheus/alerts.yml`. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../servers/pgbouncer.ts'
import { until } from '../until.ts'

/** The path of a file below `ops/prometheus/`. */
export function opsFile(name: string): string {
  return join(import.meta.dirname, '../../../ops/prometheus', name)
}

export const isPrometheusInstalled = ((): boolean => {
  try {
    for (const program of ['prometheus', 'promtool'])
      execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

/** Warns once per run. */
export function warnIfPrometheusIsMissing(): void {
  if (!isPrometheusInstalled)
    console.warn('No tests of alerts with Prometheus: it is not installed, see .ci/run')
}

export interface PrometheusOptions {
  /** `host:port` of the metrics. */
  target: string
  /** Divides the durations of the rules, and the ages that they compare with. 1 leaves the rules unchanged. */
  factor: number
  scrapeSeconds: number
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3600 }

/**
 * The rules with shorter times: waits (`for: 5m`), ranges (`[5m]`, `[1h:1m]`, `offset 5m`), and ages that are compared with (`_age_seconds) >
 * 600`). Thresholds of other values stay.
 */
export function shortened(rules: string, factor: number): string {
  const shorter = (number: string, unit: string) =>
    `${Math.round((Number(number) * unitSeconds[unit]! * 1_000) / factor)}ms`
  return rules
    .replaceAll(/for: (\d+)([smh])$/gm, (_, number, unit) => `for: ${shorter(number, unit)}`)
    .replaceAll(/\[(\d+)([smh])\]/g, (_, number, unit) => `[${shorter(number, unit)}]`)
    .replaceAll(
      /\[(\d+)([smh]):(\d+)([smh])\]/g,
      (_, range, unit, step, of) => `[${shorter(range, unit)}:${shorter(step, of)}]`,
    )
    .replaceAll(/offset (\d+)([smh])$/gm, (_, number, unit) => `offset ${shorter(number, unit)}`)
    .replaceAll(
      /(_(?:age|undelivered)_seconds(?:\{[^}]*\})?\) > )(\d+)/g,
      (_, text, age) => `${text}${Number(age) / factor}`,
    )
}

export async function startPrometheus(options: PrometheusOptions) {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-prometheus-'))
  await writeFile(
    join(folder, 'alerts.yml'),
    shortened(await readFile(opsFile('alerts.yml'), 'utf8'), options.factor),
  )
  const every = `${options.scrapeSeconds}s`
  const config = {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    rule_files: ['alerts.yml'],
    scrape_configs: [{ job_name: 'grandlivre', static_configs: [{ targets: [options.target] }] }],
  }
  // JSON is YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors = (errors + chunk).slice(-4_000)
  })
  const ask = async (expression: string) => {
    const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`)
    const { data } = (await response.json()) as {
      data: { result: { metric: { alertname: string }; value: [number, string] }[] }
    }
    return data.result
  }
  const namesIn = async (expression: string) =>
    [...new Set((await ask(expression)).map(({ metric }) => metric.alertname))].sort()
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus did not start: ${errors}`)
    return fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return {
    /** Names of the alerts that fire now. */
    firing: () => namesIn('ALERTS{alertstate="firing"}'),
    /** Names of the alerts that fire or whose wait runs. */
    active: () => namesIn('ALERTS'),
    /** Names of the alerts that were in that state at any time since `then`, in epoch milliseconds. */
    since: (then: number, state: 'firing' | 'pending') => {
      const seconds = Math.max(1, Math.ceil((Date.now() - then) / 1_000))
      return namesIn(`max_over_time(ALERTS{alertstate="${state}"}[${seconds}s])`)
    },
    /** The value of an expression; undefined if the expression has no value. */
    value: async (expression: string) => {
      const [first] = await ask(expression)
      return first && Number(first.value[1])
    },
    stop: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
