import { html } from 'hono/html'
import { insertThirdParty } from '../../../auth/third-parties.sql.ts'
import { codePattern, makeSecret } from '../../../auth/third-parties.ts'
import { table } from '../../elements.ts'
import { type Action, type Html, type Page, Refusal } from '../../page.ts'
import { doAct } from '../parts/acts.ts'
import { shownOnce } from '../parts/confirm.ts'
import { onceAction, onceForm, readChoice, readLine } from '../parts/forms.ts'
import { outside } from '../parts/outside.ts'
import { choice, field, pageOf, pageRows, pager, searchIn, searchMax } from '../parts/paging.ts'
import { listPartners, type Partner } from './partners.sql.ts'

const kinds = ['partner', 'customer'] as const

export const partnersPage: Page = {
  path: '/partners',
  title: 'Partners',
  navigation: 'Partners',
  render: async (context) => {
    const { query, owner } = context
    const text = searchIn(context)
    const after = query.get('after') ?? ''
    if (after !== '' && !codePattern.test(after))
      throw new Refusal(400, 'after is not a place in this list: begin with its first page')
    const found = await listPartners(owner, { text, after, most: pageRows + 1 })
    const { rows, last } = pageOf(found)
    return html`<h1>Partners</h1>
<form method="get" action="/console/partners" role="search" class="filter">
${field('A part of the code or name', html`<input type="search" name="search" value="${text}" maxlength="${searchMax}">`)}
<button>Search</button>
</form>
${table('Third parties, by code', ['Code', 'Name', 'Kind', 'State'], rows.map(row), 'No third party has this code or name.')}
${pager(context, 'after', last?.code)}
<h2>Register a third party</h2>
${onceForm(
  context,
  '/partners',
  html`${field('Code: up to 32 of A to Z, 0 to 9, - and _', html`<input name="code" required maxlength="32" pattern="[A-Z0-9][A-Z0-9_\\-]*" autocomplete="off">`)}
${field('Name', html`<input name="name" required maxlength="500" autocomplete="off">`)}
${field('Kind', choice('kind', kinds, 'partner'))}
<button>Register</button>`,
)}`
  },
}

function row(partner: Partner): Html {
  const { code, name, kind } = partner
  return html`<tr><th scope="row"><a href="/console/partners/${code}">${code}</a></th><td class="text">${outside(name)}</td><td>${kind}</td>
<td>${stateOf(partner)}</td></tr>`
}

export function stateOf({ disconnectedReason }: Partner): Html {
  if (disconnectedReason === null) return html`connected`
  return html`<strong>disconnected</strong>: ${outside(disconnectedReason)}`
}

export const createPartner: Action = onceAction('/partners', async (context, fields) => {
  const code = (fields.get('code') ?? '').trim()
  if (!codePattern.test(code))
    throw new Refusal(
      400,
      'The code must be up to 32 of A to Z, 0 to 9, - and _, and begin with a letter or digit',
    )
  const name = readLine(fields, 'name', 'The name')
  const kind = readChoice(fields, 'kind', 'The kind', kinds)
  const { plain, secret } = makeSecret(context.services.masterKey)
  await doAct(context, async (client) => {
    const id = await insertThirdParty(client, { code, name, kind, secret })
    if (id === undefined)
      throw new Refusal(409, `There is a third party ${code} already: choose another code`)
    return {
      recorded: { act: 'partner create', thirdPartyId: id, details: { partner: code, kind } },
      result: id,
    }
  })
  return {
    title: `Partner ${code}`,
    main: html`<h1>Partner ${code} is registered</h1>
${shownOnce('Secret', plain, 'The partner sends it in the header X-Third-Party-Secret. It also signs its webhooks.')}
<p><a href="/console/partners/${code}">To ${code}, to issue its first token</a></p>`,
  }
})
