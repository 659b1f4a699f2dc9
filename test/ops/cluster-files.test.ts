/** Patroni and HAProxy of these versions accept the files of `ops/patroni/`. */
import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseUser } from '../../src/db/embedded/programs.ts'
import { postgresTools } from '../support/guides/postgres-tools.ts'
import { missingOfCluster, patroniEnvironment, patroniFiles } from '../support/ops/patroni.ts'

// Patroni checks that something listens at the address of etcd.
const etcd = createServer()
beforeAll(() => new Promise<void>((resolve) => etcd.listen(0, '127.0.0.1', resolve)))
afterAll(() => etcd.close())

const run = async (program: string, words: string[], env: Record<string, string>) => {
  const options = { ...databaseUser, env: { ...patroniEnvironment, ...env }, cwd: '/' }
  const { stdout, stderr } = await promisify(execFile)(program, words, options)
  return stdout + stderr
}

test.skipIf(missingOfCluster.length > 0)(
  'patroni.yml is valid with the environment that it names',
  async () => {
    const { port } = etcd.address() as { port: number }
    const output = await run(
      'python3',
      ['-m', 'patroni', '--validate-config', join(patroniFiles, 'patroni.yml')],
      {
        PATRONI_NAME: 'node1',
        PATRONI_ETCD3_HOSTS: `127.0.0.1:${port}`,
        PATRONI_RESTAPI_LISTEN: '127.0.0.1:8008',
        PATRONI_RESTAPI_CONNECT_ADDRESS: '192.0.2.1:8008',
        PATRONI_POSTGRESQL_LISTEN: '127.0.0.1:5432',
        PATRONI_POSTGRESQL_CONNECT_ADDRESS: '192.0.2.1:5432',
        PATRONI_POSTGRESQL_DATA_DIR: '/tmp/grandlivre-no-such-folder',
        PATRONI_POSTGRESQL_BIN_DIR: postgresTools,
        PATRONI_SUPERUSER_PASSWORD: 'secret',
        PATRONI_REPLICATION_PASSWORD: 'secret',
      },
    )
    expect(output).toBe('')
  },
)

test.skipIf(missingOfCluster.length > 0)('haproxy.cfg is valid with three nodes', async () => {
  const nodes = [1, 2, 3].flatMap((n) => [
    [`NODE${n}`, `192.0.2.${n}:5432`],
    [`NODE${n}_API`, '8008'],
  ])
  const output = await run('haproxy', ['-c', '-f', join(patroniFiles, 'haproxy.cfg')], {
    WRITE: '127.0.0.1:6000',
    REPLICAS: '127.0.0.1:6001',
    ...Object.fromEntries(nodes),
  })
  expect(output).toContain('Configuration file is valid')
  expect(output).not.toContain('WARNING')
})
