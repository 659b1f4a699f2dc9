import type { Terminal } from '../../../packages/terminal/src/terminal.ts'

/** The parts of its process that a staff command uses. `cli.ts` passes the real parts, tests pass their own. */
export interface StaffTerminal extends Terminal {
  /** Environment for `readConfig`. */
  env: NodeJS.ProcessEnv
  /** Aborts on Ctrl-C and SIGTERM. If a command never calls it, these signals end the process at once. */
  stop: () => AbortSignal
}
