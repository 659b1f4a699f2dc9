/** Runs a command in a terminal and keeps what it writes there. The program `script` of util-linux makes the terminal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stripVTControlCharacters } from 'node:util'

export interface Step {
  /** The step begins when the command has written this since the step before. */
  when: string
  /** What is typed. */
  keys?: string
  /** What happens meanwhile, outside the terminal. */
  meanwhile?: () => Promise<unknown>
}

export interface TerminalRun {
  /** A line for the shell. */
  command: string
  columns: number
  rows: number
  /** In order. */
  steps: readonly Step[]
  /** The picture is taken when this is there after the last step; absent: when the command ends. */
  until?: string
  folder: string
  env: NodeJS.ProcessEnv
}

/** Longer than any command needs. */
const runMs = 120_000
/** What belongs to the same change of the screen arrives within this time. */
const settleMs = 400

/**
 * @returns the bytes for the terminal, without those that followed the moment of the picture
 * @throws {Error} if the command fails, or never writes what a step waits for
 */
export async function runInTerminal(run: TerminalRun): Promise<Buffer> {
  const line = `stty cols ${run.columns} rows ${run.rows} -echo; ${run.command}`
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
    cwd: run.folder,
    env: { ...run.env, TERM: 'xterm-256color', SHELL: '/bin/bash' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let written = Buffer.alloc(0)
  let isOver = false
  child.stdout.on('data', (chunk: Buffer) => (written = Buffer.concat([written, chunk])))
  const closed = once(child, 'close').then(([code]) => {
    isOver = true
    return code as number
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), runMs)
  let seen = 0
  const appears = async (text: string) => {
    for (;;) {
      const at = stripVTControlCharacters(written.toString()).indexOf(text, seen)
      if (at >= 0) {
        seen = at + text.length
        return
      }
      if (isOver) throw new Error(`${run.command} ended without writing "${text}":\n${written}`)
      await pause(50)
    }
  }
  try {
    for (const { when, keys, meanwhile } of run.steps) {
      await appears(when)
      await meanwhile?.()
      if (keys !== undefined) child.stdin.write(keys)
    }
    if (run.until === undefined) {
      const code = await closed
      if (code !== 0) throw new Error(`${run.command} ended with code ${code}:\n${written}`)
      return written
    }
    await appears(run.until)
    await pause(settleMs)
    return written
  } finally {
    clearTimeout(timer)
    // Ctrl-C, then the end of the input.
    if (!isOver) child.stdin.end('\x03')
    await closed
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
