#!/usr/bin/env node
/** `grandlivre <command>`: the command line of partners. */
import { createTerminal } from '../../terminal/src/terminal.ts'
import { exitCodes, localFailure } from './cli/exit-codes.ts'
import { printError, run } from './cli/run.ts'

/** npm and the terminal pass on the same Ctrl-C within milliseconds. A person who presses it twice takes longer. */
const signalEchoMs = 500

const stop = new AbortController()
let stoppedAt = 0
function interrupt(): void {
  if (stop.signal.aborted && performance.now() - stoppedAt > signalEchoMs) process.exit(exitCodes.interrupted)
  if (!stop.signal.aborted) stoppedAt = performance.now()
  stop.abort(new Error('Interrupted'))
}
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, interrupt)

const { env, stdin: input, stdout: out, stderr: err } = process
// If the reader of the output has gone (`| head`), the command must not end with a stack trace. A result that did not
// fit on a disk is a failure.
err.on('error', () => {})
let lost: NodeJS.ErrnoException | undefined
out.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') lost ??= error
})

const terminal = createTerminal({ input, out, err, interrupt })
// A terminal that closes must not stop the command while it cleans up.
input.on('error', () => {})
const words = process.argv.slice(2)
process.on('exit', () => {
  if (lost === undefined || process.exitCode) return
  printError(terminal, localFailure(`The result cannot be written: ${lost.message}`), words)
  process.exitCode = exitCodes.local
})
const exitCode = await run(words, { env, terminal, signal: stop.signal })
// After an interruption the process ends at once, even if something is still being awaited.
if (stop.signal.aborted) process.exit(exitCode)
process.exitCode = exitCode
// An open pipe at standard input must not keep the process running.
input.pause()
