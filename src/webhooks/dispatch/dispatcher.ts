/**
 * Delivers events to subscriptions. Every process runs one dispatcher. It searches for subscriptions that have
 * something to send: on a notification, when a retry is due, and every two seconds. It assigns each one a slot in turn,
 * takes its advisory lock, and delivers to it.
 *
 * A killed process loses its connection and with it its locks; another process finds its work within two seconds, at
 * the next poll. A process that lost only the connection with its locks may still write through
 * another. Therefore every process locks the subscription's row before it records an attempt, and records it only if it
 * is the next one: at worst, two processes send the same stored bytes twice. A response that arrives while the database
 * is away is kept until it is back. So a restart of the database does not make any request repeat.
 *
 * No third party holds up another: everything scarce is shared by third party first, by subscription second. Searches
 * (rounds.ts) examine a hundred subscriptions of each third party at a time. Slots (slots.ts) always leave one for the
 * next third party. Connections (fair-turns.ts) go to the third party with the fewest running transactions. The
 * listener session answers all waiting lock requests with one statement. With plain queues,
 * 1,000 subscriptions whose receivers answer after 0.9 s delayed the events of another third party by 12 s. With 3,000
 * more whose receivers hang, only 100 of that third party's 3,000 events arrived within a minute of the last. Now its
 * median is 17 ms and its p99 is 63 ms beside all 4,000 (`npm run bench -- fairness`).
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { limits } from '../../config.ts'
import { whileDelivering } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { deliver, type Sender } from './deliver.ts'
import { FairTurns } from './fair-turns.ts'
import { ListenerSession } from './listener-session.ts'
import { Rounds, type Search } from './rounds.ts'
import { type Candidate, Slots } from './slots.ts'
import { findDue, findWork, movePositions, nextRetryAt } from './work.sql.ts'

interface DispatcherOptions extends Sender {
  /** Connects as the service role, to PostgreSQL itself. */
  database: Pool
  /** URL of the same database, also of PostgreSQL itself. */
  directUrl: string
}

/** A subscription that this process is delivering to. */
interface Served {
  /** Whether to search this subscription again when its delivery ends: it may have more to send. */
  mustSearchAgain: boolean
  ended: Promise<void>
}

/** Interval between reports of the same error, and pause after a bug. */
const reportMs = 10_000
/** How often positions that are far behind, with no event after them to deliver, are moved to the newest event. */
const moveMs = 60_000
/** Keys of the dispatcher's own transactions in FairTurns. The keys of third parties are numbers. */
const ownTurns = { poll: 'poll', move: 'move' } as const

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #closing = new AbortController()
  readonly #cutOff = new AbortController()
  /**
   * Two rounds: one searches schemas with a notification, at once; the other searches all schemas, every two seconds.
   * When both shared one round, an event waited until every subscription of its third party was examined: 2.2 seconds
   * at the median, with 4,000 subscriptions.
   */
  readonly #rounds: { notified: Rounds; polled: Rounds }
  readonly #slots = new Slots(limits.deliveriesAtOnceMax)
  readonly #turns = new FairTurns(limits.directConnectionsMax)
  readonly #served = new Map<string, Served>()
  /** Subscriptions whose last response to this process was slow or never came. */
  readonly #slow = new Set<string>()
  #wake = Promise.withResolvers<void>()
  #session: ListenerSession | undefined
  #running: Promise<void> = Promise.resolve()
  #moving: Promise<void> = Promise.resolve()
  #polledAllAt = Number.NEGATIVE_INFINITY
  #movedAt = Number.NEGATIVE_INFINITY
  #reportedAt = Number.NEGATIVE_INFINITY
  /** `known`: all retries due until then have been found. `next`: when the next retry is due. Epoch milliseconds. */
  #retries = { known: 0, next: Number.POSITIVE_INFINITY }

  private constructor(options: DispatcherOptions) {
    this.#options = options
    const { searchPauseMs } = options.timing
    this.#rounds = { notified: new Rounds(searchPauseMs), polled: new Rounds(searchPauseMs) }
  }

  /** Starts delivering. If the database is unreachable, waits for it. */
  static start(options: DispatcherOptions): Dispatcher {
    const dispatcher = new Dispatcher(options)
    dispatcher.#running = dispatcher.#run()
    return dispatcher
  }

  /**
   * Starts no more requests, and gives requests in flight `stopMs` (timing.ts) to finish. Requests that are then cut
   * off are repeated by the next process.
   */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake.resolve()
    const cutOff = setTimeout(() => this.#cutOff.abort(), this.#options.timing.stopMs)
    await this.#running
    await Promise.all([this.#moving, ...[...this.#served.values()].map(({ ended }) => ended)])
    clearTimeout(cutOff)
    await this.#session?.close()
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      this.#wake = Promise.withResolvers()
      let sleepMs: number
      try {
        await this.#poll()
        sleepMs = this.#sleepMs()
      } catch (error) {
        this.#report(error)
        this.#rounds.notified.restart()
        sleepMs = this.#options.timing.retryMs
      }
      if (this.#closing.signal.aborted) return
      const timer = setTimeout(this.#wake.resolve, sleepMs)
      await this.#wake.promise
      clearTimeout(timer)
    }
  }

  /** Milliseconds to sleep unless woken. */
  #sleepMs(): number {
    const at = performance.now()
    const pollMs = this.#polledAllAt + this.#options.timing.pollMs - at
    const searchMs = this.#nextSearchAt() - at
    return Math.max(0, Math.min(pollMs, searchMs, this.#retries.next - this.#options.now()))
  }

  async #poll(): Promise<void> {
    if (!this.#session) await this.#open()
    const started = performance.now()
    const isLate = started - this.#polledAllAt >= this.#options.timing.pollMs
    if (isLate) this.#rounds.polled.notify(null)
    const isRetry = this.#options.now() >= this.#retries.next
    if (isLate || isRetry || this.#nextSearchAt() <= started)
      await this.#transact(ownTurns.poll, async (client) => {
        if (isLate || isRetry) await this.#findRetries(client)
        // Computed once for both rounds: subscriptions that the first finds must not stop the second.
        const busy = this.#busy()
        for (const rounds of [this.#rounds.notified, this.#rounds.polled])
          for (const search of rounds.searches(started, busy)) await this.#search(client, rounds, search)
      })
    if (isLate) this.#polledAllAt = started
    if (started - this.#movedAt < moveMs) return
    this.#movedAt = started
    this.#moving = this.#movePositions().catch((error) => this.#report(error))
  }

  async #open(): Promise<void> {
    const notify = (schemaId: string) => {
      this.#rounds.notified.notify(schemaId)
      this.#wake.resolve()
    }
    // Notifications from before this session were missed, so everything is searched again.
    this.#rounds.notified.restart()
    const { directUrl, masterKeys } = this.#options
    const session = await ListenerSession.open(directUrl, masterKeys, notify)
    this.#session = session
    addAbortListener(session.lost, () => {
      this.#session = undefined
      this.#wake.resolve()
    })
  }

  async #findRetries(client: PoolClient): Promise<void> {
    const now = this.#options.now()
    for (const { thirdPartyId, schemaId } of await findDue(client, this.#retries.known, now))
      this.#rounds.notified.notifyOne(thirdPartyId, schemaId)
    const next = (await nextRetryAt(client, now)) ?? Number.POSITIVE_INFINITY
    this.#retries = { known: now, next }
  }

  async #search(client: PoolClient, rounds: Rounds, search: Search): Promise<void> {
    const cutOff = new Map<string, string>()
    for (const work of await findWork(client, this.#options.now(), search, limits.searchSubscriptionsMax)) {
      const { subscriptionId, thirdPartyId, schemaId, failing, examined } = work
      const served = this.#served.get(subscriptionId)
      if (!examined) cutOff.set(thirdPartyId, subscriptionId)
      else if (served) served.mustSearchAgain = true
      else {
        const isSlow = failing || this.#slow.has(subscriptionId)
        this.#slots.wait({ subscriptionId, thirdPartyId, schemaId, isSlow })
      }
    }
    rounds.searched(search, cutOff, performance.now())
    this.#fill()
  }

  #nextSearchAt(): number {
    const busy = this.#busy()
    return Math.min(this.#rounds.notified.dueAt(busy), this.#rounds.polled.dueAt(busy))
  }

  /** Third parties that already have enough subscriptions waiting for slots. */
  #busy(): Set<string> {
    return this.#slots.withWaiting(limits.searchWaitingMax)
  }

  /** Runs beside the polls, in parts, so that other transactions get their turn in between. */
  async #movePositions(): Promise<void> {
    let from: string | undefined = '0'
    while (from !== undefined && !this.#closing.signal.aborted) {
      const first: string = from
      from = await this.#transact(ownTurns.move, (client) =>
        movePositions(client, first, limits.searchSubscriptionsMax),
      )
    }
  }

  #transact<Result>(whose: string, run: (client: PoolClient) => Promise<Result>): Promise<Result> {
    return this.#turns.run(whose, () => whileDelivering(this.#options.database, run))
  }

  /** Delivers to as many subscriptions as there are slots. */
  #fill(): void {
    const session = this.#session
    // If there is no session, the next session finds the waiting subscriptions again.
    if (!session || this.#closing.signal.aborted) return
    for (let next = this.#slots.assign(); next; next = this.#slots.assign()) this.#serve(session, next)
  }

  #serve(session: ListenerSession, ready: Candidate): void {
    const { subscriptionId, thirdPartyId, schemaId } = ready
    const served: Served = { mustSearchAgain: false, ended: Promise.resolve() }
    this.#served.set(subscriptionId, served)
    const end = () => {
      this.#served.delete(subscriptionId)
      this.#slots.release(ready)
      if (served.mustSearchAgain || session.lost.aborted)
        this.#rounds.notified.notifyOne(thirdPartyId, schemaId)
      this.#fill()
      this.#wake.resolve()
    }
    served.ended = this.#deliver(session, ready, served).finally(end)
  }

  async #deliver(session: ListenerSession, ready: Candidate, served: Served): Promise<void> {
    const { subscriptionId, thirdPartyId } = ready
    if (!(await session.lock(subscriptionId))) return
    let hasSent = false
    try {
      await deliver(this.#options, {
        subscriptionId,
        transact: (run) => this.#transact(thirdPartyId, run),
        mayContinue: () => {
          if (this.#closing.signal.aborted || session.lost.aborted) return false
          const yields = hasSent && this.#slots.mustYield(ready)
          if (yields) served.mustSearchAgain = true
          return !yields
        },
        onAttempt: (tookMs) => {
          hasSent = true
          if (tookMs > this.#options.timing.slowMs) this.#slow.add(subscriptionId)
          else this.#slow.delete(subscriptionId)
        },
        stopped: this.#cutOff.signal,
      })
    } catch (error) {
      const isCutOff = this.#cutOff.signal.aborted
      // A delivery that was cut off is repeated later, by any process.
      if (error instanceof AppError && !isCutOff) this.#report(error)
      else if (!isCutOff) {
        this.#options.log('subscription.error', { subscriptionId, error })
        // A bug that recurs at once, such as an unreadable secret, must not keep the process busy.
        await delay(reportMs, undefined, { signal: this.#closing.signal }).catch(() => {})
      }
    }
    await session.unlock(subscriptionId)
  }

  #report(error: unknown): void {
    const at = performance.now()
    if (at - this.#reportedAt < reportMs) return
    this.#reportedAt = at
    this.#options.log('dispatcher.error', { error })
  }
}
