/** What staff do to a partner and its tokens. The acts are those of the commands `partner` and `token`. */
import { html } from 'hono/html'
import * as thirdParties from '../../../auth/third-parties.ts'
import { findFirm, findFolder, type ListedToken, readToken } from '../../../auth/tokens.sql.ts'
import { issueToken, revokeToken } from '../../../auth/tokens.ts'
import { type Action, type Page, type PageContext, Refusal } from '../../page.ts'
import { doAct } from '../parts/acts.ts'
import { confirmation, shownOnce } from '../parts/confirm.ts'
import { idOf, onceAction, readChoice, readIdField, readLine, readNumber } from '../parts/forms.ts'
import { outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'
import { partnerOf } from './partner.ts'

const disconnectPath = '/partners/:code/disconnect'

export const disconnectPage: Page = {
  path: disconnectPath,
  title: 'Disconnect a partner',
  render: async (context) => {
    const { code, name } = await partnerOf(context)
    return confirmation(context, {
      title: `Disconnect ${code}`,
      says: html`All tokens of ${outside(name)} are refused, and its subscriptions wait, until it is connected again. No token is lost.`,
      path: `/partners/${code}/disconnect`,
      fields: field(
        'Reason, which the partner sees with each refusal',
        html`<input name="reason" required maxlength="500" autocomplete="off">`,
      ),
      button: `Disconnect ${code}`,
      back: `/partners/${code}`,
    })
  },
}

export const disconnectPartner: Action = onceAction(disconnectPath, async (context, fields) => {
  const { code, id } = await partnerOf(context)
  const reason = readLine(fields, 'reason', 'The reason')
  await doAct(context, async (client) => {
    if (!(await thirdParties.disconnect(client, code, reason)))
      throw new Refusal(409, `${code} is disconnected already`)
    const recorded = { act: 'partner disconnect', thirdPartyId: id, details: { partner: code, reason } }
    return { recorded, result: undefined }
  })
  return { seeOther: `/partners/${code}?done=disconnected` }
})

export const reconnectPartner: Action = onceAction('/partners/:code/reconnect', async (context) => {
  const { code, id } = await partnerOf(context)
  await doAct(context, async (client) => {
    if (!(await thirdParties.reconnect(client, code))) throw new Refusal(409, `${code} is connected already`)
    return {
      recorded: { act: 'partner reconnect', thirdPartyId: id, details: { partner: code } },
      result: undefined,
    }
  })
  return { seeOther: `/partners/${code}?done=connected` }
})

const rotatePath = '/partners/:code/rotate-secret'

/** Hours for which older secrets are accepted, as long as nothing else is asked for. */
const keptHours = 24

export const rotateSecretPage: Page = {
  path: rotatePath,
  title: 'Make a new secret',
  render: async (context) => {
    const { code } = await partnerOf(context)
    return confirmation(context, {
      title: `A new secret for ${code}`,
      says: html`Deliveries are signed with the new secret from that moment on. Requests may carry the older one for as long as you say; with 0 hours it is refused at once.`,
      path: `/partners/${code}/rotate-secret`,
      fields: field(
        'Hours for which requests may carry the older secret',
        html`<input name="keep" required inputmode="numeric" pattern="[0-9]{1,4}" value="${keptHours}">`,
      ),
      button: 'Make a new secret',
      back: `/partners/${code}`,
    })
  },
}

export const rotateSecret: Action = onceAction(rotatePath, async (context, fields) => {
  const { code, id } = await partnerOf(context)
  const hours = readNumber(fields, 'keep', 'Hours', { least: 0, most: 9_999 })
  const { plain, secret } = thirdParties.makeSecret(context.services.masterKey)
  await doAct(context, async (client) => {
    if (!(await thirdParties.rotateSecret(client, code, secret, hours * 3600)))
      throw new Refusal(404, `There is no third party ${code}`)
    const recorded = {
      act: 'partner rotate-secret',
      thirdPartyId: id,
      details: { partner: code, keptHours: hours },
    }
    return { recorded, result: undefined }
  })
  const former =
    hours === 0
      ? 'The older one is refused.'
      : `The older one is accepted in requests for ${hours} more hours.`
  return {
    title: `New secret of ${code}`,
    main: html`<h1>${code} has a new secret</h1>
${shownOnce('Secret', plain, `The partner sends it in the header X-Third-Party-Secret. ${former}`)}
<p><a href="/console/partners/${code}">Back to ${code}</a></p>`,
  }
})

export const issueTokenAction: Action = onceAction('/partners/:code/tokens', async (context, fields) => {
  const { code, id: thirdPartyId } = await partnerOf(context)
  const level = readChoice(fields, 'level', 'The level', ['api', 'firm'])
  const what = level === 'api' ? 'folder' : 'firm'
  const openedId = readIdField(fields, 'id', `The id of the ${what}`)
  const { id, token } = await doAct(context, async (client) => {
    const opened = level === 'api' ? await findFolder(client, openedId) : await findFirm(client, openedId)
    if (!opened) throw new Refusal(404, `There is no ${what} ${openedId}`)
    const result = await issueToken(client, { thirdPartyCode: code, level, opened })
    if (!result) throw new Refusal(404, `There is no third party ${code}`)
    const { schemaId, firmId, folderId } = opened
    const details = { partner: code, level, firmId }
    const recorded = { act: 'token issue', thirdPartyId, tokenId: result.id, schemaId, details }
    return { recorded: folderId === null ? recorded : { ...recorded, folderId }, result }
  })
  return {
    title: `Token ${id}`,
    main: html`<h1>Token ${id} of ${code}</h1>
<p>It opens ${what} ${openedId}.</p>
${shownOnce('Token', token, 'The partner sends it in the header Authorization: Bearer, beside its secret.')}
<p><a href="/console/partners/${code}">Back to ${code}</a></p>`,
  }
})

const revokePath = '/tokens/:id/revoke'

async function tokenOf(context: PageContext): Promise<ListedToken> {
  const id = idOf(context, 'id', 'token')
  const token = await readToken(context.owner, id)
  if (token) return token
  throw new Refusal(404, `There is no token ${id}`)
}

export const revokeTokenPage: Page = {
  path: revokePath,
  title: 'Revoke a token',
  render: async (context) => {
    const { id, partnerCode, level, folderId, firmId, openedName, hint, revokedAt } = await tokenOf(context)
    if (revokedAt !== null) throw new Refusal(409, `Token ${id} is revoked already`)
    const opened = level === 'api' ? `folder ${folderId}` : `firm ${firmId}`
    return confirmation(context, {
      title: `Revoke token ${id}`,
      says: html`The token of ${partnerCode} that ends in <code>${hint}</code> and opens ${opened}, ${outside(openedName)}, is refused from then on. A revoked token cannot be restored: the partner needs a new one.`,
      path: `/tokens/${id}/revoke`,
      button: `Revoke token ${id}`,
      back: `/partners/${partnerCode}`,
    })
  },
}

export const revokeTokenAction: Action = onceAction(revokePath, async (context) => {
  const { id, partnerCode, thirdPartyId, schemaId, folderId } = await tokenOf(context)
  await doAct(context, async (client) => {
    if (!(await revokeToken(client, id))) throw new Refusal(409, `Token ${id} is revoked already`)
    const details = { partner: partnerCode }
    const recorded = { act: 'token revoke', thirdPartyId, tokenId: id, schemaId, details }
    return { recorded: folderId === null ? recorded : { ...recorded, folderId }, result: undefined }
  })
  return { seeOther: `/partners/${partnerCode}?done=revoked` }
})
