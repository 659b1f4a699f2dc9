/** What runs now, on standard error: one bar that moves on a terminal, a line at every step elsewhere. */

/** @param share done of it, 0 to 1 */
export type ReportProgress = (what: string, share: number) => void

const barLength = 30

export function createProgress(out: NodeJS.WriteStream = process.stderr): {
  report: ReportProgress
  end(): void
} {
  let last = ''
  const report: ReportProgress = (what, share) => {
    if (out.isTTY) {
      const filled = Math.round(share * barLength)
      // A line that wraps could not be drawn anew.
      const line = `${'█'.repeat(filled)}${'░'.repeat(barLength - filled)} ${what}`
      out.write(`\r\x1b[2K${line.slice(0, (out.columns || 80) - 1)}`)
    } else if (what !== last) {
      out.write(`${what}\n`)
    }
    last = what
  }
  return { report, end: () => void (out.isTTY && last !== '' && out.write('\r\x1b[2K')) }
}
