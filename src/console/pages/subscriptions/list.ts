import { html } from 'hono/html'
import { codePattern } from '../../../auth/third-parties.ts'
import { readId } from '../../../db/id.ts'
import { integer, table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { outside } from '../parts/outside.ts'
import { choice, field, pageOf, pageRows, pager } from '../parts/paging.ts'
import {
  failedMax,
  listShown,
  type ShownSubscription,
  type SubscriptionState,
  subscriptionStates,
} from './subscriptions.sql.ts'

const heads = [
  'Id',
  'Partner',
  'Of',
  'State',
  'Waiting since',
  { number: 'Failed' },
  { number: 'Delivered/numbered' },
  'Address',
]

export const subscriptionsPage: Page = {
  path: '/subscriptions',
  title: 'Subscriptions',
  navigation: 'Subscriptions',
  render: async (context) => {
    const { owner, query } = context
    const { state, partner, after } = filterIn(query)
    const found = await listShown(owner, { state, partner, after, most: pageRows + 1 })
    const { rows, last } = pageOf(found)
    const nothing = 'There is no such subscription.'
    return html`<h1>Subscriptions</h1>
<form method="get" action="/console/subscriptions" class="filter">
${field('State', choice('state', subscriptionStates, state, 'any'))}
${field('Code of the partner', html`<input name="partner" value="${partner ?? ''}" maxlength="32" autocomplete="off">`)}
<button>Show</button>
</form>
${table(
  'Subscriptions, by id',
  heads,
  rows.map((each) => row(context, each)),
  nothing,
)}
${pager(context, 'after', last?.id)}`
  },
}

/** @throws {Refusal} that names the parameter */
function filterIn(query: URLSearchParams): {
  state: SubscriptionState | undefined
  partner: string | undefined
  after: string
} {
  const given = query.get('state') || undefined
  const state = subscriptionStates.find((each) => each === given)
  if (state !== given) throw new Refusal(400, `state must be one of: ${subscriptionStates.join(', ')}`)
  const partner = query.get('partner')?.trim().toUpperCase() || undefined
  if (partner !== undefined && !codePattern.test(partner))
    throw new Refusal(400, 'partner must be the code of a partner: up to 32 of A to Z, 0 to 9, - and _')
  const after = readId(query.get('after') ?? '0')
  if (after === undefined)
    throw new Refusal(400, 'after is not a place in this list: begin with its first page')
  return { state, partner, after }
}

function row(context: PageContext, each: ShownSubscription): Html {
  const { id, partnerCode, collected, numbered, postUrl, pendingSince } = each
  const waiting = pendingSince === null ? '' : time(pendingSince, context)
  return html`<tr><th scope="row"><a href="/console/subscriptions/${id}">${id}</a></th>
<td><a href="/console/partners/${partnerCode}">${partnerCode}</a></td><td>${scopeOf(each)}</td>
<td>${stateOf(context, each)}</td><td>${waiting}</td><td class="number">${failedOf(each)}</td>
<td class="number">${integer(collected)}/${integer(numbered)}</td><td class="text">${outside(postUrl, 60)}</td></tr>`
}

export function failedOf({ failed }: Pick<ShownSubscription, 'failed'>): string {
  return failed > failedMax ? `more than ${integer(failedMax)}` : integer(failed)
}

export function scopeOf({ schemaId, firmId, folderIds, level }: ShownSubscription): string {
  if (schemaId === null) return 'all schemas'
  if (folderIds.length === 0) return level === 'firm' ? `firm ${firmId}` : `schema ${schemaId}`
  const shown = folderIds.slice(0, 5).join(', ')
  const more = folderIds.length > 5 ? ` and ${folderIds.length - 5} more` : ''
  return `folder${folderIds.length > 1 ? 's' : ''} ${shown}${more}`
}

export function stateOf(context: PageContext, each: ShownSubscription): Html {
  const { state, failingSince, disabledAt, disabledReason } = each
  if (state === 'failing') return html`<strong>failing</strong> since ${time(failingSince, context)}`
  if (state === 'disabled')
    return html`<strong>disabled</strong> ${time(disabledAt, context)}: ${outside(disabledReason)}`
  if (state === 'paused') return html`<strong>paused</strong>: its partner is disconnected`
  if (state === 'suspended') return html`<strong>suspended</strong>: no token that sees it is left`
  return state === 'no address' ? html`read by number, nothing is posted` : html`enabled`
}
