/**
 * Reads the events of a subscription by their numbers (docs/spec/webhooks.md#reading-events). No event comes twice,
 * and gaps are reported.
 */
import type { Notification, NumberedNotification } from './api/routes.ts'
import { clientError } from './errors.ts'
import type { Answer } from './http/answer.ts'
import { numberOf, type Requests } from './requests.ts'

export interface NumberedEvent {
  /**
   * Counts 1, 2, 3 and so on in each subscription. Store it with the results of the event, and pass it as the next
   * `after`.
   */
  sequence: number
  event: Notification
}

export interface EventPage {
  /** At least one event, in ascending order. Numbers are consecutive, except for gaps that were reported to `onGap`. */
  events: NumberedEvent[]
  /** The last number of the subscription at the time of this page. */
  latest: number
  /**
   * The epoch in which these events were numbered. Numbers jump when it changes. Undefined from a service of version
   * 0.2.0.
   */
  epoch: number | undefined
  /** Ranges of numbers whose events were erased with their folder, including both ends. */
  erased: [first: number, last: number][]
}

/** Numbers that are missing, including both ends. Numbers of events that were erased with their folder are no gap. */
export interface EventGap {
  from: number
  to: number
  /**
   * The epoch that began with this gap: a server took the place of another, which may have lost events. Ask each ledger
   * for what changed (`since`). Undefined if no epoch began, for example because events were erased with their folder.
   */
  epoch: number | undefined
}

export interface EventOptions {
  /** The number of the last event that was processed; 0 before the first. */
  after: number
  /** The `epoch` of the page with that number. With it, a reader that starts again notices that a server was lost. */
  epoch?: number | undefined
  /** Most events in one answer, 1 to 1,000. Default: 100. */
  limit?: number
  /** Seconds for which the service holds a request until there is a new event, 0 to 30. Default: 30. */
  wait?: number
  /** Ends the iteration without an error. */
  signal?: AbortSignal | undefined
  /**
   * Called for missing numbers; afterwards reading goes on. Without it, gaps at a new epoch are ignored, and other gaps
   * throw EVENTS-MISSING.
   */
  onGap?(missing: EventGap): void | Promise<void>
}

const mostWaitSeconds = 30

/**
 * Reads events in the pages in which the service sends them.
 * @throws {GrandlivreError} ERR-EVENTS-EXPIRED with `details.oldest` if events after the number are gone;
 *   EVENTS-MISSING with `details.from` and `details.to` for a gap within an epoch, unless there is `onGap`
 */
export async function* readEventPages(
  requests: Requests,
  subscriptionId: string | number,
  options: EventOptions,
): AsyncGenerator<EventPage> {
  const { limit = 100, wait = mostWaitSeconds, signal } = options
  const path = `/webhook/${encodeURIComponent(subscriptionId)}/events`
  let { after } = options
  let lastEpoch = options.epoch
  if (!Number.isSafeInteger(after) || after < 0)
    throw clientError('INVALID-OPTION', 'after must be a whole number, 0 before the first event')
  while (!signal?.aborted) {
    const query = { after, limit, wait }
    const answered = await requests
      .json({ path, query, signal, heldMs: wait * 1000 })
      .catch((error: unknown) => {
        if (!signal?.aborted) throw error
      })
    if (!answered) return
    const page = pageOf(answered.answer, answered.value as NumberedNotification[])
    const { epoch } = page
    const begun = epoch === lastEpoch ? undefined : epoch
    // A reader that waited for `after` would lose every event up to that number. In a new epoch it can wait, because the
    // numbers jump beyond `after`.
    if (page.latest < after && (begun === undefined || lastEpoch === undefined))
      throw clientError(
        'INVALID-OPTION',
        `after is ${after}, and the last event of the subscription has the number ${page.latest}: it is the number of ` +
          'another subscription, or the service was restored to an earlier state',
      )
    // The service leaves out numbers without an error only if an epoch began or their events were erased.
    const events = await checkNumbers(page, after, begun, options)
    if (events.length === 0) continue
    after = events.at(-1)!.sequence
    lastEpoch = epoch
    yield { ...page, events }
  }
}

function pageOf(answer: Answer, numbered: NumberedNotification[]): EventPage {
  const { 'webhook-epoch': epoch, 'webhook-erased': erased = '' } = answer.headers
  return {
    events: numbered.map(({ sequence, event }) => ({ sequence: Number(sequence), event })),
    latest: numberOf(answer, 'x-latest-sequence'),
    epoch: epoch === undefined ? undefined : numberOf(answer, 'webhook-epoch'),
    erased: [...erased.matchAll(/(\d+)(?:-(\d+))?/g)].map(([, first, last = first]) => [
      Number(first),
      Number(last),
    ]),
  }
}

/** Drops events that came before: the service sends no event twice, but a proxy may. */
async function checkNumbers(
  { events, erased }: Pick<EventPage, 'events' | 'erased'>,
  after: number,
  begun: number | undefined,
  { onGap }: EventOptions,
) {
  const fresh: NumberedEvent[] = []
  let last = after
  for (const each of events) {
    if (each.sequence <= last) continue
    last = erased.find(([first, end]) => first <= last + 1 && last < end)?.[1] ?? last
    if (each.sequence > last + 1) {
      const missing = { from: last + 1, to: each.sequence - 1, epoch: fresh.length === 0 ? begun : undefined }
      if (!onGap && missing.epoch === undefined) throw gap(missing)
      await onGap?.(missing)
    }
    last = each.sequence
    fresh.push(each)
  }
  return fresh
}

function gap({ from, to }: EventGap) {
  const numbers = from === to ? `Event ${from} is` : `Events ${from} to ${to} are`
  return clientError('EVENTS-MISSING', `${numbers} missing`, { details: { from, to } })
}
