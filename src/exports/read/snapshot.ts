/**
 * One state of the database, shared by two connections: everything that an export reads is consistent, whatever is
 * committed meanwhile. Both connections see one tenant and are read-only.
 *
 * An export takes both connections or none. Our own pools hold two for each export that a thread admits. A pooler may
 * have fewer sessions than all processes have exports: if it gave each export one session, all would wait for their
 * second. So an export with only one connection releases it after a moment, and tries again, until its time to wait is
 * over.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { limits } from '../../config.ts'
import { textLiteral } from '../../db/literal.ts'
import { unavailable, unavailableIfMissing } from '../../db/outage.ts'
import { connect, rollBack, setTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'

export interface Snapshot {
  first: pg.PoolClient
  second: pg.PoolClient
  /** The time of the snapshot: epoch milliseconds by the clock of the database. */
  at: number
  /**
   * Releases the connections. With an error it closes them instead: a connection that is still sending rows cannot be
   * reused, and closing it ends the query in the database. Only the first call counts.
   */
  close(error?: Error): Promise<void>
  /**
   * Ends this state after all its rows have been read, and begins the current state of the database on the same
   * connections.
   */
  next(schemaId: string): Promise<Snapshot>
}

/**
 * Decides whether a state of the database is acceptable. Its expression is part of the message that begins the
 * snapshot.
 */
export interface Fence<Shown = unknown> {
  /** An SQL expression without parameters. `accepts` gets its value. */
  expression: string
  /** Returns false to begin the snapshot again, with the state of that moment. Throws to give up. */
  accepts: (shown: Shown, client: pg.ClientBase) => Promise<boolean>
  /** Milliseconds that the database may take to begin the snapshot again. */
  beginMs: number
}

/** No two connections became free in time. The cause tells operators what to do. */
export class NotAdmitted extends AppError {
  constructor() {
    const cause = new Error(
      'No two sessions of the database were free for an export in time: raise default_pool_size of PgBouncer, or lower ' +
        'EXPORTS_PER_THREAD.',
    )
    super('ERR-UNAVAILABLE', {
      cause,
      message:
        'More exports are running than the database has connections for; repeat the request after a pause',
      headers: { 'Retry-After': '10' },
    })
  }
}

/** How long to wait for both connections, and how long to hold only one of them. */
const usualTiming = { waitMs: limits.exportWaitMs as number, halfMs: limits.halfSnapshotMs as number }

/**
 * Settings of exports. They hold for their transactions only, since a pooler may give their sessions to other clients
 * afterwards:
 * - A backend that sends nothing checks twice a second that its client is still connected, so a cancelled export ends.
 * - No parallel workers: they would take the cores that render, to scan a whole year in search of a month.
 * - Random pages have the cost of memory or flash. Otherwise the planner would prefer such scans.
 * - A sort of a large selection stays in memory.
 */
const exportSettings =
  'set local client_connection_check_interval = 500; set local max_parallel_workers_per_gather = 0; ' +
  `set local random_page_cost = 1.1; set local work_mem = '32MB'`

/**
 * Opens a snapshot in two round trips: the second connection needs the snapshot id of the first.
 * @throws {NotAdmitted} if the database has no two connections in time
 * @throws {AppError} ERR-UNAVAILABLE if it cannot be reached
 */
export async function openSnapshot<Shown>(
  pool: pg.Pool,
  schemaId: string,
  timing = usualTiming,
  fence?: Fence<Shown>,
): Promise<Snapshot> {
  const until = performance.now() + timing.waitMs
  for (;;) {
    const clients = await connectTwo(pool)
    const first = beginFirst(schemaId, fence)
    const waitMs = Math.max(1, until - performance.now())
    const answer = await beginBoth(clients, [first, beginOf(schemaId)], { ...timing, waitMs })
    const close = closing(clients)
    if (answer)
      return snapshotOf(clients, close, () => accepted(clients, close, begunOf<Shown>(answer), first, fence))
    // Exports that gave up at the same moment try again one after the other.
    await delay(Math.random() * timing.halfMs)
    if (performance.now() >= until) throw new NotAdmitted()
  }
}

interface BegunState<Shown> {
  snapshot: string
  at: string
  /** The value of the fence's expression, if there is a fence. */
  shown?: Shown
}

function closing(clients: ClientPair): Snapshot['close'] {
  let closed = false
  return async (error) => {
    if (closed) return
    closed = true
    let broken = error
    try {
      if (!error) await Promise.all(clients.map((client) => client.query('commit')))
    } catch (failure) {
      broken = failure as Error
      throw failure
    } finally {
      for (const client of clients) client.release(broken)
    }
  }
}

/** @param begin begins a state on both connections */
async function snapshotOf(
  clients: ClientPair,
  close: Snapshot['close'],
  begin: () => Promise<BegunState<unknown>>,
): Promise<Snapshot> {
  const [first, second] = clients
  try {
    const { at } = await begin()
    return {
      first,
      second,
      at: Number(at),
      close,
      next: (schemaId) => nextSnapshot(clients, close, schemaId),
    }
  } catch (error) {
    await close(error as Error)
    throw error
  }
}

/**
 * Begins the state of the first connection again until the fence accepts it; then the second connection takes part in
 * it.
 * @param begin the statements that the first connection has already answered with `begun`
 */
async function accepted<Shown>(
  [first, second]: ClientPair,
  close: Snapshot['close'],
  begun: BegunState<Shown>,
  begin: string,
  fence: Fence<Shown> | undefined,
): Promise<BegunState<Shown>> {
  const isAccepted = (shown: Shown) =>
    fence!.accepts(shown, first).catch(async (refusal) => {
      // The connections of a refused state are sound.
      await close()
      throw refusal
    })
  while (fence && !(await isAccepted(begun.shown!))) {
    // pg accepts this timeout for a single query; its types declare it only for a whole connection.
    const again = { text: `rollback; ${begin}`, query_timeout: fence.beginMs } as pg.QueryConfig
    begun = begunOf(await first.query(again))
  }
  await share(second, begun)
  return begun
}

/**
 * Begins the next state. Each connection always has a transaction; between two, a pooler might give its session to
 * others.
 */
function nextSnapshot(clients: ClientPair, close: Snapshot['close'], schemaId: string): Promise<Snapshot> {
  const [first, second] = clients
  return snapshotOf(clients, close, async () => {
    const begun = begunOf(await first.query(`commit; ${beginFirst(schemaId)}`))
    await share(second, begun, `commit; ${beginOf(schemaId)}; `)
    return begun
  }).catch((error) => {
    throw unavailableIfMissing(error)
  })
}

/** SQLSTATEs which say that the session of the snapshot has ended. */
const snapshotGone: (string | undefined)[] = ['22023', '42704', '55000']

/**
 * Makes the connection take part in the snapshot.
 * @param before statements that come first
 */
async function share(client: pg.ClientBase, { snapshot }: BegunState<unknown>, before = ''): Promise<void> {
  const text = `${before}set transaction snapshot ${textLiteral(snapshot)}`
  await client.query(text).catch((error: pg.DatabaseError) => {
    // The server ends sessions one after the other: the session of the snapshot ended first, and its state with it.
    throw snapshotGone.includes(error.code) ? unavailable(error) : error
  })
}

/** Reads the state from an answer to several statements, which the types of pg do not cover. */
function begunOf<Shown>(answer: pg.QueryResult): BegunState<Shown> {
  return (answer as unknown as pg.QueryResult<BegunState<Shown>>[]).at(-1)!.rows[0]!
}

function beginOf(schemaId: string): string {
  return `begin isolation level repeatable read read only; ${exportSettings}; ${setTenant(schemaId)}`
}

function beginFirst<Shown>(schemaId: string, fence?: Fence<Shown>): string {
  return `${beginOf(schemaId)};
    select pg_export_snapshot() as snapshot, floor(extract(epoch from now()) * 1000)::bigint as at
    ${fence ? `, ${fence.expression} as shown` : ''}`
}

type ClientPair = readonly [first: pg.PoolClient, second: pg.PoolClient]

/**
 * Begins both transactions at once, so that the two are adjacent in the queue of a pooler.
 * @returns undefined if they did not both begin in time; then both connections are released
 * @throws {AppError} ERR-UNAVAILABLE
 */
async function beginBoth(
  clients: ClientPair,
  texts: [first: string, second: string],
  timing: typeof usualTiming,
): Promise<pg.QueryResult | undefined> {
  const hasBegun = [false, false]
  const begins = texts.map(async (text, i) => {
    const answer = await clients[i]!.query(text)
    hasBegun[i] = true
    return answer
  })
  const timer = new AbortController()
  const after = (ms: number) => delay(ms, undefined, { signal: timer.signal }).catch(() => {})
  try {
    await Promise.race([...begins, after(timing.waitMs)])
    const both = Promise.all(begins)
    const answers = await Promise.race([both, after(Math.min(timing.halfMs, timing.waitMs))])
    if (answers) return answers[0]
    both.catch(() => {})
  } catch (error) {
    for (const client of clients) client.release(error as Error)
    throw unavailableIfMissing(error)
  } finally {
    timer.abort()
  }
  const late = new Error('no session of the pooler was free in time')
  await Promise.all(
    clients.map(async (client, i) => client.release(hasBegun[i] ? await rollBack(client) : late)),
  )
  return undefined
}

async function connectTwo(pool: pg.Pool): Promise<ClientPair> {
  const connecting = [connect(pool), connect(pool)] as const
  try {
    return await Promise.all(connecting)
  } catch (error) {
    for (const one of await Promise.allSettled(connecting))
      if (one.status === 'fulfilled') one.value.release()
    throw error
  }
}
