/**
 * Serves every subscription that has something to be sent, in whatever process comes to it first: looks for such
 * subscriptions when it is told of new events, when a retry is due and every other second in any case, takes the lock
 * of each, and drains it.
 *
 * A process that dies loses its locks with its connection, and another one finds what it left at its next look.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '../config.ts'
import { whileDelivering } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { findWork, movePositions, nextAttemptAt, type Work } from './deliveries.sql.ts'
import { type DrainParts, drain } from './drain.ts'
import { Lead } from './lead.ts'

export interface DispatcherParts extends DrainParts {
  /** As the service role, to PostgreSQL itself. */
  serviceUrl: string
}

type Lane = 'slow' | 'swift'

/** A subscription that this process is serving. */
interface Served {
  lane: Lane
  /** It was seen to have something to send, which its drain may have missed at its end. */
  again: boolean
  ended: Promise<void>
}

/** While the database is away, or one of our own mistakes comes back. */
const reportMs = 10_000
/** How often positions behind which nothing matches are moved to the present. */
const moveMs = 60_000

export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #closing = new AbortController()
  readonly #cutOff = new AbortController()
  readonly #served = new Map<string, Served>()
  /** Subscriptions whose last answer to this process took long, or never came. */
  readonly #slow = new Set<string>()
  /** Whether subscriptions wait until one of those being served gives way. */
  #waiting = { slow: false, swift: false }
  /** Schemas that have events since the last look; null: look at all. */
  #news: Set<string> | null = null
  #wake = Promise.withResolvers<void>()
  #lead: Lead | undefined
  #running: Promise<void> = Promise.resolve()
  #lookedAtAll = Number.NEGATIVE_INFINITY
  #moved = Number.NEGATIVE_INFINITY
  #reported = Number.NEGATIVE_INFINITY

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
    await Promise.all([...this.#served.values()].map(({ ended }) => ended))
    clearTimeout(cutOff)
    await this.#lead?.close()
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      this.#wake = Promise.withResolvers()
      let sleepMs: number
      try {
        sleepMs = await this.#look()
      } catch (error) {
        this.#report(error)
        this.#news = null
        sleepMs = limits.deliveryRetryMs
      }
      if (this.#closing.signal.aborted) return
      const timer = setTimeout(this.#wake.resolve, sleepMs)
      await this.#wake.promise
      clearTimeout(timer)
    }
  }

  /** @returns how long there is nothing to do unless somebody says so, milliseconds */
  async #look(): Promise<number> {
    const { database, now } = this.#parts
    const lead = this.#lead ?? (await this.#open())
    const started = performance.now()
    // Without news it is time for a retry, or for what nobody told of.
    const isNews = this.#news !== null && this.#news.size > 0
    const isLate = started - this.#lookedAtAll >= limits.deliveryPollMs
    const schemaIds = isNews && !isLate ? [...this.#news!] : null
    this.#news = new Set()
    const { work, nextAt } = await whileDelivering(database, async (client) => ({
      work: await findWork(client, now(), schemaIds),
      nextAt: await nextAttemptAt(client, now()),
    }))
    if (schemaIds === null) this.#lookedAtAll = started
    await this.#serveAll(lead, work)
    if (started - this.#moved >= moveMs) {
      await whileDelivering(database, movePositions)
      this.#moved = started
    }
    const pollMs = this.#lookedAtAll + limits.deliveryPollMs - performance.now()
    return Math.max(0, Math.min(pollMs, (nextAt ?? Number.POSITIVE_INFINITY) - now()))
  }

  async #open(): Promise<Lead> {
    const told = (schemaId: string) => {
      this.#news?.add(schemaId)
      this.#wake.resolve()
    }
    // What happened until now was told to nobody.
    this.#news = null
    const lead = await Lead.open(this.#parts.serviceUrl, told)
    this.#lead = lead
    lead.lost.then(() => {
      this.#lead = undefined
      this.#lookAtAll()
    })
    return lead
  }

  #lookAtAll(): void {
    this.#news = null
    this.#wake.resolve()
  }

  /** As many as there is room for, in no order: where room is short, each comes to its turn. */
  async #serveAll(lead: Lead, work: Work[]): Promise<void> {
    const lanes = new Map<string, Lane>()
    const count = { slow: 0, swift: 0 }
    for (const { lane } of this.#served.values()) count[lane] += 1
    this.#waiting = { slow: false, swift: false }
    for (const { subscriptionId, failing } of shuffled(work, this.#parts.random)) {
      const served = this.#served.get(subscriptionId)
      if (served) {
        served.again = true
        continue
      }
      const lane = failing || this.#slow.has(subscriptionId) ? 'slow' : 'swift'
      const isFull =
        count.slow + count.swift >= limits.deliveriesAtOnceMax ||
        (lane === 'slow' && count.slow >= limits.slowDeliveriesAtOnceMax)
      if (isFull) {
        this.#waiting[lane] = true
        continue
      }
      count[lane] += 1
      lanes.set(subscriptionId, lane)
    }
    if (lanes.size === 0) return
    for (const subscriptionId of await lead.lock([...lanes.keys()])) {
      if (this.#closing.signal.aborted) return
      this.#serve(lead, subscriptionId, lanes.get(subscriptionId)!)
    }
  }

  #serve(lead: Lead, subscriptionId: string, lane: Lane): void {
    const served: Served = { lane, again: false, ended: Promise.resolve() }
    this.#served.set(subscriptionId, served)
    const end = async () => {
      await lead.unlock(subscriptionId)
      this.#served.delete(subscriptionId)
      if (served.again || lead.isLost || this.#waiting.slow || this.#waiting.swift) this.#lookAtAll()
    }
    served.ended = this.#drain(lead, subscriptionId, lane).finally(end)
  }

  async #drain(lead: Lead, subscriptionId: string, lane: Lane): Promise<void> {
    try {
      await drain(this.#parts, {
        subscriptionId,
        goesOn: () => !this.#closing.signal.aborted && !lead.isLost && !this.#waiting[lane],
        answered: (tookMs) => {
          if (tookMs > limits.deliverySlowMs) this.#slow.add(subscriptionId)
          else this.#slow.delete(subscriptionId)
        },
        stopped: this.#cutOff.signal,
      })
    } catch (error) {
      // What was cut off is sent again.
      if (this.#cutOff.signal.aborted) return
      if (error instanceof AppError) return this.#report(error)
      this.#parts.log('subscription.troubled', { subscriptionId, error })
      // A mistake that comes back at once, such as a secret that cannot be read, must not keep the process busy.
      await delay(reportMs, undefined, { signal: this.#closing.signal }).catch(() => {})
    }
  }

  #report(error: unknown): void {
    const at = performance.now()
    if (at - this.#reported < reportMs) return
    this.#reported = at
    this.#parts.log('dispatcher.troubled', { error })
  }
}

function shuffled<Item>(items: Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
