/** One PostgreSQL for the whole run, with a migrated database that the tests' databases are copied from. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../src/db/embedded.ts'
import { migrate } from '../../src/db/migrate.ts'

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

let dataDir: string | undefined
let server: EmbeddedDatabase | undefined

export async function setup(project: TestProject): Promise<void> {
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  // Open to the user nobody, as whom PostgreSQL runs where the tests run as root.
  await chmod(dataDir, 0o755)
  server = await startEmbeddedDatabase({ dataDir, durable: false })
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
  if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true })
}

/** The same login, another database of the server. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
