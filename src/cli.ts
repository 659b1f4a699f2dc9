/** `npm run cli -- <command>`: one-shot commands for staff. */
import { runCli } from './commands/run-cli.ts'
import { stopSignal } from './stop-signal.ts'

const exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  input: process.stdin,
  out: process.stdout,
  err: process.stderr,
  stop: stopSignal,
})
if (exitCode > 128) process.exit(exitCode)
process.exitCode = exitCode
