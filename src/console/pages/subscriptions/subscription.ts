import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { inTransaction } from '../../../db/pool.ts'
import { type DeliveryState, deliveryStates } from '../../../webhooks/dispatch/delivery.ts'
import { countNumbers, oldestNumber, readNumbered } from '../../../webhooks/sequence/numbered.sql.ts'
import { type DeliveryRecord, listDeliveries } from '../../../webhooks/staff.sql.ts'
import { readLateness } from '../../../webhooks/standing.sql.ts'
import { duration, facts, integer, table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { idOf, onceForm } from '../parts/forms.ts'
import { notice } from '../parts/notices.ts'
import { outside } from '../parts/outside.ts'
import { beforeIn, choice, field, pageOf, pager } from '../parts/paging.ts'
import { failedOf, scopeOf, stateOf } from './list.ts'
import {
  countUnnumbered,
  pendingMax,
  readShown,
  type ShownSubscription,
  type Unnumbered,
  unnumberedMax,
} from './subscriptions.sql.ts'

/** Deliveries of a page. */
const deliveriesMax = 25

/** @throws {Refusal} if the path names none */
export async function subscriptionOf(context: PageContext): Promise<ShownSubscription> {
  const id = idOf(context, 'id', 'subscription')
  const found = await readShown(context.owner, id)
  if (found) return found
  throw new Refusal(404, `There is no subscription ${id}`)
}

export const subscriptionPage: Page = {
  path: '/subscriptions/:id',
  title: 'Subscription',
  render: async (context) => {
    const found = await subscriptionOf(context)
    const { id } = found
    const state = stateIn(context)
    const before = beforeIn(context)
    const { deliveries, ...waiting } = await inTransaction(context.owner, async (client) => ({
      unnumbered: await countUnnumbered(client, id),
      numberedWaiting: await countNumbers(client, id, found.collected),
      oldestAt: await readOldest(client, found),
      lateSeconds: await readLateness(client, id),
      deliveries: await listDeliveries(client, {
        subscriptionId: id,
        state,
        ...(before === undefined ? {} : { before }),
        most: deliveriesMax + 1,
      }),
    }))
    const { rows, last } = pageOf(deliveries, deliveriesMax)
    const heads = [
      'Id',
      { number: 'Events' },
      'Numbers',
      'State',
      { number: 'Attempts' },
      'Answer',
      'Made',
      'Ended',
    ]
    return html`<h1>Subscription ${id}</h1>
${notice(context)}
${subscriptionFacts(context, found)}
${lag(context, found, waiting)}
${acts(context, found)}
<form method="get" action="/console/subscriptions/${id}" class="filter">
${field('Deliveries in the state', choice('state', deliveryStates, state, 'any'))}<button>Show</button>
</form>
${table(
  'Deliveries, the newest first',
  heads,
  rows.map((each) => deliveryRow(context, id, each)),
  'No such delivery is kept.',
)}
${pager(context, 'before', last?.id)}`
  },
}

/** @throws {Refusal} */
function stateIn({ query }: PageContext): DeliveryState | undefined {
  const given = query.get('state') || undefined
  const state = deliveryStates.find((each) => each === given)
  if (state === given) return state
  throw new Refusal(400, `state must be one of: ${deliveryStates.join(', ')}`)
}

/** When the first event after the last delivery happened, if it has a number: epoch milliseconds. */
async function readOldest(
  client: Parameters<typeof readNumbered>[0],
  { id, numbered, collected }: ShownSubscription,
): Promise<number | undefined> {
  if (numbered === collected) return undefined
  const [event] = await readNumbered(client, id, (await oldestNumber(client, id, Number(collected))) - 1, 1)
  return event?.createdAt
}

function subscriptionFacts(context: PageContext, found: ShownSubscription): Html {
  const { partnerCode, level, postUrl, onEvents, createdAt, lastSuccessAt } = found
  return facts([
    ['State', stateOf(context, found)],
    ['Partner', html`<a href="/console/partners/${partnerCode}">${partnerCode}</a>`],
    ['Made by', level === 'staff' ? 'staff' : `a token of level ${level}`],
    ['Of', scopeOf(found)],
    ['Events', onEvents.join(', ')],
    ['Address', postUrl === null ? 'none: its events are read by number' : outside(postUrl, 2048)],
    ['Created', time(createdAt, context)],
    ['Last success', time(lastSuccessAt, context)],
  ])
}

interface Waiting {
  unnumbered: Unnumbered
  /** Events with numbers: fewer than the numbers themselves after a failover, which leaves a gap. */
  numberedWaiting: number
  /** Of the first of them that is kept: epoch milliseconds. */
  oldestAt: number | undefined
  /** As metrics and their alert count; undefined if nothing is to be sent. */
  lateSeconds: number | undefined
}

function lag(
  context: PageContext,
  { numbered, collected, pending, pendingSince, failed }: ShownSubscription,
  { unnumbered, numberedWaiting, oldestAt, lateSeconds }: Waiting,
): Html {
  const since = [pendingSince, oldestAt, unnumbered.since].find((each) => each !== null && each !== undefined)
  const oldest =
    since === undefined || since === null
      ? html`<span class="none">nothing waits</span>`
      : html`${duration(Date.now() - new Date(since).getTime())} ago, ${time(new Date(since), context)}`
  const more = unnumbered.events > unnumberedMax
  const count = `${more ? 'more than ' : ''}${integer(numberedWaiting + Math.min(unnumbered.events, unnumberedMax))}`
  return html`<h2>Lag</h2>${facts([
    ['Events that wait for a delivery', count],
    ['Deliveries that wait', pending > pendingMax ? `more than ${pendingMax}` : String(pending)],
    ['Oldest undelivered', oldest],
    ['Late by', lateSeconds === undefined ? 'nothing' : duration(lateSeconds * 1000)],
    ['Last number given', integer(numbered)],
    ['Last number in a delivery', integer(collected)],
    ['Failed deliveries', failedOf({ failed })],
  ])}`
}

function acts(context: PageContext, { id, state, postUrl, failed, collected }: ShownSubscription): Html {
  const base = `/console/subscriptions/${id}`
  const links = [
    state === 'disabled'
      ? html`<a class="button" href="${base}/enable">Enable</a>`
      : html`<a class="button" href="${base}/disable">Disable</a>`,
    failed > 0 && postUrl !== null
      ? html`<a class="button" href="${base}/replay-failed">Send failed deliveries again</a>`
      : '',
  ]
  const ping =
    postUrl === null
      ? ''
      : onceForm(
          context,
          `/subscriptions/${id}/ping`,
          html`<p class="buttons"><button>Ping</button> sends one event to the address at once</p>`,
        )
  const replay =
    postUrl === null || collected === '0'
      ? ''
      : html`<h3>Send events again, by their numbers</h3>
${onceForm(
  context,
  `/subscriptions/${id}/replay`,
  html`<div class="filter">${field('From', number('from', collected))}${field('To', number('to', collected))}<button>Send again</button></div>
<p>At most ${integer(limits.replayedEventsMax)} at once.</p>`,
)}`
  return html`<h2>Acts</h2><p class="buttons">${links}</p>${ping}${replay}`
}

function number(name: string, value: string): Html {
  return html`<input name="${name}" required inputmode="numeric" pattern="[0-9]{1,15}" value="${value}" autocomplete="off">`
}

function deliveryRow(context: PageContext, subscriptionId: string, each: DeliveryRecord): Html {
  const { id, events, firstSequence, lastSequence, state, isReplay, attempts, createdAt, finishedAt } = each
  const numbers = firstSequence === null ? '' : `${firstSequence} to ${lastSequence}`
  const ended =
    finishedAt === null ? html`next ${time(each.nextAttemptAt, context)}` : time(finishedAt, context)
  return html`<tr><th scope="row"><a href="/console/subscriptions/${subscriptionId}/deliveries/${id}">${id}</a></th>
<td class="number">${events}</td><td>${numbers}</td><td>${state}${isReplay ? ', again' : ''}</td><td class="number">${attempts}</td>
<td>${each.status ?? (each.error === null ? '' : outside(each.error, 80))}</td><td>${time(createdAt, context)}</td><td>${ended}</td></tr>`
}
