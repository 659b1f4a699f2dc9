/**
 * One folder for the whole run, in which the temporary folders of all tests lie, and one PostgreSQL, with a migrated
 * database that the tests' databases are copied from. An interrupted run leaves none of it (interrupted-run.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../../src/db/embedded/embedded.ts'
import { migrate } from '../../../src/db/migrations/migrate.ts'

export interface DatabaseServer {
  ownerUrl: string
  serviceUrl: string
}

declare module 'vitest' {
  interface ProvidedContext {
    databaseServer: DatabaseServer
  }
}

export const templateName = 'grandlivre_template'

let folder: string | undefined
let server: EmbeddedDatabase | undefined
let cleaner: ChildProcess | undefined

export async function setup(project: TestProject): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  // Open to the user nobody, as whom PostgreSQL runs where the tests run as root.
  await chmod(folder, 0o755)
  cleaner = startCleaner(folder)
  // For the processes of the tests, and theirs.
  process.env['TMPDIR'] = folder
  server = await startEmbeddedDatabase({ dataDir: join(folder, 'data'), durable: false })
  const { ownerUrl, serviceUrl } = server
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  await client.query(`create database ${templateName}`)
  await client.end()
  await migrate(withDatabase(ownerUrl, templateName))
  project.provide('databaseServer', { ownerUrl, serviceUrl })
}

export async function teardown(): Promise<void> {
  await server?.stop()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  cleaner?.kill()
}

/** Of a group of its own, as Ctrl-C reaches all of the terminal's. */
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

/** The same login, another database of the server. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
