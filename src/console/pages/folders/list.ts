import { html } from 'hono/html'
import { readId } from '../../../db/id.ts'
import { integer, table } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { outside } from '../parts/outside.ts'
import { field, pageOf, pageRows, pager, searchIn, searchMax } from '../parts/paging.ts'
import { type FolderPlace, type ListedFolder, listFolders } from './folders.sql.ts'

export const foldersPage: Page = {
  path: '/folders',
  title: 'Folders',
  navigation: 'Folders',
  render: async (context) => {
    const text = searchIn(context)
    const after = placeIn(context)
    const found = await listFolders(context.owner, { text, after, most: pageRows + 1 })
    const { rows, last } = pageOf(found)
    const caption = text === '' ? 'All folders, by id' : 'Folders found'
    return html`<h1>Folders</h1>
<form method="get" action="/console/folders" role="search" class="filter">
${field('Id, or a part of the name or reference', html`<input type="search" name="search" value="${text}" maxlength="${searchMax}">`)}
<button>Search</button>
</form>
${table(caption, ['Id', 'Name', 'Reference', 'Firm', { number: 'Years' }, 'Until', { number: 'Ledger version' }], rows.map(row), 'No folder has this id, name or reference.')}
${pager(context, 'after', last && `${last.schemaId}.${last.id}`)}`
  },
}

function row({ id, name, reference, firmId, firmName, years, until, ledgerVersion }: ListedFolder): Html {
  return html`<tr><th scope="row"><a href="/console/folders/${id}">${id}</a></th><td class="text">${outside(name)}</td><td class="text">${outside(reference)}</td>
<td>${firmId} ${outside(firmName, 60)}</td><td class="number">${years}</td><td>${until ?? ''}</td>
<td class="number">${integer(ledgerVersion)}</td></tr>`
}

/** `<schema>.<folder>`. */
function placeIn({ query }: PageContext): FolderPlace | undefined {
  const given = query.get('after')
  if (given === null) return undefined
  const [schemaId, id] = given.split('.').map(readId)
  if (schemaId !== undefined && id !== undefined) return { schemaId, id }
  throw new Refusal(400, 'after is not a place in this list: begin with its first page')
}
