/**
 * What the projects `service`, `slow`, `pipeline` and `alone` need before their first file, made once for all. Each of them loads
 * this file separately, so the count of its users is global.
 */
import type { TestProject } from 'vitest/node'
import { warnIfRuntimesAreMissing } from '../../packages/partner/test/support/package/runtimes.ts'
import { warnIfChromiumIsMissing } from './browser/chromium.ts'
import { warnIfPostgresToolsAreMissing } from './guides/postgres-tools.ts'
import { warnOfMissingTools } from './guides/tools.ts'
import { warnIfClusterIsMissing } from './ops/patroni.ts'
import { warnIfPrometheusIsMissing } from './ops/prometheus.ts'
import { warnIfPythonIsMissing } from './receivers/standard-webhooks.ts'
import { warnIfPoolerIsMissing } from './servers/pgbouncer.ts'
import { warnOfMissingS3Servers } from './servers/s3-programs.ts'
import { type RunServer, startServer } from './servers/server.ts'
import { warnIfFormerCodeIsMissing } from './upgrade/former-code.ts'

interface Shared {
  users: number
  server?: Promise<RunServer>
}

const shareable = globalThis as { grandlivreTests?: Shared }
shareable.grandlivreTests ??= { users: 0 }
const shared = shareable.grandlivreTests

export async function setup(project: TestProject): Promise<void> {
  shared.users += 1
  if (shared.server === undefined) {
    warnOfMissingS3Servers()
    warnIfPoolerIsMissing()
    warnIfPrometheusIsMissing()
    warnIfClusterIsMissing()
    warnIfChromiumIsMissing()
    warnIfPythonIsMissing()
    warnIfRuntimesAreMissing()
    warnIfFormerCodeIsMissing()
    warnIfPostgresToolsAreMissing()
    warnOfMissingTools(project.name)
    shared.server = startServer()
  }
  const { urls, cluster } = await shared.server
  project.provide('databaseServer', urls)
  project.provide('cluster', cluster)
}

export async function teardown(): Promise<void> {
  shared.users -= 1
  if (shared.users === 0) await (await shared.server)?.stop()
}
