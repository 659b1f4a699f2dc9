/** What staff do to a partner and its tokens. */
import { html } from 'hono/html'
import type { Done } from '../../../acts/act.ts'
import { lineCharactersMax } from '../../../acts/fields.ts'
import * as partners from '../../../acts/partners.ts'
import { issuePartnerToken, revokePartnerToken } from '../../../acts/tokens.ts'
import { readToken } from '../../../auth/tokens.sql.ts'
import { rateBounds } from '../../../config.ts'
import { Refusal } from '../../page.ts'
import { actAction, askedAct } from '../parts/acts.ts'
import { idOf } from '../parts/forms.ts'
import { outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'
import { partnerOf } from './partner.ts'

const back = ({ partner }: Done) => `/partners/${partner}`

export const createPartner = actAction({ path: '/partners', act: partners.createPartner, back })

export const disconnectPartner = askedAct({
  path: '/partners/:code/disconnect',
  title: 'Disconnect a partner',
  act: partners.disconnectPartner,
  back,
  ask: async (context) => {
    const { code, name } = await partnerOf(context)
    return {
      title: `Disconnect ${code}`,
      says: html`<p>All tokens of ${outside(name)} are refused, and its subscriptions wait, until it is connected again. No token is lost.</p>`,
      fields: field(
        'Reason, which the partner sees with each refusal',
        html`<input name="reason" required maxlength="${lineCharactersMax}" autocomplete="off">`,
      ),
      back: `/partners/${code}`,
    }
  },
})

export const reconnectPartner = actAction({
  path: '/partners/:code/reconnect',
  act: partners.reconnectPartner,
  back,
})

export const rotateSecret = askedAct({
  path: '/partners/:code/rotate-secret',
  title: 'Make a new secret',
  act: partners.rotatePartnerSecret,
  back,
  ask: async (context) => {
    const { code } = await partnerOf(context)
    return {
      title: `Make a new secret for ${code}`,
      says: html`<p>Deliveries are signed with the new secret from that moment on. Requests may carry the older one for as long as you say; with 0 hours it is refused at once.</p>`,
      fields: field(
        'Hours for which requests may carry the older secret',
        html`<input name="keep" required inputmode="numeric" pattern="[0-9]{1,${String(partners.keptHours.most).length}}" value="${partners.keptHours.usual}">`,
      ),
      back: `/partners/${code}`,
    }
  },
})

export const limitPartner = askedAct({
  path: '/partners/:code/limits',
  title: 'Limits of a partner',
  act: partners.limitPartner,
  back,
  ask: async (context) => {
    const { code, limits } = await partnerOf(context)
    const number = (name: string, most: number, value: number | null) =>
      html`<input name="${name}" inputmode="numeric" pattern="[0-9]{1,${String(most).length}}" value="${value ?? ''}">`
    return {
      title: `Limit ${code}`,
      says: html`<p>Every process keeps to it from the next request on. An empty field is as the setting.</p>`,
      fields: html`<input type="hidden" name="default" value="on">
${field('Requests of one token per window', number('requests', rateBounds.requests[1], limits.requests))}
${field('Length of that window, milliseconds', number('window-ms', rateBounds.windowMs[1], limits.windowMs))}
${field('Its own requests that run at once per route and folder', number('concurrent', rateBounds.concurrent[1], limits.concurrent))}`,
      back: `/partners/${code}`,
    }
  },
})

export const issueToken = actAction({ path: '/partners/:code/tokens', act: issuePartnerToken, back })

export const revokeToken = askedAct({
  path: '/tokens/:id/revoke',
  title: 'Revoke a token',
  act: revokePartnerToken,
  back,
  ask: async (context) => {
    const id = idOf(context, 'id', 'token')
    const token = await readToken(context.owner, id)
    if (!token) throw new Refusal(404, `There is no token ${id}`)
    const { partnerCode, level, folderId, firmId, openedName, hint, revokedAt } = token
    if (revokedAt !== null) throw new Refusal(409, `Token ${id} is revoked already`)
    const opened = level === 'api' ? `folder ${folderId}` : `firm ${firmId}`
    return {
      title: `Revoke token ${id}`,
      says: html`<p>The token of ${partnerCode} that ends in <code>${hint}</code> and opens ${opened}, ${outside(openedName)}, is refused from then on. A revoked token cannot be restored: the partner needs a new one.</p>`,
      back: `/partners/${partnerCode}`,
    }
  },
})
