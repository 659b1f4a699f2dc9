/** `npm run cli -- <command>`: one-shot commands for staff. */
import { sampleCommands } from '../packages/sample/src/sample-commands.ts'
import { createTerminal } from '../packages/terminal/src/terminal.ts'
import { runCli } from './commands/run-cli.ts'
import { stopSignal } from './stop-signal.ts'

const { env, stdin: input, stdout: out, stderr: err } = process
const terminal = { ...createTerminal({ input, out, err }), env, stop: stopSignal }
const exitCode = await runCli(process.argv.slice(2), terminal, sampleCommands)
if (exitCode > 128) process.exit(exitCode)
process.exitCode = exitCode
