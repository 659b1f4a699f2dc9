import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { runInTerminal, type Step } from '../../docs/terminal-run.ts'
import { sampleCommands } from '../../packages/sample/src/sample-commands.ts'
import { createTerminal } from '../../packages/terminal/src/terminal.ts'
import { runCli } from '../../src/commands/run-cli.ts'
import { environment } from './process.ts'
import { testMasterKey } from './service.ts'

export interface CommandResult {
  code: number
  out: string
  error: string
}

/** The owner's address, alone or with further settings. */
type At = string | { ownerUrl: string; env: Record<string, string> }

/** Runs a staff command in this process. */
export async function cli(at: At, ...words: string[]): Promise<CommandResult> {
  const result = { code: 0, out: '', error: '' }
  const terminal = createTerminal({
    input: Readable.from([]),
    out: { write: (text) => (result.out += text) },
    err: { write: (text) => (result.error += text) },
  })
  const env = environmentOf(at)
  // No signal ever arrives.
  const stop = () => new AbortController().signal
  result.code = await runCli(words, { ...terminal, env, stop }, sampleCommands)
  return result
}

function environmentOf(at: At) {
  const { ownerUrl, env } = typeof at === 'string' ? { ownerUrl: at, env: {} } : at
  return { DATA_DIR: tmpdir(), DATABASE_URL: ownerUrl, MASTER_KEY: testMasterKey.toString('hex'), ...env }
}

/** Runs a staff command in its own process, so that it can be watched and interrupted. */
export function startCli(
  at: At,
  ...words: string[]
): { child: ChildProcess; soFar: CommandResult; ended: Promise<CommandResult> } {
  const env = { ...environment, ...environmentOf(at) }
  const child = spawn(process.execPath, ['src/cli.ts', ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const soFar = { code: 0, out: '', error: '' }
  child.stdout.on('data', (chunk) => {
    soFar.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    soFar.error += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ ...soFar, code }))
  return { child, soFar, ended }
}

/** Other systems have a program of this name with other options. */
export const isScriptThere = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes(
  'util-linux',
)

/**
 * Runs a staff command in a terminal, 120 characters wide.
 * @returns the bytes that the terminal gets, as text
 * @throws {Error} with the exit code and these bytes, if the code is not 0
 */
export async function cliInTerminal(ownerUrl: string, words: string, ...steps: Step[]): Promise<string> {
  const bytes = await runInTerminal({
    ...{ columns: 120, rows: 40, steps },
    command: `exec "${process.execPath}" src/cli.ts ${words}`,
    folder: resolve(import.meta.dirname, '../..'),
    env: { ...environment, ...environmentOf(ownerUrl) },
  })
  return String(bytes)
}
