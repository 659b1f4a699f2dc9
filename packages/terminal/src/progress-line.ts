/**
 * How far a command is: on a terminal one line that is redrawn, elsewhere the latest text as a plain line every ten
 * seconds, also while nothing new is said: a wait for the service may take minutes.
 */
import { printable } from './printable.ts'
import type { Output } from './streams.ts'

const redrawMs = 100
const lineMs = 10_000
const barCharacters = 24
const widthDefault = 80
const clearLine = '\r\x1b[K'

export function createProgressLine(out: Output) {
  let shownAt = Number.NEGATIVE_INFINITY
  let isDrawn = false
  let latest = ''
  let lines: NodeJS.Timeout | undefined
  return {
    /** @param done share, 0 to 1; without it there is no bar */
    show(text: string, done?: number): void {
      if (!out.isTTY) {
        latest = text
        lines ??= setInterval(() => out.write(`${printable(latest)}\n`), lineMs).unref()
        return
      }
      if (performance.now() - shownAt < redrawMs) return
      shownAt = performance.now()
      // A line that wraps could not be redrawn.
      const line = `${barOf(done)}${printable(text)}`.slice(0, (out.columns || widthDefault) - 1)
      out.write(clearLine + line)
      isDrawn = true
    },
    clear(): void {
      if (isDrawn) out.write(clearLine)
      isDrawn = false
      shownAt = Number.NEGATIVE_INFINITY
      clearInterval(lines)
      lines = undefined
    },
  }
}

function barOf(done: number | undefined): string {
  if (done === undefined) return ''
  const filled = Math.floor(Math.min(Math.max(done, 0), 1) * barCharacters)
  return `[${'#'.repeat(filled).padEnd(barCharacters, '.')}] `
}
