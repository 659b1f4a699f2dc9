/**
 * How far a command is: on a terminal one line that is redrawn, elsewhere a plain line every few seconds. Seconds begin with
 * the first text after other output: else a command that waits for work would show each piece of it at 0.
 */
import { printable } from './printable.ts'
import type { Output } from './streams.ts'

const redrawMs = 100
const lineMs = 5_000
const barCharacters = 24
const widthDefault = 80
const clearLine = '\r\x1b[K'

/** @param now milliseconds, of any origin */
export function createProgressLine(out: Output, now: () => number) {
  let shownAt: number | undefined
  let isDrawn = false
  return {
    /** @param done share, 0 to 1; without it there is no bar */
    show(text: string, done?: number): void {
      shownAt ??= out.isTTY ? Number.NEGATIVE_INFINITY : now()
      if (now() - shownAt < (out.isTTY ? redrawMs : lineMs)) return
      shownAt = now()
      const line = printable(text)
      if (!out.isTTY) return void out.write(`${line}\n`)
      // A line that wraps could not be redrawn.
      out.write(clearLine + `${barOf(done)}${line}`.slice(0, (out.columns || widthDefault) - 1))
      isDrawn = true
    },
    clear(): void {
      if (isDrawn) out.write(clearLine)
      isDrawn = false
      shownAt = undefined
    },
  }
}

function barOf(done: number | undefined): string {
  if (done === undefined) return ''
  const filled = Math.floor(Math.min(Math.max(done, 0), 1) * barCharacters)
  return `[${'#'.repeat(filled).padEnd(barCharacters, '.')}] `
}
