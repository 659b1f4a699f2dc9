/** `npm run cli -- <command>`: one-shot commands for staff. */
import { seedCommand } from '../packages/sample/src/seed-command.ts'
import { runCli } from './commands/run-cli.ts'
import { stopSignal } from './stop-signal.ts'

const terminal = {
  env: process.env,
  input: process.stdin,
  out: process.stdout,
  err: process.stderr,
  stop: stopSignal,
}
const exitCode = await runCli(process.argv.slice(2), terminal, [seedCommand])
if (exitCode > 128) process.exit(exitCode)
process.exitCode = exitCode
