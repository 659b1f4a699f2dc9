import { html } from 'hono/html'
import { insertThirdParty } from '../../../auth/third-parties.sql.ts'
import { codePattern, makeSecret } from '../../../auth/third-parties.ts'
import { partnerList } from '../../../lists/partners.ts'
import { type Action, type Html, type PageContext, Refusal } from '../../page.ts'
import { doAct } from '../parts/acts.ts'
import { shownOnce } from '../parts/confirm.ts'
import { onceAction, onceForm, readChoice, readLine } from '../parts/forms.ts'
import { listPage, searchFilter } from '../parts/list-page.ts'
import { choice, field } from '../parts/paging.ts'

const kinds = ['partner', 'customer'] as const

export const partnersPage = listPage(
  { path: '/partners', title: 'Partners' },
  partnerList,
  { search: searchFilter('A part of the code or name') },
  { below: registerForm },
)

function registerForm(context: PageContext): Html {
  return html`<h2>Register a third party</h2>
${onceForm(
  context,
  '/partners',
  html`${field('Code: up to 32 of A to Z, 0 to 9, - and _', html`<input name="code" required maxlength="32" pattern="[A-Z0-9][A-Z0-9_\\-]*" autocomplete="off">`)}
${field('Name', html`<input name="name" required maxlength="500" autocomplete="off">`)}
${field('Kind', choice('kind', kinds, 'partner'))}
<button>Register</button>`,
)}`
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
