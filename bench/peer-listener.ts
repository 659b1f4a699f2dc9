/** The HTTP stack of the service around another way of making the answer. Runs in a process of the peer's own. */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import type pg from 'pg'
import { createPool, withStartupOptions } from '../src/db/pool.ts'
import type { YearOfFolder } from './dataset.ts'

/** A peer gets the year as a message, listens, and answers with its address. It ends with the bench. */
export function listenAsPeer(
  answer: (year: YearOfFolder, pool: pg.Pool) => ReadableStream<Uint8Array>,
): void {
  process.once('disconnect', () => process.exit())
  process.once('message', (year: YearOfFolder) => {
    const pool = peerPool(year)
    const app = new Hono()
    app.get('/movements', (c) => c.body(answer(year, pool), 200, { 'Content-Type': 'application/json' }))
    serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
      process.send?.({ url: `http://127.0.0.1:${port}/movements` })
    })
  })
}

/** Connections bound to the tenant from the start, so that a peer needs no transaction. */
export function peerPool({ databaseUrl, schemaId }: YearOfFolder): pg.Pool {
  const url = withStartupOptions(databaseUrl, `-c grandlivre.schema_id=${schemaId} ${peerOptions}`)
  return createPool(url, { max: 2, applicationName: 'grandlivre bench' })
}

/** As the service reads: see src/export-thread.ts. */
const peerOptions = '-c max_parallel_workers_per_gather=0 -c random_page_cost=1.1 -c work_mem=32MB'
