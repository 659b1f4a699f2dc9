/** Subscriptions with their deliveries, what staff can do with them, and the events that they get. */
import { html } from 'hono/html'
import { recordAct } from '../../acts/act.ts'
import {
  attemptsOf,
  disabledReason,
  disableWebhook,
  enableWebhook,
  lockWebhook,
  replayFailed,
  replayNumbered,
  subscriptionOf,
  subscriptionRecord,
} from '../../acts/subscriptions.ts'
import { codePattern } from '../../auth/third-parties.sql.ts'
import { limits } from '../../config.ts'
import { readId } from '../../db/literal.ts'
import { inTransaction } from '../../db/pool.ts'
import { eventKinds } from '../../events/kinds.ts'
import {
  attemptList,
  deliveryList,
  eventList,
  subscriptionFacts,
  subscriptionList,
} from '../../lists/subscriptions.ts'
import { deliveryStates } from '../../webhooks/dispatch/delivery.ts'
import { type Pinged, preparePing, sendPing } from '../../webhooks/owner/ping.ts'
import {
  countedMax,
  readBacklog,
  type SubscriptionRecord,
  subscriptionStates,
} from '../../webhooks/staff.sql.ts'
import { field, integer, lineField } from '../elements.ts'
import type { Html, Page, PageContext, Route } from '../page.ts'
import { actAction, askedAct, idOf, notice, onceAction, onceForm } from './parts/acts.ts'
import { answerText, cellHtml, factList, foreign, listTable } from './parts/cells.ts'
import {
  choiceFilter,
  type Filter,
  filterForm,
  listPage,
  pagedTable,
  readFilters,
} from './parts/list-page.ts'

/** Maximum number of deliveries on a page. */
const deliveriesMax = 25

const partnerFilter: Filter = {
  label: 'Code of the partner',
  input: (name, value) =>
    html`<input name="${name}" value="${value ?? ''}" maxlength="32" autocomplete="off">`,
  read: (text) => codePattern.exec(text.toUpperCase())?.[0],
  takes: 'the code of a partner: up to 32 of A to Z, 0 to 9, - and _',
}

const idFilter = (label: string): Filter => ({
  label,
  input: (name, value) =>
    html`<input name="${name}" value="${value ?? ''}" inputmode="numeric" pattern="[0-9]{1,16}" size="16" autocomplete="off">`,
  read: readId,
  takes: 'an id: 1 to 16 digits',
})

const deliveryFilters = { state: choiceFilter('Deliveries in the state', deliveryStates) }

/** @throws {Refused} if there is no such subscription */
const subscriptionAt = (context: PageContext) => subscriptionOf(context.owner, idOf(context), countedMax)

const subscriptionPage: Page = {
  path: '/subscriptions/:id',
  title: 'Subscription',
  render: async (context) => {
    const found = await subscriptionAt(context)
    const { id } = found
    const values = readFilters(context, deliveryFilters)
    const backlog = await inTransaction(context.owner, (client) => readBacklog(client, found, countedMax))
    const filtered = { subscriptionId: id, ...values }
    return html`<h1>Subscription ${id}</h1>
${notice(context)}
${factList(context, subscriptionFacts(found, backlog))}
${subscriptionActs(context, found)}
${filterForm(`/subscriptions/${id}`, deliveryFilters, values)}
${await pagedTable(context, deliveryList, filtered, { most: deliveriesMax })}`
  },
}

function subscriptionActs(
  context: PageContext,
  { id, state, postUrl, failed, collected }: SubscriptionRecord,
): Html {
  const button = (path: string, text: string) =>
    html`<a class="button" href="/console/subscriptions/${id}/${path}">${text}</a>`
  const links = [
    state === 'disabled' ? button('enable', 'Enable') : button('disable', 'Disable'),
    failed > 0 && postUrl !== null ? button('replay-failed', 'Send failed deliveries again') : '',
  ]
  const number = (label: string, name: string) =>
    field(
      label,
      html`<input name="${name}" required inputmode="numeric" pattern="[0-9]{1,15}" value="${collected}" autocomplete="off">`,
    )
  const ping = html`<p class="buttons"><button>Ping</button> sends one event to the address at once</p>`
  const numbers = html`<div class="filter">${number('From', 'from')}${number('To', 'to')}<button>Send again</button></div>
<p>At most ${integer(limits.replayedEventsMax)} at once.</p>`
  return html`<h2>Acts</h2><p class="buttons">${links}</p>
${postUrl === null ? '' : onceForm(context, `/subscriptions/${id}/ping`, ping)}
${
  postUrl === null || collected === 0
    ? ''
    : html`<h3>Send events again, by their numbers</h3>
${onceForm(context, `/subscriptions/${id}/replay`, numbers)}`
}`
}

const deliveryPage: Page = {
  path: '/subscriptions/:id/deliveries/:delivery',
  title: 'Delivery',
  render: async (context) => {
    const [id, delivery] = [idOf(context), idOf(context, 'delivery')]
    const most = limits.shownAttemptsMax
    const attempts = await attemptsOf(context.owner, id, delivery, most)
    return html`<h1>Delivery ${delivery}</h1>
<p>To <a href="/console/subscriptions/${id}">subscription ${id}</a></p>
${listTable(context, attemptList, attempts, { caption: `Attempts: the newest ${most}` })}`
  },
}

/** A ping is not one of `src/acts/`, because its event is sent after the transaction. */
const pingSubscription = onceAction('/subscriptions/:id/ping', async (context) => {
  const id = idOf(context)
  const { database, deliveries, masterKeys } = context.services
  const { isSuspended, ...prepared } = await inTransaction(context.owner, async (client) => {
    const locked = await lockWebhook(client, id)
    const allowed = await preparePing(client, locked)
    await recordAct(client, { staff: context.staff, act: 'webhook ping', ...subscriptionRecord(locked) })
    return { ...allowed, isSuspended: locked.isSuspended }
  })
  const pinged = await sendPing({ database, deliveries, masterKeys }, id, prepared)
  const unsentReason = pinged.disabled?.reason ?? (isSuspended ? 'suspended' : null)
  return {
    title: `Ping of subscription ${id}`,
    main: pingResult(context, id, { ...pinged, postUrl: prepared.postUrl, unsentReason }),
  }
})

function pingResult(
  context: PageContext,
  id: string,
  pinged: Pinged & { postUrl: string; unsentReason: string | null },
): Html {
  const { postUrl, at, status, latencyMs, error, answer, unsentReason } = pinged
  const isAccepted = status !== null && status >= 200 && status < 300
  const verdict = isAccepted
    ? 'The receiver accepted the event.'
    : 'The receiver did not accept the event: a delivery would be tried again later.'
  return html`<h1>Ping of subscription ${id}</h1>
<p class="${isAccepted ? 'note' : 'problem'}" role="status">${verdict}</p>
${factList(context, {
  Address: { foreign: postUrl, most: 2048 },
  Sent: { at: new Date(at) },
  Status: status === null ? 'no answer' : String(status),
  After: `${latencyMs} ms`,
  Error: foreign(error, 500),
  'Beginning of the answer': answerText(answer, limits.shownAnswerBytes),
  Deliveries: unsentReason === null ? 'are sent' : ['are not sent: ', { foreign: unsentReason }],
})}
<p><a href="/console/subscriptions/${id}">Back to subscription ${id}</a></p>`
}

export const subscriptionRoutes: readonly Route[] = [
  listPage(
    { path: '/subscriptions', title: 'Subscriptions' },
    subscriptionList,
    { state: choiceFilter('State', subscriptionStates), partner: partnerFilter },
    { fixed: { counted: countedMax } },
  ),
  subscriptionPage,
  deliveryPage,
  listPage({ path: '/events', title: 'Events' }, eventList, {
    schema: idFilter('Schema'),
    folder: idFilter('Folder'),
    name: choiceFilter('Kind', eventKinds, 'a kind of event'),
  }),
  actAction({ path: '/subscriptions/:id/replay', act: replayNumbered }),
  pingSubscription,
  ...askedAct({
    path: '/subscriptions/:id/enable',
    title: 'Enable a subscription',
    act: enableWebhook,
    ask: async (context) => ({
      title: `Enable subscription ${(await subscriptionAt(context)).id}`,
      says: html`<p>Deliveries go on where they stopped, in order. If its partner no longer needs the events since then, you can skip them. Skipped events are sent only if you send them again later.</p>`,
      fields: html`<p><label><input type="checkbox" name="latest" value="yes"> Skip what was not delivered yet</label></p>`,
    }),
  }),
  ...askedAct({
    path: '/subscriptions/:id/disable',
    title: 'Disable a subscription',
    act: disableWebhook,
    ask: async (context) => ({
      title: `Disable subscription ${(await subscriptionAt(context)).id}`,
      says: html`<p>Nothing is sent until it is enabled. What happens meanwhile waits, and its events can be read by number.</p>`,
      fields: lineField(
        'Reason, for its partner and other staff',
        'reason',
        html` required value="${disabledReason}"`,
      ),
    }),
  }),
  ...askedAct({
    path: '/subscriptions/:id/replay-failed',
    title: 'Send failed deliveries again',
    act: replayFailed,
    ask: async (context) => {
      const { id, failed } = await subscriptionAt(context)
      const count = cellHtml(context, { count: failed, most: countedMax })
      return {
        title: `Send the failed deliveries of subscription ${id} again`,
        says: html`<p>Failed deliveries: ${count}. Each is sent with its stored events and numbers, beside new deliveries and without a promised order. The receiver may have seen some of them.</p>`,
      }
    },
  }),
]
