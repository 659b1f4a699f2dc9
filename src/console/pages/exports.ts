/**
 * The start page: the streams of this process and the full exports of all processes while they run, and how to cancel
 * them.
 */
import { html } from 'hono/html'
import { z } from 'zod'
import { checkFields } from '../../acts/act.ts'
import { cancelExport, exportOf } from '../../acts/exports.ts'
import { exportId, line } from '../../acts/fields.ts'
import { recordStaffAct } from '../../audit/audit.sql.ts'
import { readCodes } from '../../auth/third-parties.sql.ts'
import { inTransaction } from '../../db/pool.ts'
import type { RunningStream } from '../../http/stream/running-streams.ts'
import { type ExportRecord, listExports } from '../../jobs/jobs.sql.ts'
import type { RunningAttempts } from '../../jobs/running-attempts.ts'
import { exportFacts, exportFolderCell, exportFormatText, exportList } from '../../lists/exports.ts'
import { folderCell } from '../../lists/list.ts'
import { bar, clock, duration, lineField } from '../elements.ts'
import { type PageContext, Refusal, type Route } from '../page.ts'
import { ratesOf } from '../rates.ts'
import { askedAct, confirmation, fieldsOf, noSuchPage, notice, onceAction } from './parts/acts.ts'
import { factList, listTable, type ShownList } from './parts/cells.ts'

const everyMs = 1_000
/** Maximum number of open exports in the list. If there are more, the page says so. */
const openMax = 100
const endedMax = 20

type PerSecond = ReturnType<typeof ratesOf>

export function exportRoutes(attempts: RunningAttempts): Route[] {
  const perSecond = ratesOf(Date.now)
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
${listTable(context, streamList(context, partners, perSecond), streams, {
  elementOf: ({ id }) => id,
  act: ({ id, what }) =>
    html`<a href="/console/streams/${id}/cut">Cut <span class="hidden">the stream of ${what}</span></a>`,
})}
${listTable(context, openList(context), progressOf(open.slice(0, openMax), attempts, perSecond), {
  ...(open.length > openMax && { caption: `Full exports: the oldest ${openMax}` }),
  elementOf: ({ id }) => id,
  act: ({ id }) => html`<a href="/console/exports/${id}/cancel">Cancel <span class="hidden">${id}</span></a>`,
})}
${listTable(context, exportList, ended, {
  caption: 'Full exports that ended last',
  none: 'None has ended.',
  without: ['Attempts', 'SHA-256', 'Triggered'],
  elementOf: ({ id }) => `ended-${id}`,
})}`
      },
    },
    ...cancelRoutes,
    ...cutRoutes,
  ]
}

function summary(streams: number, open: readonly ExportRecord[]): string {
  const running = open.filter(({ state }) => state === 'running').length
  const queued = open.length - running
  const more = open.length > openMax ? 'more than ' : ''
  if (streams + running + queued === 0) return 'Nothing is being exported.'
  return `Streams of this process: ${streams}. Full exports: ${running} running, ${more}${Math.min(queued, openMax)} queued.`
}

function streamList(
  context: PageContext,
  partners: ReadonlyMap<string, string>,
  perSecond: PerSecond,
): ShownList<RunningStream> {
  return {
    caption: 'Streams of this process',
    none: 'No export is streaming from this process.',
    columns: {
      Stream: ({ what, form, encoding }) =>
        html`${what} <small>${form}${encoding === 'identity' ? '' : `, ${encoding}`}</small>`,
      Folder: ({ folderId }) => (folderId === undefined ? 'folders of a firm' : folderCell(folderId)),
      Partner: ({ thirdPartyId }) => partners.get(thirdPartyId ?? '') ?? null,
      Sent: ({ bytes }) => ({ bytes }),
      Rate: ({ id, bytes, since }) => [{ bytes: perSecond(id, bytes, since) }, '/s'],
      Since: ({ since }) => clock(new Date(since), context),
    },
  }
}

type OpenExport = ReturnType<typeof progressOf>[number]

function progressOf(open: readonly ExportRecord[], attempts: RunningAttempts, perSecond: PerSecond) {
  return open.map((record) => {
    if (record.state === 'queued') return { ...record, running: undefined }
    const here = attempts.find(record.id)
    // The process that runs the export updates its row twice a second. If it is this process, its memory is more
    // recent.
    const done = here?.progress.rows ?? Number(record.rows)
    const whole =
      here?.progress.rowsTotal ?? (record.rowsTotal === null ? undefined : Number(record.rowsTotal))
    const rate = Math.round(perSecond(record.id, done, Date.parse(record.createdAt)))
    const thread = here ? String(here.threadId ?? 'waits for one') : 'another process'
    return { ...record, running: { done, whole, bytes: here?.progress.bytes ?? record.bytes, rate, thread } }
  })
}

function openList(context: PageContext): ShownList<OpenExport> {
  return {
    caption: 'Full exports',
    none: 'No full export is queued or running.',
    columns: {
      'Full export': (each) =>
        html`<code>${each.id.slice(0, 15)}</code> <small>${exportFormatText(each)}</small>`,
      Folder: exportFolderCell,
      Progress: ({ id, createdAt, running }) =>
        running
          ? bar(`Progress of ${id}`, running.done, running.whole)
          : `queued for ${duration(Date.now() - Date.parse(createdAt))}`,
      Rows: ({ running }) =>
        running
          ? [{ count: running.done }, ' of ', running.whole === undefined ? '?' : { count: running.whole }]
          : null,
      Bytes: ({ running }) => running && { bytes: running.bytes },
      Rate: ({ running }) => running && [{ count: running.rate }, ' rows/s'],
      Thread: ({ running }) => running?.thread,
      Attempts: ({ attempt }) => ({ count: attempt }),
      Triggered: ({ createdAt }) => clock(new Date(createdAt), context),
    },
  }
}

const cancelRoutes = askedAct({
  path: '/exports/:id/cancel',
  title: 'Cancel an export',
  act: cancelExport,
  back: () => '',
  ask: async (context) => {
    const id = exportId.safeParse(context.params['id']).data
    // `id` is undefined if it contains a NUL, which no text of PostgreSQL can hold. It is then not looked up.
    if (id === undefined) throw noSuchPage()
    return {
      title: 'Cancel the export',
      says: factList(context, exportFacts(await exportOf(context.owner, id))),
      fields: reasonField('Reason, shown to the partner in the status of the export'),
      back: '',
    }
  },
})

const reasonField = (label: string) => lineField(label, 'reason', html` autofocus`)

/** @throws {Refusal} if the stream has ended */
function streamOf({ services, params }: PageContext): RunningStream {
  const stream = services.streams.find(params['id'] ?? '')
  if (stream) return stream
  throw new Refusal(404, 'This stream has ended.')
}

const cutRoutes: Route[] = [
  {
    path: '/streams/:id/cut',
    title: 'Cut a stream',
    render: async (context) => {
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
    },
  },
  onceAction('/streams/:id/cut', async (context, form) => {
    const { reason = null } = checkFields(z.object({ reason: line.optional() }), fieldsOf(form))
    const { id, what, requestId, schemaId, folderId, thirdPartyId } = streamOf(context)
    const { owner, services, staff } = context
    const details = { stream: what, request: requestId, reason }
    await inTransaction(owner, (client) =>
      recordStaffAct(client, { staff, act: 'stream cut', schemaId, folderId, thirdPartyId, details }),
    )
    services.streams.cut(id)
    return { seeOther: '' }
  }),
]
