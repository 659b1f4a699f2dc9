/** How far a command is: one line of a terminal that is drawn anew, or a line every few seconds elsewhere. */
import type { Output } from './terminal.ts'

const redrawMs = 100
const lineMs = 5_000
const barCharacters = 24

export interface ProgressBar {
  /** @param share done of it, 0 to 1 */
  show(share: number, text: string): void
  /** Wipes the line: what comes next takes its place. After a failure `run-cli.ts` does. */
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
      // A line that wraps could not be drawn anew.
      const line = `[${bar}] ${text}`.slice(0, (out.columns || 80) - 1)
      out.write(out.isTTY ? `\r\x1b[K${line}` : `${text}\n`)
    },
    clear() {
      if (out.isTTY) out.write('\r\x1b[K')
    },
  }
}

/** How far a step is: bytes of a file, and the lines in them. */
export interface FileProgress {
  step: string
  bytes: number
  bytesTotal: number
  lines: number
}

/** Shows each step of reading a file, with its own rate. */
export function showFileProgress(bar: ProgressBar): (progress: FileProgress) => void {
  let current = ''
  let started = 0
  return ({ step, bytes, bytesTotal, lines }) => {
    const now = performance.now()
    if (step !== current) [current, started] = [step, now]
    const megabytes = [bytes, bytesTotal].map((count) => (count / 1e6).toFixed(1)).join(' of ')
    const rate = Math.round((lines / Math.max(now - started, 1)) * 1000).toLocaleString('en')
    bar.show(bytes / bytesTotal, `${step}: ${megabytes} MB, ${rate} lines/s`)
  }
}
