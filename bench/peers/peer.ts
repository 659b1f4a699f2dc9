/** What the peers in TypeScript share: the requested year, connections, the HTTP stack of the service. */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import type pg from 'pg'
import { createPool, withStartupOptions } from '../../src/db/pool.ts'
import type { YearOfFolder } from '../dataset.ts'

/** Listens, prints its address, and ends with the bench. */
export function listenAsPeer(
  answer: (year: YearOfFolder, pool: pg.Pool) => ReadableStream<Uint8Array>,
): void {
  const year = yearOfPeer()
  const pool = peerPool(year)
  const app = new Hono()
  app.get('/', (c) => c.body(answer(year, pool), 200, { 'Content-Type': 'application/json' }))
  serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => announce(port))
}

export function announce(port: number): void {
  process.stdin.once('end', () => process.exit()).resume()
  process.stdout.write(`http://127.0.0.1:${port}/\n`)
}

export function yearOfPeer(): YearOfFolder {
  const setting = (name: string): string => {
    const value = process.env[name]
    if (value === undefined) throw new Error(`${name} is missing: the bench starts this program`)
    return value
  }
  return {
    databaseUrl: setting('DATABASE_URL'),
    schemaId: setting('SCHEMA_ID'),
    folderId: setting('FOLDER_ID'),
    exerciceId: setting('EXERCICE_ID'),
  }
}

/** Connections bound to the tenant from the start, so that a peer needs no transaction. */
export function peerPool({ databaseUrl, schemaId }: YearOfFolder): pg.Pool {
  const url = withStartupOptions(databaseUrl, `-c grandlivre.schema_id=${schemaId} ${peerOptions}`)
  return createPool(url, { max: 2, applicationName: 'grandlivre bench' })
}

/** Settings with which the service reads: see src/export-thread.ts. */
const peerOptions = '-c max_parallel_workers_per_gather=0 -c random_page_cost=1.1 -c work_mem=32MB'
