/**
 * The work of partners and writers all day: exports, small requests, changes, events, full exports with their download.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { editEntries } from '../../../bench/changes/edits.sql.ts'
import type { SeededFolder } from '../../../packages/sample/src/seed.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'

interface LoadParts {
  /** Address of the service. */
  url: string
  /** Headers with a company token of the folder. */
  headers: Record<string, string>
  folder: SeededFolder
  /** Connects to the primary as its owner. */
  owner: pg.Pool
}

/** How often each kind of work succeeded, and how often it failed. */
export type LoadCounts = Record<string, { done: number; failed: number }>

export type Load = ReturnType<typeof startLoad>

/** A hanging request is given up, as clients do. */
const requestMs = 60_000

export function startLoad(parts: LoadParts) {
  const stopped = new AbortController()
  const counts: LoadCounts = {}
  const works = worksOf(parts, stopped.signal)
  const running = Object.entries(works).map(async ([name, { everyMs, work }]) => {
    const count = { done: 0, failed: 0 }
    counts[name] = count
    while (!stopped.signal.aborted) {
      const isDone = await work().then(
        () => true,
        () => false,
      )
      if (stopped.signal.aborted) return
      if (isDone) count.done += 1
      else count.failed += 1
      await delay(everyMs, undefined, { signal: stopped.signal }).catch(() => {})
    }
  })
  return {
    counts,
    /** Stops the work. */
    stop: async () => {
      stopped.abort()
      await Promise.all(running)
    },
  }
}

interface Work {
  /** Pause after each piece of work. */
  everyMs: number
  /** Does one piece of work. Rejects if it failed. */
  work(): Promise<unknown>
}

function worksOf(parts: LoadParts, stopped: AbortSignal): Record<string, Work> {
  const { url, headers, folder, owner } = parts
  const { schemaId, folderId, exercices } = folder
  const exerciceId = exercices.at(-1)!.id
  const movements = `${url}/api/v1/mad/movements?version=1.0.0&idExercice=${exerciceId}`
  const get = async (address: string, own = headers): Promise<Response> => {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(requestMs)])
    const response = await fetch(address, { headers: own, signal })
    if (response.ok) return response
    await response.body?.cancel()
    throw new Error(`${response.status} ${address}`)
  }
  let cursor: string | undefined
  let edits = 0
  return {
    'movements as JSON': { everyMs: 700, work: async () => (await get(movements)).arrayBuffer() },
    'movements, compressed': {
      everyMs: 1_100,
      work: async () => (await get(movements, { ...headers, 'Accept-Encoding': 'zstd' })).arrayBuffer(),
    },
    accounts: {
      everyMs: 500,
      work: async () => (await get(`${url}/api/v1/mad/accounts?version=1.0.0`)).arrayBuffer(),
    },
    'token information': { everyMs: 100, work: async () => (await get(`${url}/api/v1/key/info`)).json() },
    'edits of the ledger': {
      everyMs: 1_500,
      work: async () => {
        edits += 1
        const year = { schemaId, folderId, exerciceId }
        await inTransaction(owner, (client) => editEntries(client, year as never, 5, edits))
      },
    },
    changes: {
      everyMs: 1_000,
      work: async () => {
        const since = cursor === undefined ? '' : `&since=${encodeURIComponent(cursor)}`
        const response = await get(`${movements}${since}`)
        cursor = response.headers.get('x-ledger-cursor') ?? undefined
        await response.arrayBuffer()
      },
    },
    events: {
      everyMs: 400,
      work: () =>
        inTransaction(owner, (client) =>
          publish(client, schemaId, [
            {
              name: 'document',
              operation: 'CREATE',
              folderId,
              data: { id: '1', kind: 'PF', name: 'invoice.pdf' },
            },
          ]),
        ),
    },
    'full exports': {
      everyMs: 10_000,
      work: async () => {
        // Without this, the previous export would answer triggers for an hour.
        await owner.query('update grandlivre.exports set latest = false where latest')
        const trigger = await get(`${url}/api/v1/mad/all?version=1.0.0&format=JSON`)
        const { id } = (await trigger.json()) as { id: string }
        for (;;) {
          const status = await get(`${url}/api/v1/mad/all/status?exportId=${id}`)
          const job = (await status.json()) as { status: string; url?: string; reason?: string }
          if (job.status === 'DONE') return (await get(job.url!, {})).arrayBuffer()
          if (job.status === 'FAILED') throw new Error(job.reason)
          await delay(500, undefined, { signal: stopped })
        }
      },
    },
  }
}
