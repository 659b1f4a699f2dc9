/** The partners' commands, each as a process of its own, with what it has used. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'

/** Where the service is, and who calls it. */
export interface Access {
  GRANDLIVRE_URL: string
  GRANDLIVRE_TOKEN: string
  GRANDLIVRE_SECRET: string
}

export interface CommandUsage {
  /** From its start to its end, as a person waits for it. */
  ms: number
  cpuMs: number
  peakMb: number
  /** Of its standard output. */
  output: string
}

const program = resolve(import.meta.dirname, '../../packages/partner/src/grandlivre.ts')
/** Written by the command at its very end. */
const report = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs'
  process.on('exit', () => writeSync(3, JSON.stringify(process.resourceUsage())))`)}`

/** Starts a command; its standard error, where it notes what it does, is collected. */
export function startCommand(words: string[], access: Access) {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...access }
  const child = spawn(process.execPath, ['--import', report, program, ...words], {
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  return { child, usage: text(child.stdio[3] as NodeJS.ReadableStream) }
}

/** @throws {Error} with what the command said, if its exit code is another one */
export async function runCommand(words: string[], access: Access, exitCode = 0): Promise<CommandUsage> {
  const started = performance.now()
  const { child, usage } = startCommand(words, access)
  const [output, notes, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close'),
  ])
  const ms = performance.now() - started
  if (code !== exitCode)
    throw new Error(`grandlivre ${words.join(' ')} ended with ${code}: ${notes}${output}`)
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(await usage) as NodeJS.ResourceUsage
  return { ms, cpuMs: (userCPUTime + systemCPUTime) / 1000, peakMb: (maxRSS * 1024) / 1e6, output }
}
