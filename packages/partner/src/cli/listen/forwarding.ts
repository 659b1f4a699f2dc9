/**
 * Reads the events of a subscription as they happen, and sends them on in order. As with real deliveries there is one
 * request at a time, and later events wait until this one is accepted; but the pauses between attempts are those of a
 * developer who is mending the receiver.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { deliveryEventsMax } from '../../../../contract/src/webhook-delivery.ts'
import type { EventGap } from '../../client/events.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { isAccepted } from '../answer-text.ts'
import { type Batch, batchesOf } from './batches.ts'
import { type LocalAnswer, postLocally } from './local-post.ts'

/** Before the second and later attempts; the last one repeats. */
const pausesMs = [1_000, 2_000, 5_000, 10_000, 15_000]
/** A receiver that asks for more time waits no longer than this. */
const pauseMsMax = 60_000

export interface Receiver {
  target: URL
  /** The partner secret, and that of the subscription. */
  secret: string
  signingSecret: string
  /** Of the sender, for `user-agent`. */
  version: string
}

export interface Attempted extends LocalAnswer {
  batch: Batch
  /** From 1. */
  attempt: number
  isReplay: boolean
  /** Until the next attempt; null if the receiver accepted, or if it is not repeated. */
  pauseMs: number | null
}

export function forwarding(
  ledger: Grandlivre,
  subscriptionId: number,
  receiver: Receiver,
  shown: {
    attempted: (attempted: Attempted) => void
    nothingToReplay: () => void
    jumped: (missing: EventGap) => void
  },
  signal: AbortSignal,
) {
  /** Cuts the pause before the next attempt; undefined while there is none. */
  let hurry: (() => void) | undefined
  let last: Batch | undefined
  let turn: Promise<void> = Promise.resolve()
  /** One request at a time: a replay waits for the delivery in flight. */
  const inTurn = (send: () => Promise<void>) => {
    turn = turn.then(send)
    return turn
  }

  const attempt = async (batch: Batch, id: string, number: number, isReplay: boolean): Promise<Attempted> => {
    const { target, secret, signingSecret, version } = receiver
    const { body, sequence, epoch } = batch
    const delivered = { id, body, date: Date.now(), secret, signingSecrets: [signingSecret], sequence, epoch }
    const answer = await postLocally(target, delivered, version, signal)
    const attempted = { ...answer, batch, attempt: number, isReplay, pauseMs: pauseAfter(answer, number) }
    if (isReplay) attempted.pauseMs = null
    shown.attempted(attempted)
    return attempted
  }

  const deliver = async (batch: Batch): Promise<void> => {
    const id = deliveryId()
    for (let number = 1; ; number += 1) {
      const { pauseMs } = await attempt(batch, id, number, false)
      if (pauseMs === null) break
      await pause(pauseMs)
    }
    last = batch
  }

  const pause = async (ms: number): Promise<void> => {
    const ending = new AbortController()
    hurry = () => ending.abort()
    const waited = delay(ms, undefined, { signal: AbortSignal.any([signal, ending.signal]) })
    await waited.catch(() => {})
    hurry = undefined
    signal.throwIfAborted()
  }

  return {
    /** Forwards until that many events are accepted, or for ever. @throws the reason of the signal */
    async run(countMax = Number.POSITIVE_INFINITY): Promise<void> {
      const limit = Math.min(deliveryEventsMax, countMax)
      let left = countMax
      const { jumped: onGap } = shown
      for await (const { events, epoch } of ledger.eventPages(subscriptionId, {
        after: 0,
        limit,
        signal,
        onGap,
      })) {
        for (const batch of batchesOf({ events: events.slice(0, left), epoch }))
          await inTurn(() => deliver(batch))
        left -= events.length
        if (left <= 0) return
      }
      signal.throwIfAborted()
    },
    /** Tries again at once what waits for its next attempt; otherwise sends the last delivery again. */
    again() {
      if (hurry) return hurry()
      const batch = last
      if (!batch) return shown.nothingToReplay()
      // As a replay of the service: another id of the delivery, with the same events and numbers.
      inTurn(async () => void (await attempt(batch, deliveryId(), 1, true))).catch(() => {})
    },
  }
}

/** @returns null if the receiver accepted */
function pauseAfter({ status, retryAfterMs }: LocalAnswer, attempt: number): number | null {
  if (isAccepted(status)) return null
  const planned = pausesMs[Math.min(attempt, pausesMs.length) - 1]!
  return Math.min(Math.max(planned, retryAfterMs), pauseMsMax)
}

/** Decimal digits that no other delivery of this machine has: receivers may drop what they know by its id. */
function deliveryId(): string {
  return `${Date.now()}${String(randomInt(1000)).padStart(3, '0')}`
}
