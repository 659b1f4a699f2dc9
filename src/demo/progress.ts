/** How far something is: one line of a terminal that is drawn anew, or lines at most once a second elsewhere. */
export interface Progress {
  /** @param share done of it, 0 to 1 */
  show(share: number, text: string): void
  /** Wipes the line; the result takes its place. */
  clear(): void
}

const barCharacters = 24
const redrawMs = 100
const lineMs = 1_000

/** @param label what is under way, in a few words */
export function createProgress(label: string, out: NodeJS.WriteStream = process.stdout): Progress {
  let shown = out.isTTY ? 0 : performance.now()
  return {
    show(share, text) {
      const now = performance.now()
      if (now - shown < (out.isTTY ? redrawMs : lineMs)) return
      shown = now
      if (!out.isTTY) {
        out.write(`${label}: ${text}\n`)
        return
      }
      const bar = '#'.repeat(Math.floor(Math.min(share, 1) * barCharacters)).padEnd(barCharacters, '.')
      // A line that wraps could not be drawn anew.
      out.write(`\r\x1b[K${`${label} [${bar}] ${text}`.slice(0, (out.columns || 80) - 1)}`)
    },
    clear() {
      if (out.isTTY) out.write('\r\x1b[K')
    },
  }
}
