/**
 * Delivers to every subscription that has something to send; the first process to find it does. It searches for such
 * subscriptions on a notification, when a retry is due, and every two seconds; it gives each a slot in turn, takes its
 * lock, and delivers to it.
 *
 * A process that dies loses its locks with its connection, and another one finds what it left at its next look.
 *
 * Third parties share everything that is scarce: searches (rounds), slots, connections (fair turns), and the statements
 * of the session. What one of them does to its own receivers delays no other.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { limits } from '../../config.ts'
import { whileDelivering } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { type DeliverParts, deliver } from './deliver.ts'
import { FairTurns } from './fair-turns.ts'
import { ListenerSession } from './listener-session.ts'
import { Rounds, type Search } from './rounds.ts'
import { type Candidate, Slots } from './slots.ts'
import { findDue, findWork, movePositions, nextRetryAt } from './work.sql.ts'

export interface DispatcherParts extends DeliverParts {
  /** As the service role. */
  database: Pool
  /** The same, to PostgreSQL itself. */
  serviceUrl: string
}

interface Ready extends Candidate {
  /** Null: of all schemas. */
  schemaId: string | null
}

/** A subscription that this process is serving. */
interface Served {
  /** It may have something to send that its delivery has left, or missed at its end. */
  again: boolean
  ended: Promise<void>
}

/** While the database is away, or one of our own mistakes comes back. */
const reportMs = 10_000
/** How often positions behind which nothing matches are moved to the present. */
const moveMs = 60_000
/** Who has a turn at the connections beside third parties, which are numbers. */
const ownTurns = { poll: 'poll', move: 'move' } as const

export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #closing = new AbortController()
  readonly #cutOff = new AbortController()
  /**
   * Of what is known to be new, and of whatever there may be, every other second. On the same rounds an event waited until
   * everything of its third party was examined: for 2.2 seconds, at the median, where that has 4,000 subscriptions.
   */
  readonly #rounds = { notified: new Rounds(limits.searchPauseMs), polled: new Rounds(limits.searchPauseMs) }
  readonly #slots = new Slots<Ready>(limits.deliveriesAtOnceMax)
  readonly #turns = new FairTurns(limits.deliveryConnectionsMax)
  readonly #served = new Map<string, Served>()
  /** Subscriptions whose last answer to this process took long, or never came. */
  readonly #slow = new Set<string>()
  #wake = Promise.withResolvers<void>()
  #session: ListenerSession | undefined
  #running: Promise<void> = Promise.resolve()
  #moving: Promise<void> = Promise.resolve()
  #polledAllAt = Number.NEGATIVE_INFINITY
  #movedAt = Number.NEGATIVE_INFINITY
  #reportedAt = Number.NEGATIVE_INFINITY
  /** Retries up to the first moment are known; the next one is due at the second. Epoch milliseconds. */
  #retries = { known: 0, next: Number.POSITIVE_INFINITY }

  private constructor(parts: DispatcherParts) {
    this.#parts = parts
  }

  /** Delivers from now on. A database that is away is waited for. */
  static start(parts: DispatcherParts): Dispatcher {
    const dispatcher = new Dispatcher(parts)
    dispatcher.#running = dispatcher.#run()
    return dispatcher
  }

  /**
   * Begins no more requests, and gives those on their way `limits.deliveryStopMs` to be answered. What is cut off then is
   * sent again by the next process.
   */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake.resolve()
    const cutOff = setTimeout(() => this.#cutOff.abort(), limits.deliveryStopMs)
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
        sleepMs = limits.deliveryRetryMs
      }
      if (this.#closing.signal.aborted) return
      const timer = setTimeout(this.#wake.resolve, sleepMs)
      await this.#wake.promise
      clearTimeout(timer)
    }
  }

  /** How long there is nothing to do unless somebody says so. */
  #sleepMs(): number {
    const at = performance.now()
    const pollMs = this.#polledAllAt + limits.deliveryPollMs - at
    const searchMs = this.#nextSearchAt() - at
    return Math.max(0, Math.min(pollMs, searchMs, this.#retries.next - this.#parts.now()))
  }

  async #poll(): Promise<void> {
    if (!this.#session) await this.#open()
    const started = performance.now()
    const isLate = started - this.#polledAllAt >= limits.deliveryPollMs
    if (isLate) this.#rounds.polled.notify(null)
    const isRetry = this.#parts.now() >= this.#retries.next
    if (isLate || isRetry || this.#nextSearchAt() <= started)
      await this.#transact(ownTurns.poll, async (client) => {
        if (isLate || isRetry) await this.#findRetries(client)
        // What the first one finds must not keep the other from going on.
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
    // What happened until now was told to nobody.
    this.#rounds.notified.restart()
    const session = await ListenerSession.open(this.#parts.serviceUrl, notify)
    this.#session = session
    session.lost.then(() => {
      this.#session = undefined
      this.#wake.resolve()
    })
  }

  async #findRetries(client: PoolClient): Promise<void> {
    const now = this.#parts.now()
    for (const { thirdPartyId, schemaId } of await findDue(client, this.#retries.known, now))
      this.#rounds.notified.notifyOne(thirdPartyId, schemaId)
    const next = (await nextRetryAt(client, now)) ?? Number.POSITIVE_INFINITY
    this.#retries = { known: now, next }
  }

  async #search(client: PoolClient, rounds: Rounds, search: Search): Promise<void> {
    const cutOff = new Map<string, string>()
    for (const work of await findWork(client, this.#parts.now(), search, limits.searchSubscriptionsMax)) {
      const { subscriptionId, thirdPartyId, schemaId, failing, examined } = work
      const served = this.#served.get(subscriptionId)
      if (!examined) cutOff.set(thirdPartyId, subscriptionId)
      else if (served) served.again = true
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

  /** Third parties that have enough waiting. */
  #busy(): Set<string> {
    return this.#slots.withWaiting(limits.searchWaitingMax)
  }

  /** Beside the looks, in parts between which others have their turn. */
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
    return this.#turns.run(whose, () => whileDelivering(this.#parts.database, run))
  }

  /** Serves as many as there are slots for. */
  #fill(): void {
    const session = this.#session
    // The next connection finds those that wait again.
    if (!session || this.#closing.signal.aborted) return
    for (let next = this.#slots.assign(); next; next = this.#slots.assign()) this.#serve(session, next)
  }

  #serve(session: ListenerSession, ready: Ready): void {
    const { subscriptionId, thirdPartyId, schemaId } = ready
    const served: Served = { again: false, ended: Promise.resolve() }
    this.#served.set(subscriptionId, served)
    const end = () => {
      this.#served.delete(subscriptionId)
      this.#slots.release(ready)
      if (served.again || session.isLost) this.#rounds.notified.notifyOne(thirdPartyId, schemaId)
      this.#fill()
      this.#wake.resolve()
    }
    served.ended = this.#deliverLocked(session, ready, served).finally(end)
  }

  async #deliverLocked(session: ListenerSession, ready: Ready, served: Served): Promise<void> {
    const { subscriptionId } = ready
    if (!(await session.lock(subscriptionId))) return
    await this.#deliver(session, ready, served)
    await session.unlock(subscriptionId)
  }

  async #deliver(session: ListenerSession, ready: Ready, served: Served): Promise<void> {
    const { subscriptionId, thirdPartyId } = ready
    let hasSent = false
    try {
      await deliver(this.#parts, {
        subscriptionId,
        transact: (run) => this.#transact(thirdPartyId, run),
        mayContinue: () => {
          if (this.#closing.signal.aborted || session.isLost) return false
          const yields = hasSent && this.#slots.mustYield(ready)
          if (yields) served.again = true
          return !yields
        },
        onAttempt: (tookMs) => {
          hasSent = true
          if (tookMs > limits.deliverySlowMs) this.#slow.add(subscriptionId)
          else this.#slow.delete(subscriptionId)
        },
        stopped: this.#cutOff.signal,
      })
    } catch (error) {
      // What was cut off is sent again.
      if (this.#cutOff.signal.aborted) return
      if (error instanceof AppError) return this.#report(error)
      this.#parts.log('subscription.error', { subscriptionId, error })
      // A mistake that comes back at once, such as a secret that cannot be read, must not keep the process busy.
      await delay(reportMs, undefined, { signal: this.#closing.signal }).catch(() => {})
    }
  }

  #report(error: unknown): void {
    const at = performance.now()
    if (at - this.#reportedAt < reportMs) return
    this.#reportedAt = at
    this.#parts.log('dispatcher.error', { error })
  }
}
