/** A command that is interrupted, or loses its database, leaves neither rows nor a server. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { environment } from '../support/process.ts'
import { copyCluster } from '../support/servers/own-database.ts'
import { until } from '../support/until.ts'

let folder: string
let dataDir: string
let child: ChildProcess
let complaint: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
  dataDir = join(folder, 'data')
  await copyCluster(dataDir)
  // Large enough to outlast every test here.
  const words = ['src/cli.ts', 'seed', '--movements', '5000000']
  const env = { ...environment, DATA_DIR: dataDir }
  child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  complaint = ''
  child.stderr!.on('data', (chunk: Buffer) => (complaint += chunk))
})

afterEach(async () => {
  child.kill('SIGKILL')
  const left = await postmasterPid()
  if (left !== undefined) process.kill(left, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
  expect(left, 'no server is left running').toBeUndefined()
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s: the server stops, and the exit code names the signal', async (signal, exitCode) => {
  await loading()
  child.kill(signal)
  const [code] = await once(child, 'close')
  expect(code).toBe(exitCode)
  expect(complaint).toContain('Interrupted: what was not finished is undone\n')
  await expect(access(join(dataDir, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
})

test('on a server that others use, an interrupted command ends its transaction and leaves the server running', async () => {
  await loading()
  const database = await startEmbeddedDatabase({ dataDir })
  child.kill('SIGINT')
  await once(child, 'close')
  const client = new pg.Client(database.ownerUrl)
  await client.connect()
  await until(async () => (await client.query(seeding)).rows.length === 0)
  expect((await client.query('select from grandlivre.folders')).rows).toEqual([])
  await client.end()
  await database.stop()
})

test('a lost database is reported in one line that says what to do', async () => {
  await loading()
  process.kill((await postmasterPid())!, 'SIGINT')
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  expect(complaint).toMatch(
    /^The database could not go on \(.+\): what was not finished is undone\. Try again; if it was about to end, look first whether it was done$/m,
  )
  // No process waits for a server that was stopped from outside.
  await until(async () => (await postmasterPid()) === undefined)
})

const seeding = `select from pg_stat_activity where application_name = 'grandlivre seed'`

/** Resolves when the command has begun to load. */
async function loading(): Promise<void> {
  await until(async () => {
    const lock = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '')
    const port = lock.split('\n')[3]
    if (!port) return false
    const { ownerPassword } = JSON.parse(await readFile(join(dataDir, 'postgres.json'), 'utf8'))
    const client = new pg.Client(`postgres://grandlivre:${ownerPassword}@127.0.0.1:${port}/grandlivre`)
    client.on('error', () => {})
    try {
      await client.connect()
      const active = `${seeding} and state = 'active' and query ilike 'copy grandlivre.movements%'`
      return (await client.query(active)).rows.length > 0
    } catch {
      return false // It is still starting.
    } finally {
      await client.end()
    }
  })
}

async function postmasterPid(): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.split('\n')[0])
}
