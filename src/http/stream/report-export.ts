/** Tells telemetry how a streamed export ended, once, whatever ends it. */
import type { Context } from 'hono'
import { AppError } from '../../errors.ts'
import type { LedgersTask } from '../../exports/run/ledgers/task.ts'
import type { ExportSummary, ExportTask } from '../../exports/run/task.ts'
import type { ExportOutcome } from '../../telemetry/metrics.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'

export interface ExportReport {
  /** Only the first call counts. @param summary of one that was sent whole */
  ended(outcome: ExportOutcome, summary?: ExportSummary): void
  /** Before the first byte. What is wrong with the request is no failure of the export. */
  refused(error: unknown): void
}

export function reportExport(
  c: Context<Edge>,
  { telemetry }: Pick<Services, 'telemetry'>,
  task: Pick<ExportTask | LedgersTask, 'what' | 'form'>,
): ExportReport {
  const startedAt = Date.now()
  let isOver = false
  const ended: ExportReport['ended'] = (outcome, summary) => {
    if (isOver) return
    isOver = true
    telemetry.exportEnded({
      kind: 'since' in task && task.since !== undefined ? 'changes' : task.what,
      format: task.form,
      outcome,
      rows: summary?.rows ?? 0,
      bytes: summary?.bytes ?? 0,
      startedAt,
      facts: summary?.facts,
      trace: c.get('telemetry').trace,
      requestId: c.get('requestId'),
    })
  }
  const { outgoing } = c.env
  outgoing.once('close', () => ended('left'))
  return {
    ended,
    refused: (error) => {
      if (error instanceof AppError && error.status < 500) isOver = true
      else ended('failed')
    },
  }
}
