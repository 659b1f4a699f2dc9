import { html } from 'hono/html'
import type { Pool } from 'pg'
import type { ListedAuditRow } from '../../../audit/audit.sql.ts'
import { type ListedToken, listTokens } from '../../../auth/tokens.sql.ts'
import { type ExportRecord, listExports } from '../../../jobs/jobs.sql.ts'
import { exportFacts, exportList } from '../../../lists/exports.ts'
import { tokenList } from '../../../lists/tokens.ts'
import { facts, integer, table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { factList, listTable } from '../parts/cells.ts'
import { idOf } from '../parts/forms.ts'
import { outside } from '../parts/outside.ts'
import {
  countedMax,
  draftsMax,
  type FolderFacts,
  readFolder,
  readYears,
  type YearFacts,
} from './folders.sql.ts'
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
${folderFacts(context, folder)}
${table(
  'Years',
  ['Id', 'From', 'To', 'State', { number: 'Entries' }, { number: 'Movements' }],
  years.map((year) => yearRow(context, folder, year)),
  'This folder has no year.',
)}
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

function folderFacts(context: PageContext, folder: FolderFacts): Html {
  const { schemaId, id, firmId } = folder
  return facts([
    ['Reference', outside(folder.reference)],
    ['SIRET or SIREN', outside(folder.siret)],
    ['Firm', html`${firmId} ${outside(folder.firmName)}`],
    ['Tenant', html`${schemaId} ${outside(folder.schemaName)}`],
    ['Currency', folder.currency],
    ['Created', time(folder.createdAt, context)],
    ['Ledger version', integer(folder.ledgerVersion)],
    ['Last change', lastChange(context, folder)],
    ['Drafts', folder.drafts > draftsMax ? `more than ${integer(draftsMax)}` : integer(folder.drafts)],
    ['Events', html`<a href="/console/events?folder=${id}">Newest events of this folder</a>`],
  ])
}

/** The log has no changes of years, banks and taxes, and forgets old ones. */
function lastChange(context: PageContext, { ledgerVersion, loggedVersion, loggedAt }: FolderFacts): Html {
  if (loggedVersion === null) return html`<span class="none">not in the log of changes</span>`
  if (loggedVersion === ledgerVersion) return time(loggedAt, context)
  return html`after ${time(loggedAt, context)}, when version ${integer(loggedVersion)} was written`
}

function yearRow(context: PageContext, folder: FolderFacts, year: YearFacts): Html {
  const { id, startDate, endDate, closedAt } = year
  const state = closedAt === null ? html`open` : html`closed ${time(closedAt, context)}`
  return html`<tr><th scope="row">${id}</th><td>${startDate}</td><td>${endDate}</td><td>${state}</td>
<td class="number">${entriesOf(year)}</td><td class="number">${movementsOf(folder, year)}</td></tr>`
}

/** Exact up to `countedMax`; an estimate from the movements of the first ones beyond. */
function entriesOf({ entries, sampled, streamed }: YearFacts): string {
  if (entries <= countedMax) return integer(entries)
  if (streamed === null || !sampled) return `more than ${integer(countedMax)}`
  const estimate = (Number(streamed) * entries) / sampled
  return `about ${integer(Math.max(countedMax, Number(estimate.toPrecision(3))))}`
}

/** Exact up to `countedMax`; beyond, what the last complete stream of the year found. */
function movementsOf(
  { ledgerVersion }: FolderFacts,
  { movements, streamed, streamedVersion }: YearFacts,
): Html {
  if (movements <= countedMax) return html`${integer(movements)}`
  if (streamed === null) return html`more than ${integer(countedMax)}`
  if (streamedVersion === ledgerVersion) return html`${integer(streamed)}`
  return html`${integer(streamed)} at version ${integer(streamedVersion!)}`
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
