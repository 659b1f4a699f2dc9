/** Runs commands as somebody pastes them into terminals, each of which is a bash of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Commands } from './commands.ts'

export interface Terminals {
  /** @returns what it printed @throws {Error} with the end of what it printed, if a command fails */
  run(commands: Commands): Promise<string>
  /** Goes on beside the others. Resolves once it has printed that it is ready. */
  start(commands: Commands): Promise<Running>
}

export interface Running {
  /** Resolves once that text has been printed. */
  prints(text: string): Promise<void>
  stop(): Promise<void>
}

/** @param limitMs for each command, and for each wait */
export function openTerminals(cwd: string, env: NodeJS.ProcessEnv, limitMs: number): Terminals {
  // A group of its own, so that programs that bash has started end with it.
  const open = ({ text }: Commands) => {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', text], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const terminal = { child, text, printed: '', deadline: performance.now() + limitMs }
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        terminal.printed += chunk
      })
    return terminal
  }
  return {
    run: async (commands) => {
      const terminal = open(commands)
      const giveUp = globalThis.setTimeout(() => endGroup(terminal.child), limitMs)
      const [code] = await once(terminal.child, 'close')
      clearTimeout(giveUp)
      if (code !== 0) throw failed(terminal)
      return terminal.printed
    },
    start: async (commands) => {
      const terminal = open(commands)
      const ended = once(terminal.child, 'close')
      const running: Running = {
        prints: async (text) => {
          const deadline = performance.now() + limitMs
          while (!terminal.printed.includes(text)) {
            if (hasEnded(terminal.child) || performance.now() > deadline) throw failed(terminal, text)
            await setTimeout(10)
          }
        },
        stop: async () => {
          if (!hasEnded(terminal.child)) endGroup(terminal.child)
          await ended
        },
      }
      await running.prints(commands.ready!).catch(async (error) => {
        await running.stop()
        throw error
      })
      return running
    },
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

function endGroup({ pid }: ChildProcess): void {
  process.kill(-pid!, 'SIGTERM')
}

function failed({ text, printed }: { text: string; printed: string }, awaited?: string): Error {
  const what = awaited === undefined ? 'This failed' : `This did not print "${awaited}"`
  return new Error(`${what}:\n${text}\n${printed.slice(-2_000)}`)
}
