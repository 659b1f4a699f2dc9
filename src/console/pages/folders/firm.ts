/** Firms and their folders, and making both. */
import { html } from 'hono/html'
import { lineCharactersMax } from '../../../acts/fields.ts'
import { createFirmFolder, createTenantFirm, siretText } from '../../../acts/tenants.ts'
import { listFirms } from '../../../ledger/folders.sql.ts'
import { firmFacts, firmList, folderList } from '../../../lists/folders.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { actAction } from '../parts/acts.ts'
import { factList } from '../parts/cells.ts'
import { idOf, onceForm } from '../parts/forms.ts'
import { listPage, pagedTable } from '../parts/list-page.ts'
import { notice } from '../parts/notices.ts'
import { outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'

export const firmsPage = listPage({ path: '/firms', title: 'Firms' }, firmList, {}, { below: firmForm })

export const firmPage: Page = {
  path: '/firms/:id',
  title: 'Firm',
  render: async (context) => {
    const id = idOf(context, 'id', 'firm')
    const [firm] = await listFirms(context.owner, { id })
    if (!firm) throw new Refusal(404, `There is no firm ${id}`)
    const folders = await pagedTable(
      context,
      folderList,
      { firm: id },
      { none: 'This firm has no folder.', without: ['Firm'] },
    )
    return html`<h1>Firm ${id}: ${outside(firm.name)}</h1>
${notice(context)}
${factList(context, firmFacts(firm))}
${folders}
${folderForm(context, id)}`
  },
}

export const createFirm = actAction({
  path: '/firms',
  act: createTenantFirm,
  back: ({ details }) => `/firms/${details!['firmId']}`,
})

export const createFolder = actAction({
  path: '/firms/:firm/folders',
  act: createFirmFolder,
  back: ({ folderId }) => `/folders/${folderId}`,
})

const text = (name: string, isRequired = false) =>
  html`<input name="${name}" maxlength="${lineCharactersMax}" autocomplete="off"${isRequired ? html` required` : ''}>`

function firmForm(context: PageContext): Html {
  return html`<h2>Make a firm</h2>
${onceForm(
  context,
  '/firms',
  html`${field('Name', text('name', true))}
${field(`SIREN or SIRET, if known: ${siretText}`, text('siret'))}
${field('Id of a firm whose tenant it shares, so that folders can move; else empty', html`<input name="beside" inputmode="numeric" pattern="[0-9]{1,16}" autocomplete="off">`)}
<button>Make</button>`,
)}`
}

function folderForm(context: PageContext, firmId: string): Html {
  return html`<h2>Make an empty folder</h2>
${onceForm(
  context,
  `/firms/${firmId}/folders`,
  html`${field('Name', text('name', true))}
${field("The firm's own name of it, if any", text('reference'))}
${field(`SIREN or SIRET, if known: ${siretText}`, text('siret'))}
<button>Make</button>`,
)}`
}
