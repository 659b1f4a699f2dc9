import { html } from 'hono/html'
import { tokenLevels } from '../../../acts/tokens.ts'
import { tokenGroups } from '../../../auth/callers.sql.ts'
import {
  codePattern,
  findThirdParty,
  type KeptSecret,
  listSecrets,
  type ThirdParty,
} from '../../../auth/third-parties.sql.ts'
import type { ListedToken } from '../../../auth/tokens.sql.ts'
import { limitsText, partnerState } from '../../../lists/partners.ts'
import { tokenList } from '../../../lists/tokens.ts'
import { facts, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { cellHtml } from '../parts/cells.ts'
import { onceForm } from '../parts/forms.ts'
import { pagedTable } from '../parts/list-page.ts'
import { notice } from '../parts/notices.ts'
import { outside } from '../parts/outside.ts'
import { choice, field } from '../parts/paging.ts'

/** @throws {Refusal} if the path names none */
export async function partnerOf({ owner, params }: PageContext): Promise<ThirdParty> {
  const code = params['code'] ?? ''
  const partner = codePattern.test(code) ? await findThirdParty(owner, code) : undefined
  if (partner) return partner
  throw new Refusal(404, `There is no third party ${JSON.stringify(code.slice(0, 40))}`)
}

export const partnerPage: Page = {
  path: '/partners/:code',
  title: 'Partner',
  render: async (context) => {
    const partner = await partnerOf(context)
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
${connection(context, partner)}
${tokens}
${issueForm(context, code)}`
  },
}

function partnerFacts(context: PageContext, partner: ThirdParty, secrets: readonly KeptSecret[]): Html {
  const [newest, ...older] = secrets
  const kept = older.map(({ retiredAt }) => html`, an older one until ${time(retiredAt, context)}`)
  return facts([
    ['Name', outside(partner.name, 500)],
    ['Kind', partner.kind],
    ['Id', partner.id],
    ['Limits', limitsText(partner.limits)],
    ['State', html`${cellHtml(context, partnerState(partner))}`],
    ['Registered', time(partner.createdAt, context)],
    ['Secret', html`made ${time(newest?.createdAt, context)}${kept}`],
    ['Subscriptions', html`<a href="/console/subscriptions?partner=${partner.code}">Its subscriptions</a>`],
  ])
}

function connection(context: PageContext, { code, disconnectedAt }: ThirdParty): Html {
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

function issueForm(context: PageContext, code: string): Html {
  return html`<h2>Issue a token</h2>
${onceForm(
  context,
  `/partners/${code}/tokens`,
  html`${field('Level: api opens one folder, firm all folders of a firm', choice('level', tokenLevels, 'api'))}
${field('Id of the folder or firm', html`<input name="id" required inputmode="numeric" pattern="[0-9]{1,16}" autocomplete="off">`)}
<fieldset class="field"><legend>Only for these groups of routes; none checked: all</legend>${tokenGroups.map((group) => html`<label><input type="checkbox" name="only" value="${group}"> ${group}</label> `)}</fieldset>
${field('Days until it ends, or the day or moment, such as 2031-01-31 (UTC); empty: never', html`<input name="expires" autocomplete="off">`)}
<button>Issue a token</button>`,
)}`
}
