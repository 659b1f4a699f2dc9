/** Answers with many ledgers that a thread sends, and records each of them for the audit. */
import type { Context } from 'hono'
import { errorCodes } from '../../../packages/contract/src/error-codes.ts'
import { answeredRequest } from '../../audit/audit-trail.ts'
import { keepBlocks } from '../../exports/blocks/kept-blocks.sql.ts'
import type { EndedLedger, LedgersTask, NextLedger } from '../../exports/run/ledgers/task.ts'
import { startLedgers } from '../../exports/run/start.ts'
import { wholeFolder } from '../../exports/selection.ts'
import { mediaTypes } from '../../formats/file-formats.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { type BodySource, caching, listStream, reportExport, sourceOf, streamBody } from './stream-export.ts'

/** @param next the ledger that the thread sends next */
export async function streamLedgers(
  c: Context<Edge>,
  services: Services,
  task: LedgersTask,
  next: () => Promise<NextLedger>,
): Promise<Response> {
  const audit = auditLedgers(c, services)
  const report = reportExport(c, services, task)
  const reader = startLedgers(services.threads, task, (ended) => {
    if (ended) {
      audit.ended(ended)
      keep(ended, task, c, services)
    }
    return next()
  })
  const listed = listStream(c, services, task)
  const { outgoing } = c.env
  outgoing.once('close', () => reader.cancel())
  if (outgoing.closed) reader.cancel()
  try {
    // Errors before the first byte are answered with their status.
    const first = await reader.read()
    const source = sourceOf(reader, first, listed, c, services, report, () => {})
    return c.body(streamBody(c, services, 'stream.broken', countingBytes(source, audit.delivered)), 200, {
      ...caching,
      'Content-Type': mediaTypes[task.form],
      ...(task.encoding === 'identity' ? {} : { 'Content-Encoding': task.encoding }),
      'Transfer-Encoding': 'chunked',
    })
  } catch (error) {
    if (reader.cancelled) return c.body(null)
    report.refused(error)
    reader.cancel()
    throw error
  }
}

/** Keeps the digests of a ledger for later answers. It delays no answer, and fails none. */
function keep(
  { asked, cursor, kept }: EndedLedger,
  { schemaId, timeZone }: LedgersTask,
  c: Context<Edge>,
  { database, log }: Services,
): void {
  if (!kept || cursor === undefined) return
  const of = wholeFolder({ schemaId, folderId: asked.society }, timeZone)
  keepBlocks(database, of, cursor, kept).catch((error: unknown) =>
    log('blocks.notKept', { requestId: c.get('requestId'), error }),
  )
}

/** @param delivered called with the bytes that the network has when more are asked for */
function countingBytes(source: BodySource, delivered: (bytes: number) => void): BodySource {
  let bytes = 0
  return {
    ...source,
    read: async () => {
      delivered(bytes)
      const chunk = await source.read()
      bytes += chunk?.length ?? 0
      return chunk
    },
  }
}

/** One row for each ledger. It counts as sent once the network has all of it; of others it is not known what arrived. */
function auditLedgers(c: Context<Edge>, { audit, log }: Services) {
  const requestId = c.get('requestId')
  let waiting: EndedLedger[] = []
  const record = (isWhole: boolean, { asked, cursor, rows, sha256, refusal }: EndedLedger) => {
    const noted = c.get('audited')
    if (!noted) return
    // Of the whole answer.
    const { bytes: _, ...facts } = noted
    const { society, since, entries } = asked
    const selection = { since: since ?? null, entries: entries.length }
    const status = refusal ? errorCodes[refusal.code].status : 200
    const end = { at: new Date(), method: c.req.method, requestId, folderId: society, status, isWhole }
    const ofLedger = { ...facts, selection, cursor, rows, sha256 }
    audit.record(answeredRequest(ofLedger, { ...end, code: refusal?.code }))
  }
  c.env.outgoing.once('close', () => {
    for (const ledger of waiting) record(c.env.outgoing.writableFinished, ledger)
    waiting = []
  })
  return {
    ended(ledger: EndedLedger): void {
      const { refusal, fault, asked } = ledger
      if (refusal && fault !== undefined)
        log('ledger.failed', { requestId, folderId: asked.society, code: refusal.code, error: fault })
      waiting.push({ ...ledger, kept: undefined })
    },
    delivered(bytes: number): void {
      while (waiting[0] && waiting[0].upTo <= bytes) record(true, waiting.shift()!)
    },
  }
}
