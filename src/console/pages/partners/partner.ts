import { html } from 'hono/html'
import { codePattern } from '../../../auth/third-parties.ts'
import { facts, table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { onceForm } from '../parts/forms.ts'
import { notice } from '../parts/notices.ts'
import { outside } from '../parts/outside.ts'
import { beforeIn, choice, field, pageOf, pageRows, pager } from '../parts/paging.ts'
import { stateOf } from './list.ts'
import {
  type KeptSecret,
  listSecrets,
  listTokensOf,
  type Partner,
  type PartnerToken,
  readPartner,
} from './partners.sql.ts'

/** @throws {Refusal} if the path names none */
export async function partnerOf({ owner, params }: PageContext): Promise<Partner> {
  const code = params['code'] ?? ''
  const partner = codePattern.test(code) ? await readPartner(owner, code) : undefined
  if (partner) return partner
  throw new Refusal(404, `There is no third party ${JSON.stringify(code.slice(0, 40))}`)
}

export const partnerPage: Page = {
  path: '/partners/:code',
  title: 'Partner',
  render: async (context) => {
    const partner = await partnerOf(context)
    const { code, id } = partner
    const before = beforeIn(context)
    const secrets = await listSecrets(context.owner, id)
    const found = await listTokensOf(context.owner, { partnerId: id, before, most: pageRows + 1 })
    const { rows, last } = pageOf(found)
    const heads = ['Id', 'Level', 'Opens', 'Ends in', 'State', 'Issued', 'Act']
    return html`<h1>Partner ${code}</h1>
${notice(context)}
${partnerFacts(context, partner, secrets)}
${connection(context, partner)}
${table(
  'Tokens, the newest first',
  heads,
  rows.map((token) => tokenRow(context, partner, token)),
  'No token was issued to this partner.',
)}
${pager(context, 'before', last?.id)}
${issueForm(context, code)}`
  },
}

function partnerFacts(context: PageContext, partner: Partner, secrets: readonly KeptSecret[]): Html {
  const [newest, ...older] = secrets
  const kept = older.map(({ retiredAt }) => html`, an older one until ${time(retiredAt, context)}`)
  return facts([
    ['Name', outside(partner.name, 500)],
    ['Kind', partner.kind],
    ['Id', partner.id],
    ['State', stateOf(partner)],
    ['Registered', time(partner.createdAt, context)],
    ['Secret', html`made ${time(newest?.createdAt, context)}${kept}`],
    ['Subscriptions', html`<a href="/console/subscriptions?partner=${partner.code}">Its subscriptions</a>`],
  ])
}

function connection(context: PageContext, { code, disconnectedAt }: Partner): Html {
  const rotate = html`<a class="button" href="/console/partners/${code}/rotate-secret">Make a new secret</a>`
  if (disconnectedAt === null)
    return html`<p class="buttons">${rotate} <a class="button" href="/console/partners/${code}/disconnect">Disconnect</a></p>`
  return html`<p>Disconnected since ${time(disconnectedAt, context)}.</p>
${onceForm(context, `/partners/${code}/reconnect`, html`<p class="buttons"><button>Connect again</button> ${rotate}</p>`)}`
}

function tokenRow(context: PageContext, partner: Partner, token: PartnerToken): Html {
  const { id, level, folderId, firmId, openedName, hint, createdAt, revokedAt } = token
  const opens =
    folderId === null ? html`firm ${firmId}` : html`<a href="/console/folders/${folderId}">${folderId}</a>`
  const revoke =
    revokedAt === null
      ? html`<a href="/console/tokens/${id}/revoke">Revoke<span class="hidden"> token ${id}</span></a>`
      : ''
  return html`<tr><th scope="row">${id}</th><td>${level}</td><td>${opens} ${outside(openedName, 60)}</td><td><code>${hint}</code></td>
<td>${tokenState(context, partner, token)}</td><td>${time(createdAt, context)}</td><td>${revoke}</td></tr>`
}

function tokenState(context: PageContext, partner: Partner, { revokedAt, activatedAt }: PartnerToken): Html {
  if (revokedAt !== null) return html`revoked ${time(revokedAt, context)}`
  if (partner.disconnectedAt !== null) return html`refused: disconnected`
  return activatedAt === null ? html`not yet used` : html`in use since ${time(activatedAt, context)}`
}

function issueForm(context: PageContext, code: string): Html {
  return html`<h2>Issue a token</h2>
${onceForm(
  context,
  `/partners/${code}/tokens`,
  html`${field('Level: api opens one folder, firm all folders of a firm', choice('level', ['api', 'firm'], 'api'))}
${field('Id of the folder or firm', html`<input name="id" required inputmode="numeric" pattern="[0-9]{1,16}" autocomplete="off">`)}
<button>Issue a token</button>`,
)}`
}
