/** The events of a subscription, read by number (docs/spec/webhooks.md#reading-events): none twice, no gap unseen. */
import type { Notification, NumberedNotification } from './api/routes.ts'
import { clientError } from './errors.ts'
import { numberOf, type Requests } from './requests.ts'

export interface NumberedEvent {
  /** 1, 2, 3 and so on in each subscription. Store it with what the event led to: it is the next `after`. */
  sequence: number
  event: Notification
}

export interface EventPage {
  /** Consecutive, ascending; at least one. */
  events: NumberedEvent[]
  /** The last number of the subscription at the time of this page. */
  latest: number
}

export interface EventOptions {
  /** The last number that was processed; 0 before the first event. */
  after: number
  /** Events in one answer, 1 to 1,000. Default: 100. */
  limit?: number
  /** Seconds that the service holds a request until there is something new, 0 to 30. Default: 30. */
  wait?: number
  /** Ends the iteration, without an error. */
  signal?: AbortSignal | undefined
  /** Called for numbers that were left out, both ends included: the subscription was moved to `latest`, for example. */
  onGap?(missing: { from: number; to: number }): void | Promise<void>
}

const mostWaitSeconds = 30

/** Waits for events for ever. */
export async function* readEvents(
  requests: Requests,
  subscriptionId: string | number,
  options: EventOptions,
): AsyncGenerator<NumberedEvent> {
  for await (const { events } of readEventPages(requests, subscriptionId, options)) yield* events
}

/**
 * The same, by answers of the service.
 * @throws {GrandlivreError} ERR-EVENTS-EXPIRED with `details.oldest` if events after the number are gone; EVENTS-MISSING
 *   with `details.from` and `details.to` for a gap, unless there is `onGap`
 */
export async function* readEventPages(
  requests: Requests,
  subscriptionId: string | number,
  options: EventOptions,
): AsyncGenerator<EventPage> {
  const { limit = 100, wait = mostWaitSeconds, signal } = options
  const path = `/webhook/${encodeURIComponent(subscriptionId)}/events`
  let { after } = options
  if (!Number.isSafeInteger(after) || after < 0)
    throw clientError('INVALID-OPTION', 'after must be a whole number, 0 before the first event')
  while (!signal?.aborted) {
    const page = await readPage(requests, path, { after, limit, wait }, signal)
    if (!page) return
    // To wait until the numbers get there would lose every event up to then.
    if (page.latest < after)
      throw clientError(
        'INVALID-OPTION',
        `after is ${after}, and the last event of the subscription has the number ${page.latest}: it is the number of ` +
          'another subscription, or the service was restored to an earlier state',
      )
    const events = await checkNumbers(page.events, after, options)
    if (events.length === 0) continue
    after = events.at(-1)!.sequence
    yield { events, latest: page.latest }
  }
}

/** @returns undefined once the signal is aborted */
async function readPage(
  requests: Requests,
  path: string,
  query: { after: number; limit: number; wait: number },
  signal: AbortSignal | undefined,
): Promise<EventPage | undefined> {
  try {
    const { answer, value } = await requests.json({ path, query, signal, heldMs: query.wait * 1000 })
    const events = (value as NumberedNotification[]).map(({ sequence, event }) => ({
      sequence: Number(sequence),
      event,
    }))
    return { events, latest: numberOf(answer, 'x-latest-sequence') }
  } catch (error) {
    if (signal?.aborted) return undefined
    throw error
  }
}

/** A number that was there before is left out: the service gives none twice, but a proxy may. */
async function checkNumbers(events: NumberedEvent[], after: number, { onGap }: EventOptions) {
  const fresh: NumberedEvent[] = []
  let last = after
  for (const each of events) {
    if (each.sequence <= last) continue
    if (each.sequence > last + 1) {
      const missing = { from: last + 1, to: each.sequence - 1 }
      if (!onGap) throw gap(missing)
      await onGap(missing)
    }
    last = each.sequence
    fresh.push(each)
  }
  return fresh
}

function gap(missing: { from: number; to: number }) {
  const { from, to } = missing
  const numbers = from === to ? `Event ${from} is` : `Events ${from} to ${to} are`
  return clientError('EVENTS-MISSING', `${numbers} missing`, { details: { ...missing } })
}
