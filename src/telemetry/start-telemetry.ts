/** Starts metrics and traces if the operator asked for them. Otherwise no part of OpenTelemetry is loaded. */
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { TelemetryTiming } from '../timing.ts'
import { noTelemetry, type StartedTelemetry } from './telemetry.ts'

/** @throws {Error} if METRICS_PORT cannot be used, with the remedy */
export async function startTelemetry(
  config: Pick<Config, 'metrics' | 'otlpEndpoint' | 'tracesShare'>,
  timing: TelemetryTiming,
  log: Log,
): Promise<StartedTelemetry> {
  if (!config.metrics && config.otlpEndpoint === undefined)
    return { telemetry: noTelemetry, metricsUrl: undefined, close: async () => {} }
  const { startOpenTelemetry } = await import('./sdk/start-open-telemetry.ts')
  return startOpenTelemetry(config, packageJson.version, timing, log)
}
