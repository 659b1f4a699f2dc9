import type { Terminal } from '../../../packages/terminal/src/terminal.ts'
import type { ImportProgress } from '../../ledger/import/import-transaction.ts'

/**
 * Shows each step of reading a file, with its own rate. An import that begins again shows nothing until it is further
 * than before.
 * @param unit name of what `lines` counts
 */
export function showFileProgress(terminal: Pick<Terminal, 'progress'>, unit = 'lines') {
  let current = ''
  let started = 0
  let furthest = 0
  return ({ step, bytes, bytesTotal, lines }: ImportProgress): void => {
    const now = performance.now()
    if (step !== current) [current, started, furthest] = [step, now, 0]
    if (bytes < furthest) return
    furthest = bytes
    const megabytes = [bytes, bytesTotal].map((count) => (count / 1e6).toFixed(1)).join(' of ')
    const rate = Math.round((lines / Math.max(now - started, 1)) * 1000).toLocaleString('en')
    terminal.progress(`${step}: ${megabytes} MB, ${rate} ${unit}/s`, bytes / bytesTotal)
  }
}
