/** What staff do to a subscription. The acts are those of the commands `webhook` and `event`, and of the API. */
import { html } from 'hono/html'
import type { PoolClient } from 'pg'
import { limits } from '../../../config.ts'
import { enableByStaff } from '../../../webhooks/change.ts'
import { type Pinged, preparePing, sendPing } from '../../../webhooks/owner/ping.ts'
import { type Replayed, replay } from '../../../webhooks/owner/replay.ts'
import { countedMax, lockShown } from '../../../webhooks/staff.sql.ts'
import { disableSubscription } from '../../../webhooks/subscriptions.sql.ts'
import { facts, integer, time } from '../../elements.ts'
import { type Action, type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { doAct } from '../parts/acts.ts'
import { cellHtml } from '../parts/cells.ts'
import { confirmation } from '../parts/confirm.ts'
import { idOf, onceAction, readLine, readNumber } from '../parts/forms.ts'
import type { Notice } from '../parts/notices.ts'
import { answerText, outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'
import { subscriptionOf } from './subscription.ts'

const enablePath = '/subscriptions/:id/enable'
const disablePath = '/subscriptions/:id/disable'
const replayFailedPath = '/subscriptions/:id/replay-failed'

export const enablePage: Page = {
  path: enablePath,
  title: 'Enable a subscription',
  render: async (context) => {
    const { id } = await subscriptionOf(context)
    return confirmation(context, {
      title: `Enable subscription ${id}`,
      says: html`Deliveries go on where they stopped, in order. If its partner no longer needs what happened since, that can be skipped: it is sent only if you have it sent again later.`,
      path: `/subscriptions/${id}/enable`,
      fields: html`<p><label><input type="checkbox" name="latest" value="yes"> Skip what was not delivered yet</label></p>`,
      button: `Enable subscription ${id}`,
      back: `/subscriptions/${id}`,
    })
  },
}

export const enableAction: Action = onceAction(enablePath, async (context, fields) => {
  const latest = fields.get('latest') === 'yes'
  return changeOne(context, 'webhook enable', latest ? 'skipped' : 'enabled', async (client, id) => {
    if (!(await enableByStaff(client, id, { latest })))
      throw new Refusal(409, `Subscription ${id} is enabled already`)
    return { latest }
  })
})

export const disablePage: Page = {
  path: disablePath,
  title: 'Disable a subscription',
  render: async (context) => {
    const { id } = await subscriptionOf(context)
    return confirmation(context, {
      title: `Disable subscription ${id}`,
      says: html`Nothing is sent until it is enabled. What happens meanwhile waits, and its events can be read by number.`,
      path: `/subscriptions/${id}/disable`,
      fields: field(
        'Reason, for its partner and other staff',
        html`<input name="reason" required maxlength="500" value="Disabled by staff" autocomplete="off">`,
      ),
      button: `Disable subscription ${id}`,
      back: `/subscriptions/${id}`,
    })
  },
}

export const disableAction: Action = onceAction(disablePath, async (context, fields) => {
  const reason = readLine(fields, 'reason', 'The reason')
  return changeOne(context, 'webhook disable', 'disabled', async (client, id) => {
    if (!(await disableSubscription(client, id, reason, Date.now())))
      throw new Refusal(409, `Subscription ${id} is disabled already`)
    return { reason }
  })
})

export const replayFailedPage: Page = {
  path: replayFailedPath,
  title: 'Send failed deliveries again',
  render: async (context) => {
    const { id, failed } = await subscriptionOf(context)
    const count = cellHtml(context, { count: failed, most: countedMax })
    return confirmation(context, {
      title: `Send the failed deliveries of subscription ${id} again`,
      says: html`Failed deliveries: ${count}. Each is sent with its stored events and numbers, beside new ones and not in order with them. The receiver may have seen some of them.`,
      path: `/subscriptions/${id}/replay-failed`,
      button: 'Send them again',
      back: `/subscriptions/${id}`,
    })
  },
}

export const replayFailedAction: Action = onceAction(replayFailedPath, (context) =>
  replayIn(context, { failed: true }),
)

export const replayAction: Action = onceAction('/subscriptions/:id/replay', (context, fields) => {
  const bounds = { least: 1, most: Number.MAX_SAFE_INTEGER }
  const from = readNumber(fields, 'from', 'From', bounds)
  const to = readNumber(fields, 'to', 'To', bounds)
  if (from > to) throw new Refusal(400, 'To must be at least From')
  if (to - from >= limits.replayedEventsMax)
    throw new Refusal(
      400,
      `To must be less than ${integer(limits.replayedEventsMax)} after From: send the rest again afterwards`,
    )
  return replayIn(context, { from, to })
})

async function replayIn(context: PageContext, replayed: Replayed) {
  return changeOne(context, 'event replay', 'replayed', async (client, id) => {
    const deliveries = await replay(client, id, replayed, Date.now())
    if (deliveries === 0)
      throw new Refusal(409, `Nothing of that is kept for subscription ${id}, so nothing is sent again`)
    return { ...replayed, deliveries }
  })
}

/** One act on the subscription of the path, which is locked. @param run returns the details for the audit */
async function changeOne(
  context: PageContext,
  act: string,
  done: Notice,
  run: (client: PoolClient, id: string) => Promise<Record<string, string | number | boolean>>,
): Promise<{ seeOther: string }> {
  const id = idOf(context, 'id', 'subscription')
  await doAct(context, async (client) => {
    const { schemaId, thirdPartyId } = await lockOne(client, id)
    const details = { subscriptionId: id, ...(await run(client, id)) }
    const of = schemaId === null ? {} : { schemaId }
    return { recorded: { act, thirdPartyId, ...of, details }, result: undefined }
  })
  return { seeOther: `/subscriptions/${id}?done=${done}` }
}

async function lockOne(client: PoolClient, id: string) {
  const locked = await lockShown(client, id)
  if (locked) return locked
  throw new Refusal(404, `There is no subscription ${id}`)
}

export const pingAction: Action = onceAction('/subscriptions/:id/ping', async (context) => {
  const id = idOf(context, 'id', 'subscription')
  const { database, deliveries, masterKey } = context.services
  const prepared = await doAct(context, async (client) => {
    const locked = await lockOne(client, id)
    const result = { ...(await preparePing(client, locked)), isSuspended: locked.isSuspended }
    const of = locked.schemaId === null ? {} : { schemaId: locked.schemaId }
    const details = { subscriptionId: id }
    return { recorded: { act: 'webhook ping', thirdPartyId: locked.thirdPartyId, ...of, details }, result }
  })
  const pinged = await sendPing({ database, deliveries, masterKey }, id, prepared)
  const unsentReason = pinged.disabled?.reason ?? (prepared.isSuspended ? 'suspended' : null)
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
