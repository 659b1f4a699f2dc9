/** Answers with many ledgers that a thread sends, and records each of them for the audit. */
import type { Context } from 'hono'
import { errorCodes } from '../../../packages/contract/src/error-codes.ts'
import { answeredRequest } from '../../audit/audit-trail.ts'
import type { EndedLedger, LedgersTask, NextLedger } from '../../exports/run/ledgers/task.ts'
import { startLedgers } from '../../exports/run/start.ts'
import { wholeFolder } from '../../exports/selection.ts'
import { caching, contentHeaders } from '../representation.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { answerFrom, keep } from './stream-export.ts'

/** @param next the ledger that the thread sends next */
export async function streamLedgers(
  c: Context<Edge>,
  services: Services,
  task: LedgersTask,
  next: () => Promise<NextLedger>,
): Promise<Response> {
  const audit = auditLedgers(c, services)
  const reader = startLedgers(services.threads, task, (ended) => {
    if (ended) {
      audit.ended(ended)
      const { asked, cursor, kept } = ended
      const { schemaId, timeZone } = task
      const ledger = wholeFolder({ schemaId, folderId: asked.society }, timeZone)
      if (kept) keep(c, services, ledger, cursor, kept)
    }
    return next()
  })
  return answerFrom(c, services, task, reader, {
    headers: () => ({ ...caching, ...contentHeaders(task) }),
    delivered: audit.delivered,
  })
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
