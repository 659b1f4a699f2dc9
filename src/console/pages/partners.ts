/** Partners and their tokens: the list of partners, the page of one partner, and what staff can do with both. */
import { html } from 'hono/html'
import { codeText } from '../../acts/fields.ts'
import {
  createPartner,
  disconnectPartner,
  keptHours,
  limitPartner,
  partnerKinds,
  partnerOf,
  reconnectPartner,
  rotatePartnerSecret,
} from '../../acts/partners.ts'
import { issuePartnerToken, revokePartnerToken, tokenLevels } from '../../acts/tokens.ts'
import { tokenGroups } from '../../auth/callers.sql.ts'
import { codePattern, type KeptSecret, listSecrets, type ThirdParty } from '../../auth/third-parties.sql.ts'
import { type ListedToken, listTokens } from '../../auth/tokens.sql.ts'
import { rateBounds } from '../../config.ts'
import { limitsText, partnerList, partnerState, tokenList } from '../../lists/partners.ts'
import { choice, field, idField, lineField, required, time } from '../elements.ts'
import { type Html, type Page, type PageContext, Refusal, type Route } from '../page.ts'
import { actAction, askedAct, idOf, noSuchPage, notice, onceForm } from './parts/acts.ts'
import { factList, foreign } from './parts/cells.ts'
import { listPage, pagedTable, searchFilter } from './parts/list-page.ts'

/** @throws {Refusal} if the path has no code. @throws {Refused} if no partner has this code */
async function partnerAt({ owner, params: { code = '' } }: PageContext): Promise<ThirdParty> {
  if (!codePattern.test(code)) throw noSuchPage()
  return partnerOf(owner, code)
}

const partnerPage: Page = {
  path: '/partners/:code',
  title: 'Partner',
  render: async (context) => {
    const partner = await partnerAt(context)
    const { code, id } = partner
    const tokens = await pagedTable(
      context,
      tokenList,
      { thirdPartyId: id },
      { none: 'No token was issued to this partner.', without: ['Partner'], act: revokeLink },
    )
    return html`<h1>Partner ${code}</h1>
${notice(context)}
${partnerFacts(context, partner, await listSecrets(context.owner, id))}
${connectionButtons(context, partner)}
${tokens}
<h2>Issue a token</h2>
${onceForm(
  context,
  `/partners/${code}/tokens`,
  html`${field('Level: api opens one folder, firm all folders of a firm', choice('level', tokenLevels, 'api'))}
${idField('Id of the folder or firm', 'id', required)}
<fieldset class="field"><legend>Only for these groups of routes; none checked: all</legend>${tokenGroups.map((group) => html`<label><input type="checkbox" name="only" value="${group}"> ${group}</label> `)}</fieldset>
${field('Days until it ends, or the day or moment, such as 2031-01-31 (UTC); empty: never', html`<input name="expires" autocomplete="off">`)}
<button>Issue a token</button>`,
)}`
  },
}

function partnerFacts(context: PageContext, partner: ThirdParty, secrets: readonly KeptSecret[]): Html {
  const [newest, ...older] = secrets
  const kept = older.map(({ retiredAt }) => [', an older one until ', { at: retiredAt }])
  return factList(context, {
    Name: { foreign: partner.name, most: 500 },
    Kind: partner.kind,
    Id: partner.id,
    Limits: limitsText(partner.limits),
    State: partnerState(partner),
    Registered: { at: partner.createdAt },
    Secret: newest ? ['made ', { at: newest.createdAt }, ...kept] : html`made <span class="none">none</span>`,
    Subscriptions: { to: `/subscriptions?partner=${partner.code}`, text: 'Its subscriptions' },
  })
}

function connectionButtons(context: PageContext, { code, disconnectedAt }: ThirdParty): Html {
  const rotate = html`<a class="button" href="/console/partners/${code}/rotate-secret">Make a new secret</a> <a class="button" href="/console/partners/${code}/limits">Change its limits</a>`
  if (disconnectedAt === null)
    return html`<p class="buttons">${rotate} <a class="button" href="/console/partners/${code}/disconnect">Disconnect</a></p>`
  return html`<p>Disconnected since ${time(disconnectedAt, context)}.</p>
${onceForm(context, `/partners/${code}/reconnect`, html`<p class="buttons"><button>Connect again</button> ${rotate}</p>`)}`
}

function revokeLink({ id, revokedAt }: ListedToken): Html | '' {
  if (revokedAt !== null) return ''
  return html`<a href="/console/tokens/${id}/revoke">Revoke<span class="hidden"> token ${id}</span></a>`
}

function registerForm(context: PageContext): Html {
  return html`<h2>Register a third party</h2>
${onceForm(
  context,
  '/partners',
  html`${field(`Code: ${codeText}`, html`<input name="code" required pattern="${codePattern.source}" autocomplete="off">`)}
${lineField('Name', 'name', required)}
${field('Kind', choice('kind', partnerKinds, 'partner'))}
<button>Register</button>`,
)}`
}

const number = (label: string, name: string, most: number, value: number | null, more: Html | '' = '') =>
  field(
    label,
    html`<input name="${name}" inputmode="numeric" pattern="[0-9]{1,${String(most).length}}" value="${value ?? ''}"${more}>`,
  )

export const partnerRoutes: readonly Route[] = [
  listPage(
    { path: '/partners', title: 'Partners' },
    partnerList,
    { search: searchFilter('A part of the code or name') },
    { below: registerForm },
  ),
  partnerPage,
  actAction({ path: '/partners', act: createPartner, back: ({ partner }) => `/partners/${partner}` }),
  actAction({ path: '/partners/:code/reconnect', act: reconnectPartner }),
  actAction({ path: '/partners/:code/tokens', act: issuePartnerToken }),
  ...askedAct({
    path: '/partners/:code/disconnect',
    title: 'Disconnect a partner',
    act: disconnectPartner,
    ask: async (context) => {
      const { code, name } = await partnerAt(context)
      return {
        title: `Disconnect ${code}`,
        says: html`<p>All tokens of ${foreign(name)} are refused, and its subscriptions wait, until it is connected again. No token is lost.</p>`,
        fields: lineField('Reason, which the partner sees with each refusal', 'reason', required),
      }
    },
  }),
  ...askedAct({
    path: '/partners/:code/rotate-secret',
    title: 'Make a new secret',
    act: rotatePartnerSecret,
    ask: async (context) => {
      const { code } = await partnerAt(context)
      const label = 'Hours for which requests may carry the older secret'
      return {
        title: `Make a new secret for ${code}`,
        says: html`<p>Deliveries are signed with the new secret from that moment on. Requests may carry the older one for as long as you say; with 0 hours it is refused at once.</p>`,
        fields: number(label, 'keep', keptHours.most, keptHours.usual, required),
      }
    },
  }),
  ...askedAct({
    path: '/partners/:code/limits',
    title: 'Limits of a partner',
    act: limitPartner,
    ask: async (context) => {
      const { code, limits } = await partnerAt(context)
      const atOnce = 'Requests of the partner that run at once per route and folder'
      return {
        title: `Limit ${code}`,
        says: html`<p>Every process applies the limits from the next request on. For an empty field, the setting applies.</p>`,
        fields: html`<input type="hidden" name="default" value="on">
${number('Requests of one token per window', 'requests', rateBounds.requests[1], limits.requests)}
${number('Length of that window, milliseconds', 'window-ms', rateBounds.windowMs[1], limits.windowMs)}
${number(atOnce, 'concurrent', rateBounds.concurrent[1], limits.concurrent)}`,
      }
    },
  }),
  ...askedAct({
    path: '/tokens/:id/revoke',
    title: 'Revoke a token',
    act: revokePartnerToken,
    back: ({ partner }) => `/partners/${partner}`,
    ask: async (context) => {
      const id = idOf(context)
      const [token] = await listTokens(context.owner, { id })
      if (!token) throw new Refusal(404, `There is no token ${id}`)
      const { partnerCode, level, folderId, firmId, openedName, hint, revokedAt } = token
      if (revokedAt !== null) throw new Refusal(409, `Token ${id} is revoked already`)
      const opened = level === 'api' ? `folder ${folderId}` : `firm ${firmId}`
      return {
        title: `Revoke token ${id}`,
        says: html`<p>The token of ${partnerCode} that ends in <code>${hint}</code> and opens ${opened}, ${foreign(openedName)}, is refused from then on. A revoked token cannot be restored: the partner needs a new one.</p>`,
        back: `/partners/${partnerCode}`,
      }
    },
  }),
]
