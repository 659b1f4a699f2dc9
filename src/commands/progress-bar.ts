const redrawMs = 100
const barCharacters = 24

/** How far a step is: bytes of a file, and the lines in them. */
export interface FileProgress {
  step: string
  bytes: number
  bytesTotal: number
  lines: number
}

/** Draws on one line of the terminal, and wipes it at the end of `lastStep`. Draws nothing where there is no terminal. */
export function progressBar(lastStep: string): (progress: FileProgress) => void {
  if (!process.stderr.isTTY) return () => {}
  let step = ''
  let started = 0
  let drawn = 0
  return (progress) => {
    const now = performance.now()
    if (progress.step !== step) [step, started] = [progress.step, now]
    const done = progress.bytes >= progress.bytesTotal
    if (now - drawn < redrawMs && !done) return
    drawn = now
    const full = Math.round((progress.bytes / progress.bytesTotal) * barCharacters)
    const bar = '#'.repeat(full).padEnd(barCharacters, '.')
    const megabytes = [progress.bytes, progress.bytesTotal]
      .map((bytes) => (bytes / 1e6).toFixed(1))
      .join(' of ')
    const rate = Math.round((progress.lines / Math.max(now - started, 1)) * 1000).toLocaleString('en')
    const line = `${progress.step.padEnd(8)} [${bar}] ${megabytes} MB, ${rate} lines/s`
    process.stderr.write(done && step === lastStep ? '\r\x1b[K' : `\r\x1b[K${line}`)
  }
}
