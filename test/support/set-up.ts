/**
 * What the projects `service` and `slow` need before their first file, made once for both. Each of them loads this file
 * for itself, so the count of those that use it stands where both find it.
 */
import type { TestProject } from 'vitest/node'
import { sayWhichPoolerIsMissing } from './servers/pgbouncer.ts'
import { sayWhichS3ServersAreMissing } from './servers/s3-programs.ts'
import { type RunServer, startServer } from './servers/server.ts'

interface Shared {
  users: number
  server?: Promise<RunServer>
}

const place = globalThis as { grandlivreTests?: Shared }
place.grandlivreTests ??= { users: 0 }
const shared = place.grandlivreTests

export async function setup(project: TestProject): Promise<void> {
  shared.users += 1
  if (shared.server === undefined) {
    sayWhichS3ServersAreMissing()
    sayWhichPoolerIsMissing()
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
