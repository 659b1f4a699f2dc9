import { html } from 'hono/html'
import type { Pool } from 'pg'
import { moveFirmFolder } from '../../../acts/tenants.ts'
import type { ListedAuditRow } from '../../../audit/audit.sql.ts'
import { type ListedToken, listTokens } from '../../../auth/tokens.sql.ts'
import { type ExportRecord, listExports } from '../../../jobs/jobs.sql.ts'
import { type FolderFacts, readFolder, readYears } from '../../../ledger/folders.sql.ts'
import { exportFacts, exportList } from '../../../lists/exports.ts'
import { folderFacts, yearColumns } from '../../../lists/folders.ts'
import { tokenList } from '../../../lists/tokens.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { askedAct } from '../parts/acts.ts'
import { factList, listTable } from '../parts/cells.ts'
import { idOf } from '../parts/forms.ts'
import { notice } from '../parts/notices.ts'
import { outside } from '../parts/outside.ts'
import { field } from '../parts/paging.ts'
import { lastStream, pullTable, readPulls, whoAsked } from './pulls.ts'

/** Readers of the folder that are shown. */
const readersMax = 50
/** Full exports that are shown. */
const exportsMax = 10

export const folderPage: Page = {
  path: '/folders/:id',
  title: 'Folder',
  render: async (context) => {
    const id = idOf(context, 'id', 'folder')
    const folder = await readFolder(context.owner, id)
    if (!folder) throw new Refusal(404, `There is no folder ${id}`)
    const { years, readers, exports, pulls } = await readParts(context.owner, folder)
    return html`<h1>Folder ${id}: ${outside(folder.name)}</h1>
${notice(context)}
${factList(context, folderFacts(folder))}
<p class="buttons"><a class="button" href="/console/folders/${id}/move">Move to another firm</a> <a href="/console/events?folder=${id}">Newest events of this folder</a></p>
${listTable(context, yearColumns(folder), years)}
${lastExport(context, exports, pulls)}
${lastStream(context, pulls)}
${listTable(context, exportList, exports, {
  caption: `Full exports, the newest ${exportsMax}`,
  none: 'No full export of this folder is kept.',
  without: ['Folder'],
})}
${readerTable(context, readers)}
${pullTable(context, pulls)}`
  },
}

/** One after the other: the console has few connections. */
async function readParts(owner: Pool, folder: FolderFacts) {
  return {
    years: await readYears(owner, folder),
    readers: await listTokens(owner, { opens: { ...folder, folderId: folder.id }, most: readersMax + 1 }),
    exports: await listExports(owner, { folderId: folder.id, most: exportsMax }),
    pulls: await readPulls(owner, folder.id),
  }
}

function lastExport(
  context: PageContext,
  exports: readonly ExportRecord[],
  pulls: readonly ListedAuditRow[],
): Html {
  const done = exports.find(({ state }) => state === 'done')
  if (!done)
    return html`<h2>Last full export</h2><p class="none">None of the exports that are kept is complete.</p>`
  return html`<h2>Last full export</h2>${factList(context, exportFacts(done))}
<p>Triggered by ${whoAsked(context, pulls, done.requestId)}</p>`
}

function readerTable(context: PageContext, readers: readonly ListedToken[]): Html {
  const more = readers.length > readersMax ? html`<p>There are more than these ${readersMax}.</p>` : ''
  const words = { caption: 'Who may read it', none: 'No token opens this folder.' }
  return html`${listTable(context, tokenList, readers.slice(0, readersMax), words)}${more}`
}

export const moveFolder = askedAct({
  path: '/folders/:id/move',
  title: 'Move a folder',
  act: moveFirmFolder,
  back: ({ folderId }) => `/folders/${folderId}`,
  ask: async (context) => {
    const id = idOf(context, 'id', 'folder')
    const folder = await readFolder(context.owner, id)
    if (!folder) throw new Refusal(404, `There is no folder ${id}`)
    return {
      title: `Move folder ${id}`,
      says: html`<p>${outside(folder.name)} leaves firm ${folder.firmId}, ${outside(folder.firmName)}. Tokens and subscriptions of that firm no longer see it; those of the new firm do. Its own tokens stay. Both firms are told by an event.</p>`,
      fields: field(
        `Id of the new firm, of tenant ${folder.schemaId}`,
        html`<input name="firm" required inputmode="numeric" pattern="[0-9]{1,16}" autocomplete="off">`,
      ),
      back: `/folders/${id}`,
    }
  },
})
