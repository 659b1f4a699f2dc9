/** pg_dump and its like, of the same version as the embedded PostgreSQL, which does not bring them. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Their folder. */
export const postgresTools = resolve(
  import.meta.dirname,
  '../../../.cache/postgres/embedded_postgres/pginstall/bin',
)

export const arePostgresToolsInstalled = existsSync(join(postgresTools, 'pg_basebackup'))

/** Warns once per run. */
export function warnIfPostgresToolsAreMissing(): void {
  if (!arePostgresToolsInstalled)
    console.warn('No test of backup and restore: pg_dump is not in .cache/postgres, see .ci/run')
}
