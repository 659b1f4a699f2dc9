/** Patroni, etcd and HAProxy, with the files of `ops/patroni/`. */
import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { databaseUser } from '../../../src/db/embedded/programs.ts'
import { postgresTools } from '../guides/postgres-tools.ts'
import { isPgBouncerInstalled } from '../servers/pgbouncer.ts'

export const patroniFiles = resolve(import.meta.dirname, '../../../ops/patroni')

/** Debian installs HAProxy outside the PATH of ordinary users; `.ci/run` installs Patroni below `.cache/`. */
export const patroniEnvironment = {
  PATH: `${process.env['PATH']}:/usr/sbin`,
  PYTHONPATH: resolve(import.meta.dirname, '../../../.cache/patroni'),
}

/** Names of the programs that are not installed. */
export const missingOfCluster: string[] = [
  ...['etcd', 'haproxy'].filter((name) => !runs(name, name === 'etcd' ? '--version' : '-v')),
  ...(runs('bash', '-c', `python3 -c 'import patroni, psycopg'`) ? [] : ['Patroni']),
  ...(runs(join(postgresTools, 'pg_rewind'), '--version') ? [] : ['pg_rewind']),
  ...(isPgBouncerInstalled ? [] : ['PgBouncer']),
]

/** Warns once per run. */
export function warnIfClusterIsMissing(): void {
  if (missingOfCluster.length > 0)
    console.warn(`No tests of a cluster: ${missingOfCluster.join(', ')} not installed, see .ci/run`)
}

/** Tries it as the user of the databases, who may be able to run fewer programs than root. */
function runs(program: string, ...words: string[]): boolean {
  try {
    execFileSync(program, words, { ...databaseUser, stdio: 'ignore', env: patroniEnvironment, cwd: '/' })
    return true
  } catch {
    return false
  }
}
