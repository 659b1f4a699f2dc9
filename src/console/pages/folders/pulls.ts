/** What the audit knows of a folder: who read it, when, and the evidence of what they got. */
import { html } from 'hono/html'
import type { Pool } from 'pg'
import { type ListedAuditRow, listAudit } from '../../../audit/audit.sql.ts'
import { auditList, momentOf, whoOf } from '../../../lists/audit.ts'
import type { Html, PageContext } from '../../page.ts'
import { cellHtml, factList, listTable } from '../parts/cells.ts'

/** Rows of the audit that are looked through, and those that are shown. */
const readMax = 200
const shownMax = 20

/** Newest first. */
export function readPulls(owner: Pool, folderId: string): Promise<ListedAuditRow[]> {
  return listAudit(owner, { folderId, most: readMax })
}

/** Who triggered an export, if its request is among the rows. */
export function whoAsked(
  context: PageContext,
  pulls: readonly ListedAuditRow[],
  requestId: string,
): Html | string {
  const row = pulls.find((each) => each.requestId === requestId)
  if (row) return cellHtml(context, whoOf(row))
  return html`<span class="none">not in the newest ${readMax} rows of the audit</span>`
}

/** The last stream that arrived whole. */
export function lastStream(context: PageContext, pulls: readonly ListedAuditRow[]): Html {
  const sent = pulls.find(
    ({ outcome, sha256, bytes }) => outcome === 'sent' && sha256 !== null && bytes !== null,
  )
  if (!sent)
    return html`<h2>Last stream</h2><p class="none">None in the newest ${readMax} rows of the audit.</p>`
  return html`<h2>Last stream</h2>${factList(context, {
    Ended: { at: momentOf(sent.at) },
    Who: whoOf(sent),
    Request: [sent.act, ' ', { code: sent.requestId ?? '' }],
    Selection: { theirs: sent.details, most: 500 },
    Rows: sent.rows && { count: sent.rows },
    'SHA-256': { digest: sent.sha256 },
    Cursor: { digest: sent.cursor },
  })}`
}

export function pullTable(context: PageContext, pulls: readonly ListedAuditRow[]): Html {
  return listTable(context, auditList, pulls.slice(0, shownMax), {
    caption: `Audit: the newest ${shownMax} rows`,
    none: 'The audit has no row of this folder.',
    without: ['Folder', 'Details', 'Hash'],
  })
}
