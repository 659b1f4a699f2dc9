#!/usr/bin/env node
import { createTerminal } from '../../terminal/src/terminal.ts'
/** `grandlivre <command>`: the command line of partners. */
import { exitCodes, localFailure } from './cli/exit-codes.ts'
import { run, tell } from './cli/run.ts'

/** npm and a terminal send the same Ctrl-C twice, milliseconds apart; a person needs longer. */
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
// A closed output (`| head`) must not end the command with a stack. A result that did not fit on a disk is a failure.
err.on('error', () => {})
let lost: NodeJS.ErrnoException | undefined
out.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') lost ??= error
})

const terminal = createTerminal({ input, out, err, interrupt })
// Nor must a closed terminal, while the command ends what it began.
input.on('error', () => {})
const words = process.argv.slice(2)
process.on('exit', () => {
  if (lost === undefined || process.exitCode) return
  tell(terminal, localFailure(`The result cannot be written: ${lost.message}`), words)
  process.exitCode = exitCodes.local
})
const exitCode = await run(words, { env, terminal, signal: stop.signal })
// What an interrupted command still waits for must not keep the process.
if (stop.signal.aborted) process.exit(exitCode)
process.exitCode = exitCode
// Nor what is still open of a pipe that answers came from.
input.pause()
