import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { inTransaction } from '../../../db/pool.ts'
import { deliveryList } from '../../../lists/deliveries.ts'
import { subscriptionFacts } from '../../../lists/subscriptions.ts'
import { readBacklog } from '../../../webhooks/backlog.ts'
import { deliveryStates } from '../../../webhooks/dispatch/delivery.ts'
import { countedMax, readSubscription, type SubscriptionRecord } from '../../../webhooks/staff.sql.ts'
import { integer } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { factList } from '../parts/cells.ts'
import { idOf, onceForm } from '../parts/forms.ts'
import { choiceFilter, filterForm, pagedTable, readFilters } from '../parts/list-page.ts'
import { notice } from '../parts/notices.ts'
import { field } from '../parts/paging.ts'

/** Deliveries of a page. */
const deliveriesMax = 25

const filters = { state: choiceFilter('Deliveries in the state', deliveryStates) }

/** @throws {Refusal} if the path names none */
export async function subscriptionOf(context: PageContext): Promise<SubscriptionRecord> {
  const id = idOf(context, 'id', 'subscription')
  const found = await readSubscription(context.owner, id, countedMax)
  if (found) return found
  throw new Refusal(404, `There is no subscription ${id}`)
}

export const subscriptionPage: Page = {
  path: '/subscriptions/:id',
  title: 'Subscription',
  render: async (context) => {
    const found = await subscriptionOf(context)
    const { id } = found
    const values = readFilters(context, filters)
    const backlog = await inTransaction(context.owner, (client) => readBacklog(client, found, countedMax))
    const filtered = { subscriptionId: id, ...values }
    return html`<h1>Subscription ${id}</h1>
${notice(context)}
${factList(context, subscriptionFacts(found, backlog))}
${acts(context, found)}
${filterForm(`/subscriptions/${id}`, filters, values)}
${await pagedTable(context, deliveryList, filtered, { most: deliveriesMax })}`
  },
}

function acts(context: PageContext, { id, state, postUrl, failed, collected }: SubscriptionRecord): Html {
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
