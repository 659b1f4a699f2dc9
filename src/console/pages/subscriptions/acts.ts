/** What staff do to a subscription. */
import { html } from 'hono/html'
import { type Done, recordAct } from '../../../acts/act.ts'
import { lineCharactersMax } from '../../../acts/fields.ts'
import { replayFailed, replayNumbered } from '../../../acts/replays.ts'
import {
  disabledReason,
  disableOne,
  enableOne,
  lockOne,
  subscriptionRecord,
} from '../../../acts/subscriptions.ts'
import { limits } from '../../../config.ts'
import { inTransaction } from '../../../db/pool.ts'
import { type Pinged, preparePing, sendPing } from '../../../webhooks/owner/ping.ts'
import { countedMax } from '../../../webhooks/staff.sql.ts'
import { facts, time } from '../../elements.ts'
import type { Action, Html, PageContext } from '../../page.ts'
import { actAction, askedAct } from '../parts/acts.ts'
import { cellHtml } from '../parts/cells.ts'
import { idOf, onceAction } from '../parts/forms.ts'
import { answerText, outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'
import { subscriptionOf } from './subscription.ts'

const back = ({ details }: Done) => `/subscriptions/${details?.['subscriptionId']}`

export const enableSubscription = askedAct({
  path: '/subscriptions/:id/enable',
  title: 'Enable a subscription',
  act: enableOne,
  back,
  ask: async (context) => {
    const { id } = await subscriptionOf(context)
    return {
      title: `Enable subscription ${id}`,
      says: html`<p>Deliveries go on where they stopped, in order. If its partner no longer needs what happened since, that can be skipped: it is sent only if you have it sent again later.</p>`,
      fields: html`<p><label><input type="checkbox" name="latest" value="yes"> Skip what was not delivered yet</label></p>`,
      back: `/subscriptions/${id}`,
    }
  },
})

export const disableSubscription = askedAct({
  path: '/subscriptions/:id/disable',
  title: 'Disable a subscription',
  act: disableOne,
  back,
  ask: async (context) => {
    const { id } = await subscriptionOf(context)
    return {
      title: `Disable subscription ${id}`,
      says: html`<p>Nothing is sent until it is enabled. What happens meanwhile waits, and its events can be read by number.</p>`,
      fields: field(
        'Reason, for its partner and other staff',
        html`<input name="reason" required maxlength="${lineCharactersMax}" value="${disabledReason}" autocomplete="off">`,
      ),
      back: `/subscriptions/${id}`,
    }
  },
})

export const replayFailedDeliveries = askedAct({
  path: '/subscriptions/:id/replay-failed',
  title: 'Send failed deliveries again',
  act: replayFailed,
  back,
  ask: async (context) => {
    const { id, failed } = await subscriptionOf(context)
    const count = cellHtml(context, { count: failed, most: countedMax })
    return {
      title: `Send the failed deliveries of subscription ${id} again`,
      says: html`<p>Failed deliveries: ${count}. Each is sent with its stored events and numbers, beside new ones and not in order with them. The receiver may have seen some of them.</p>`,
      back: `/subscriptions/${id}`,
    }
  },
})

export const replayEvents = actAction({ path: '/subscriptions/:id/replay', act: replayNumbered, back })

/** Not an act like the others: its event is sent after the transaction. */
export const pingSubscription: Action = onceAction('/subscriptions/:id/ping', async (context) => {
  const id = idOf(context, 'id', 'subscription')
  const { database, deliveries, masterKeys } = context.services
  const { isSuspended, ...prepared } = await inTransaction(context.owner, async (client) => {
    const locked = await lockOne(client, id)
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

type ShownPing = Pinged & { postUrl: string; unsentReason: string | null }

function pingResult(context: PageContext, id: string, pinged: ShownPing): Html {
  const { postUrl, at, status, latencyMs, error, answer, unsentReason } = pinged
  const isAccepted = status !== null && status >= 200 && status < 300
  const verdict = isAccepted
    ? 'The receiver accepted the event.'
    : 'The receiver did not accept the event: a delivery would be tried again later.'
  return html`<h1>Ping of subscription ${id}</h1>
<p class="${isAccepted ? 'note' : 'problem'}" role="status">${verdict}</p>
${facts([
  ['Address', outside(postUrl, 2048)],
  ['Sent', time(new Date(at), context)],
  ['Status', status === null ? 'no answer' : String(status)],
  ['After', `${latencyMs} ms`],
  ['Error', outside(error, 500)],
  ['Beginning of the answer', answerText(answer, limits.shownAnswerBytes)],
  ['Deliveries', unsentReason === null ? 'are sent' : html`are not sent: ${outside(unsentReason)}`],
])}
<p><a href="/console/subscriptions/${id}">Back to subscription ${id}</a></p>`
}
