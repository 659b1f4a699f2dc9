/** Firms and folders: their lists, the page of a firm or a folder, creating both, and moving a folder. */
import { html } from 'hono/html'
import type { Pool } from 'pg'
import {
  createFirmFolder,
  createTenantFirm,
  firmOf,
  folderOf,
  moveFirmFolder,
  siretText,
} from '../../acts/tenants.ts'
import { type ListedAuditRow, listAudit } from '../../audit/audit.sql.ts'
import { listTokens } from '../../auth/tokens.sql.ts'
import { type ExportRecord, listExports } from '../../jobs/jobs.sql.ts'
import { type FolderFacts, readYears } from '../../ledger/folders.sql.ts'
import { auditList, callerCell, momentOf } from '../../lists/audit.ts'
import { exportFacts, exportList } from '../../lists/exports.ts'
import { firmFacts, firmList, folderFacts, folderList, yearColumns } from '../../lists/folders.ts'
import { tokenList } from '../../lists/partners.ts'
import { idField, lineField, required } from '../elements.ts'
import type { Html, Page, PageContext, Route } from '../page.ts'
import { actAction, askedAct, idOf, notice, onceForm } from './parts/acts.ts'
import { cellHtml, factList, foreign, listTable } from './parts/cells.ts'
import { listPage, pagedTable, searchFilter } from './parts/list-page.ts'

/**
 * On the page of a folder: the maximum numbers of readers, full exports and audit rows that are shown, and of audit
 * rows that are searched.
 */
const readersMax = 50
const exportsMax = 10
const auditRowsMax = 20
const auditRowsRead = 200

const firmPage: Page = {
  path: '/firms/:id',
  title: 'Firm',
  render: async (context) => {
    const firm = await firmOf(context.owner, idOf(context))
    const folders = await pagedTable(
      context,
      folderList,
      { firm: firm.id },
      { none: 'This firm has no folder.', without: ['Firm'] },
    )
    return html`<h1>Firm ${firm.id}: ${foreign(firm.name)}</h1>
${notice(context)}
${factList(context, firmFacts(firm))}
${folders}
<h2>Make an empty folder</h2>
${onceForm(
  context,
  `/firms/${firm.id}/folders`,
  html`${lineField('Name', 'name', required)}
${lineField("Reference: the firm's own name of the folder, if any", 'reference')}
${lineField(`SIREN or SIRET, if known: ${siretText}`, 'siret')}
<button>Make</button>`,
)}`
  },
}

function firmForm(context: PageContext): Html {
  return html`<h2>Make a firm</h2>
${onceForm(
  context,
  '/firms',
  html`${lineField('Name', 'name', required)}
${lineField(`SIREN or SIRET, if known: ${siretText}`, 'siret')}
${idField('Id of a firm whose tenant the new firm joins, so that folders can move between both; empty: a tenant of its own', 'beside')}
<button>Make</button>`,
)}`
}

const folderPage: Page = {
  path: '/folders/:id',
  title: 'Folder',
  render: async (context) => {
    const folder = await folderOf(context.owner, idOf(context))
    const { id } = folder
    const { years, readers, exports, pulls } = await readParts(context.owner, folder)
    return html`<h1>Folder ${id}: ${foreign(folder.name)}</h1>
${notice(context)}
${factList(context, folderFacts(folder))}
<p class="buttons"><a class="button" href="/console/folders/${id}/move">Move to another firm</a> <a href="/console/events?folder=${id}">Newest events of this folder</a></p>
${listTable(context, yearColumns(folder), years)}
<h2>Last full export</h2>${lastExport(context, exports, pulls)}
<h2>Last stream</h2>${lastStream(context, pulls)}
${listTable(context, exportList, exports, {
  caption: `Full exports, the newest ${exportsMax}`,
  none: 'No full export of this folder is kept.',
  without: ['Folder'],
})}
${listTable(context, tokenList, readers.slice(0, readersMax), {
  caption: 'Who may read it',
  none: 'No token opens this folder.',
})}${readers.length > readersMax ? html`<p>There are more than these ${readersMax}.</p>` : ''}
${listTable(context, auditList, pulls.slice(0, auditRowsMax), {
  caption: `Audit: the newest ${auditRowsMax} rows`,
  none: 'The audit has no row of this folder.',
  without: ['Folder', 'Details', 'Hash'],
})}`
  },
}

/** Reads the parts of the page one after the other, because the console has few connections. */
async function readParts(owner: Pool, folder: FolderFacts) {
  return {
    years: await readYears(owner, folder),
    readers: await listTokens(owner, { opens: { ...folder, folderId: folder.id }, most: readersMax + 1 }),
    exports: await listExports(owner, { folderId: folder.id, most: exportsMax }),
    /** Rows of the audit, newest first. */
    pulls: await listAudit(owner, { folderId: folder.id, most: auditRowsRead }),
  }
}

function lastExport(context: PageContext, exports: readonly ExportRecord[], pulls: ListedAuditRow[]): Html {
  const done = exports.find(({ state }) => state === 'done')
  if (!done) return html`<p class="none">None of the exports that are kept is complete.</p>`
  const trigger = pulls.find(({ requestId }) => requestId === done.requestId)
  return html`${factList(context, exportFacts(done))}
<p>Triggered by ${
    trigger
      ? cellHtml(context, callerCell(trigger))
      : html`<span class="none">not in the newest ${auditRowsRead} rows of the audit</span>`
  }</p>`
}

/** The last stream that its caller received completely, with the evidence of what they got. */
function lastStream(context: PageContext, pulls: ListedAuditRow[]): Html {
  const sent = pulls.find(
    ({ outcome, sha256, bytes }) => outcome === 'sent' && sha256 !== null && bytes !== null,
  )
  if (!sent) return html`<p class="none">None in the newest ${auditRowsRead} rows of the audit.</p>`
  return factList(context, {
    Ended: { at: momentOf(sent.at) },
    Who: callerCell(sent),
    Request: [sent.act, ' ', { code: sent.requestId ?? '' }],
    Selection: { foreign: sent.details, most: 500 },
    Rows: sent.rows && { count: sent.rows },
    'SHA-256': { digest: sent.sha256 },
    Cursor: { digest: sent.cursor },
  })
}

export const folderRoutes: readonly Route[] = [
  listPage({ path: '/firms', title: 'Firms' }, firmList, {}, { below: firmForm }),
  firmPage,
  listPage({ path: '/folders', title: 'Folders' }, folderList, {
    search: searchFilter('Id, or a part of the name or reference'),
  }),
  folderPage,
  actAction({
    path: '/firms',
    act: createTenantFirm,
    back: ({ details }) => `/firms/${details!['firmId']}`,
  }),
  actAction({
    path: '/firms/:firm/folders',
    act: createFirmFolder,
    back: ({ folderId }) => `/folders/${folderId}`,
  }),
  ...askedAct({
    path: '/folders/:id/move',
    title: 'Move a folder',
    act: moveFirmFolder,
    ask: async (context) => {
      const { id, name, firmId, firmName, schemaId } = await folderOf(context.owner, idOf(context))
      return {
        title: `Move folder ${id}`,
        says: html`<p>${foreign(name)} leaves firm ${firmId}, ${foreign(firmName)}. Tokens and subscriptions of that firm no longer see it; those of the new firm do. Tokens of the folder itself stay valid. Both firms get an event.</p>`,
        fields: idField(`Id of the new firm, of tenant ${schemaId}`, 'firm', required),
      }
    },
  }),
]
