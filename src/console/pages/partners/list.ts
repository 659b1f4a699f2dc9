import { html } from 'hono/html'
import { codeText, lineCharactersMax } from '../../../acts/fields.ts'
import { partnerKinds } from '../../../acts/partners.ts'
import { codePattern } from '../../../auth/third-parties.sql.ts'
import { partnerList } from '../../../lists/partners.ts'
import type { Html, PageContext } from '../../page.ts'
import { onceForm } from '../parts/forms.ts'
import { listPage, searchFilter } from '../parts/list-page.ts'
import { choice, field } from '../parts/paging.ts'

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
  html`${field(`Code: ${codeText}`, html`<input name="code" required pattern="${codePattern.source}" autocomplete="off">`)}
${field('Name', html`<input name="name" required maxlength="${lineCharactersMax}" autocomplete="off">`)}
${field('Kind', choice('kind', partnerKinds, 'partner'))}
<button>Register</button>`,
)}`
}
