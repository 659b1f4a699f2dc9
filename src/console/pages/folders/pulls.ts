/** What the audit knows of a folder: who read it, when, and the evidence of what they got. */
import { html } from 'hono/html'
import type { Pool } from 'pg'
import { listAudit } from '../../../audit/audit.sql.ts'
import type { AuditRow } from '../../../audit/audit-row.ts'
import { facts, integer, table, time } from '../../elements.ts'
import type { Html, PageContext } from '../../page.ts'
import { readCodes } from '../partners/partners.sql.ts'
import { outside, short, whole } from '../parts/outside.ts'

/** Rows of the audit that are looked through, and those that are shown. */
const readMax = 200
const shownMax = 20

export interface Pulls {
  /** Newest first. */
  rows: readonly AuditRow[]
  /** By id of the third party. */
  codes: ReadonlyMap<string, string>
}

export async function readPulls(owner: Pool, folderId: string): Promise<Pulls> {
  const rows = await listAudit(owner, { folderId, most: readMax })
  const ids = new Set(rows.flatMap(({ thirdPartyId }) => thirdPartyId ?? []))
  return { rows, codes: await readCodes(owner, [...ids]) }
}

/** Who triggered an export, if its request is among the rows. */
export function whoAsked({ rows, codes }: Pulls, requestId: string): Html {
  const row = rows.find((each) => each.requestId === requestId)
  return row
    ? who(row, codes)
    : html`<span class="none">not in the newest ${readMax} rows of the audit</span>`
}

function who({ thirdPartyId, tokenId, staff }: AuditRow, codes: Pulls['codes']): Html {
  if (thirdPartyId === null) return outside(staff)
  const code = codes.get(thirdPartyId)
  const token = tokenId === null ? '' : `, token ${tokenId}`
  if (code === undefined) return html`third party ${thirdPartyId}${token}`
  return html`<a href="/console/partners/${code}">${code}</a>${token}`
}

/** The last stream that arrived whole. */
export function lastStream(context: PageContext, { rows, codes }: Pulls): Html {
  const sent = rows.find(
    ({ outcome, sha256, bytes }) => outcome === 'sent' && sha256 !== null && bytes !== null,
  )
  if (!sent)
    return html`<h2>Last stream</h2><p class="none">None in the newest ${readMax} rows of the audit.</p>`
  return html`<h2>Last stream</h2>${facts([
    ['Ended', time(moment(sent.at), context)],
    ['Who', who(sent, codes)],
    ['Request', html`${sent.act} <code>${sent.requestId}</code>`],
    ['Selection', html`<code>${outside(sent.details, 500)}</code>`],
    ['Rows', sent.rows === null ? html`<span class="none">none</span>` : integer(sent.rows)],
    ['SHA-256', whole(sent.sha256)],
    ['Cursor', whole(sent.cursor)],
  ])}`
}

export function pullTable(context: PageContext, { rows, codes }: Pulls): Html {
  const heads = ['At', 'Who', 'What', { number: 'Rows' }, 'SHA-256', 'Cursor', 'Outcome']
  const shown = rows.slice(0, shownMax).map(
    (
      each,
    ) => html`<tr><th scope="row">${time(moment(each.at), context)}</th><td>${who(each, codes)}</td><td class="text">${outside(each.act, 80)}</td>
<td class="number">${each.rows === null ? '' : integer(each.rows)}</td><td>${short(each.sha256)}</td><td>${short(each.cursor)}</td>
<td>${each.outcome}${each.code === null ? '' : ` ${each.code}`}</td></tr>`,
  )
  return table(`Audit: the newest ${shownMax} rows`, heads, shown, 'The audit has no row of this folder.')
}

/** @param seconds since 1970, with decimals */
function moment(seconds: string): Date {
  return new Date(Number(seconds) * 1000)
}
