/**
 * One folder for the whole run that contains the temporary folders of all tests, and one PostgreSQL with a
 * migrated database from which the tests' databases are copied. An interrupted run leaves none of it
 * (interrupted-run.ts).
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmbeddedDatabase } from '../../../src/db/embedded/embedded.ts'
import { migrate } from '../../../src/db/migrations/migrate.ts'
import { ask } from './database.ts'

export interface DatabaseServer {
  ownerUrl: string
  serviceUrl: string
}

declare module 'vitest' {
  interface ProvidedContext {
    databaseServer: DatabaseServer
    cluster: string
  }
}

export const templateName = 'grandlivre_template'

export interface RunServer {
  urls: DatabaseServer
  /** See copyCluster. */
  cluster: string
  stop(): Promise<void>
}

/** Twice what a run has been seen to use. */
const memoryBytes = 4 * 1024 ** 3

/** Makes the folder the temporary folder of this process, and thus of the tests and of what they start. */
export async function startServer(): Promise<RunServer> {
  const folder = await mkdtemp(join(await quickestFolder(), 'grandlivre-test-'))
  // Accessible to the user nobody, as whom PostgreSQL runs if the tests run as root.
  await chmod(folder, 0o755)
  const cleaner = startCleaner(folder)
  process.env['TMPDIR'] = folder
  const cluster = join(folder, 'cluster')
  const first = await startEmbeddedDatabase({ dataDir: cluster, durable: false })
  await migrate(first.ownerUrl)
  await first.stop()
  const dataDir = join(folder, 'data')
  await copyFolder(cluster, dataDir)
  await askForPlainPasswords(join(dataDir, 'postgres', 'pg_hba.conf'))
  const server = await startEmbeddedDatabase({ dataDir, durable: false })
  const { ownerUrl, serviceUrl } = server
  await ask(withDatabase(ownerUrl, 'postgres'), `create database ${templateName} template grandlivre`)
  // The first connection to a database reads its whole catalog into a file. Copies get that file, and rows of the catalog
  // whose transactions need no look: 15 ms for the first connection to a copy instead of 25.
  const template = withDatabase(ownerUrl, templateName)
  const [{ catalog }] = await ask(
    template,
    `select string_agg(oid::regclass::text, ', ') as catalog from pg_class
     where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' and not relisshared`,
  )
  await ask(template, `vacuum (freeze) ${catalog}`)
  await ask(template, 'select')
  return {
    urls: { ownerUrl, serviceUrl },
    cluster,
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
      cleaner.kill()
    },
  }
}

/**
 * Memory where Linux has room for it, unless TMPDIR names a folder. The tests create hundreds of databases of 300
 * files each: on an ext4 disk with four tests at work, one costs 110 to 450 ms of processor time, in memory 20 ms.
 */
async function quickestFolder(): Promise<string> {
  if (process.env['TMPDIR'] !== undefined) return tmpdir()
  const memory = '/dev/shm'
  const disk = await statfs(memory).catch(() => undefined)
  return disk && disk.bavail * disk.bsize >= memoryBytes ? memory : tmpdir()
}

/**
 * The tests open thousands of connections. Passwords are still checked, but without the messages of SCRAM, which take
 * 1.5 of the 8.5 ms of processor time of each. Embedded databases of tests keep SCRAM.
 */
async function askForPlainPasswords(path: string): Promise<void> {
  const rules = await readFile(path, 'utf8')
  await writeFile(path, rules.replaceAll(/\bscram-sha-256$/gm, 'password'))
}

/** In its own process group, because Ctrl-C reaches the whole group of the terminal. */
function startCleaner(path: string): ChildProcess {
  const program = fileURLToPath(new URL('interrupted-run.ts', import.meta.url))
  const child = spawn(process.execPath, [program, path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  return child
}

/** The same login on another database of the server. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

/** Keeps owners: under root, the files of a cluster belong to the user nobody. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to])
}
