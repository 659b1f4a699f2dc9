/** Progress of a command: on a terminal one line that is redrawn, elsewhere a line every few seconds. */
import { printable } from '../../../packages/terminal/src/printable.ts'
import type { Output } from './terminal.ts'

const redrawMs = 100
const lineMs = 5_000
const barCharacters = 24

export interface ProgressBar {
  /** @param share completed share, 0 to 1 */
  show(share: number, text: string): void
  /** Clears the line for the next output. After a failure `run-cli.ts` does this. */
  clear(): void
}

export function createProgressBar(out: Output): ProgressBar {
  let shown = out.isTTY ? 0 : performance.now()
  return {
    show(share, text) {
      const now = performance.now()
      if (now - shown < (out.isTTY ? redrawMs : lineMs)) return
      shown = now
      const bar = '#'.repeat(Math.floor(share * barCharacters)).padEnd(barCharacters, '.')
      const safe = printable(text)
      // A line that wraps could not be redrawn.
      const line = `[${bar}] ${safe}`.slice(0, (out.columns || 80) - 1)
      out.write(out.isTTY ? `\r\x1b[K${line}` : `${safe}\n`)
    },
    clear() {
      if (out.isTTY) out.write('\r\x1b[K')
    },
  }
}

/** Progress of a step: bytes of a file, and lines or movements. */
export interface FileProgress {
  step: string
  bytes: number
  bytesTotal: number
  lines: number
}

/**
 * Shows each step of reading a file, with its own rate. An import that begins again shows nothing until it is further than
 * before. @param unit what `lines` counts
 */
export function showFileProgress(bar: ProgressBar, unit = 'lines'): (progress: FileProgress) => void {
  let current = ''
  let started = 0
  let furthest = 0
  return ({ step, bytes, bytesTotal, lines }) => {
    const now = performance.now()
    if (step !== current) [current, started, furthest] = [step, now, 0]
    if (bytes < furthest) return
    furthest = bytes
    const megabytes = [bytes, bytesTotal].map((count) => (count / 1e6).toFixed(1)).join(' of ')
    const rate = Math.round((lines / Math.max(now - started, 1)) * 1000).toLocaleString('en')
    bar.show(bytes / bytesTotal, `${step}: ${megabytes} MB, ${rate} ${unit}/s`)
  }
}
