/** The start page: streams of this process and full exports of all processes, as they run; and cancelling them. */
import { html } from 'hono/html'
import { z } from 'zod'
import { checkFields } from '../../acts/act.ts'
import * as acts from '../../acts/exports.ts'
import { exportId, line, lineCharactersMax } from '../../acts/fields.ts'
import { recordStaffAct } from '../../audit/audit.sql.ts'
import { readCodes } from '../../auth/third-parties.sql.ts'
import { inTransaction } from '../../db/pool.ts'
import type { RunningStream } from '../../http/stream/running-streams.ts'
import { type ExportRecord, findRecord, listExports } from '../../jobs/jobs.sql.ts'
import type { RunningAttempts } from '../../jobs/running-attempts.ts'
import { exportFacts, exportList, folderOf, formatOf } from '../../lists/exports.ts'
import { bar, bytes, clock, duration, integer, table } from '../elements.ts'
import { type Action, type Html, type Page, type PageContext, Refusal } from '../page.ts'
import { Rates } from '../rates.ts'
import { askedAct, confirmation } from './parts/acts.ts'
import { cellHtml, factList, listTable } from './parts/cells.ts'
import { fieldsOf, onceAction } from './parts/forms.ts'
import { notice } from './parts/notices.ts'
import { field } from './parts/paging.ts'

const everyMs = 1_000
/** Open exports that are listed; a queue that is longer says so. */
const openMax = 100
const endedMax = 20

export function exportPages(attempts: RunningAttempts): Page[] {
  const rates = new Rates(Date.now)
  return [
    {
      path: '',
      title: 'Exports',
      navigation: 'Exports',
      everyMs,
      render: async (context) => {
        const { owner, services } = context
        const streams = services.streams.list()
        const open = await listExports(owner, { order: 'oldest that is open', most: openMax + 1 })
        const partners = await readCodes(
          owner,
          streams.flatMap(({ thirdPartyId }) => thirdPartyId ?? []),
        )
        const ended = await listExports(owner, { order: 'ended last', most: endedMax })
        return html`<h1>Exports</h1>
${notice(context)}
<p role="status" aria-live="polite">${summary(streams.length, open)}</p>
${streamTable(streams, partners, rates, context)}
${openTable(open, attempts, rates, context)}
${listTable(context, exportList, ended, {
  caption: 'Full exports that ended last',
  none: 'None has ended.',
  without: ['Attempts', 'SHA-256', 'Triggered'],
  elementOf: ({ id }) => `ended-${id}`,
})}`
      },
    },
    cancelExport.page,
    { path: '/streams/:id/cut', title: 'Cut a stream', render: cutPage },
  ]
}

export function exportActions(): Action[] {
  return [cancelExport.action, cutStream]
}

function summary(streams: number, open: readonly ExportRecord[]): string {
  const running = open.filter(({ state }) => state === 'running').length
  const queued = open.length - running
  const more = open.length > openMax ? 'more than ' : ''
  if (streams + running + queued === 0) return 'Nothing is being exported.'
  return `Streams of this process: ${streams}. Full exports: ${running} running, ${more}${Math.min(queued, openMax)} queued.`
}

function streamTable(
  streams: readonly RunningStream[],
  partners: ReadonlyMap<string, string>,
  rates: Rates,
  context: PageContext,
): Html {
  const rows = streams.map(
    (stream) => html`<tr id="${stream.id}">
<th scope="row">${stream.what} <small>${stream.form}${stream.encoding === 'identity' ? '' : `, ${stream.encoding}`}</small></th>
<td>${stream.folderId === undefined ? 'folders of a firm' : folderLink(stream.folderId)}</td>
<td>${partners.get(stream.thirdPartyId ?? '') ?? ''}</td>
<td class="number">${bytes(stream.bytes)}</td>
<td class="number">${bytes(rates.perSecond(stream.id, stream.bytes, stream.since))}/s</td>
<td>${clock(new Date(stream.since), context)}</td>
<td class="act"><a href="/console/streams/${stream.id}/cut">Cut <span class="hidden">the stream of ${stream.what}</span></a></td>
</tr>`,
  )
  const heads = ['Stream', 'Folder', 'Partner', { number: 'Sent' }, { number: 'Rate' }, 'Since', 'Act']
  return table('Streams of this process', heads, rows, 'No export is streaming from this process.')
}

function openTable(
  open: readonly ExportRecord[],
  attempts: RunningAttempts,
  rates: Rates,
  context: PageContext,
): Html {
  const rows = open.slice(0, openMax).map((each) => {
    const cells = each.state === 'queued' ? queuedCells(each) : runningCells(each, attempts, rates)
    return html`<tr id="${each.id}">
<th scope="row"><code>${each.id.slice(0, 15)}</code> <small>${formatOf(each)}</small></th>
<td>${cellHtml(context, folderOf(each))}</td>
${cells}
<td class="number">${each.attempt}</td>
<td>${clock(new Date(each.createdAt), context)}</td>
<td class="act"><a href="/console/exports/${each.id}/cancel">Cancel <span class="hidden">${each.id}</span></a></td>
</tr>`
  })
  const numbers = ['Rows', 'Bytes', 'Rate'].map((number) => ({ number }))
  const heads = [
    'Full export',
    'Folder',
    'Progress',
    ...numbers,
    'Thread',
    { number: 'Attempts' },
    'Triggered',
    'Act',
  ]
  const caption = open.length > openMax ? `Full exports: the oldest ${openMax}` : 'Full exports'
  return table(caption, heads, rows, 'No full export is queued or running.')
}

function queuedCells({ createdAt }: ExportRecord): Html {
  return html`<td>queued for ${duration(Date.now() - Date.parse(createdAt))}</td><td></td><td></td><td></td><td></td>`
}

function runningCells(each: ExportRecord, attempts: RunningAttempts, rates: Rates): Html {
  const here = attempts.find(each.id)
  // The row is renewed twice a second; the memory of this process is newer.
  const done = here?.progress.rows ?? Number(each.rows)
  const whole = here?.progress.rowsTotal ?? (each.rowsTotal === null ? undefined : Number(each.rowsTotal))
  const rate = rates.perSecond(each.id, done, Date.parse(each.createdAt))
  const place = here ? (here.threadId ?? 'waits for one') : 'another process'
  return html`<td>${bar(`Progress of ${each.id}`, done, whole)}</td>
<td class="number">${integer(done)} of ${whole === undefined ? '?' : integer(whole)}</td>
<td class="number">${bytes(here?.progress.bytes ?? each.bytes)}</td>
<td class="number">${integer(Math.round(rate))} rows/s</td>
<td>${place}</td>`
}

const folderLink = (folderId: string) => html`<a href="/console/folders/${folderId}">${folderId}</a>`

/** @throws {Refusal} if there is none. PostgreSQL has no text with a NUL, so such an id is not looked up */
async function exportOf({ owner, params }: PageContext): Promise<ExportRecord> {
  const id = params['id'] ?? ''
  const found = exportId.safeParse(id).success ? await findRecord(owner, id) : undefined
  if (found) return found
  throw new Refusal(404, 'There is no such full export.')
}

const cancelExport = askedAct({
  path: '/exports/:id/cancel',
  title: 'Cancel an export',
  act: acts.cancelExport,
  back: () => '',
  ask: async (context) => ({
    title: 'Cancel the export',
    says: factList(context, exportFacts(await exportOf(context))),
    fields: reasonField('Reason, shown to the partner in the status of the export'),
    back: '',
  }),
})

function reasonField(label: string): Html {
  return field(label, html`<input name="reason" maxlength="${lineCharactersMax}" autofocus>`)
}

/** @throws {Refusal} */
function streamOf({ services, params }: PageContext): RunningStream {
  const stream = services.streams.find(params['id'] ?? '')
  if (stream) return stream
  throw new Refusal(404, 'This stream has ended.')
}

async function cutPage(context: PageContext): Promise<Html> {
  const stream = streamOf(context)
  return confirmation(context, {
    title: 'Cut the stream',
    says: html`<p>The partner sees a broken transfer, and may call again at once.</p>
${factList(context, {
  Stream: `${stream.what} ${stream.form}`,
  Folder: stream.folderId ?? 'folders of a firm',
  Request: { code: stream.requestId },
  Since: { at: new Date(stream.since) },
  Sent: { bytes: stream.bytes },
})}`,
    fields: reasonField('Reason, for the audit'),
    back: '',
  })
}

const cutStream = onceAction('/streams/:id/cut', async (context, form) => {
  const { reason = null } = checkFields(z.object({ reason: line.optional() }), fieldsOf(form))
  const { id, what, requestId, schemaId, folderId, thirdPartyId } = streamOf(context)
  const { owner, services, staff } = context
  const details = { stream: what, request: requestId, reason }
  await inTransaction(owner, (client) =>
    recordStaffAct(client, { staff, act: 'stream cut', schemaId, folderId, thirdPartyId, details }),
  )
  services.streams.cut(id)
  return { seeOther: '' }
})
