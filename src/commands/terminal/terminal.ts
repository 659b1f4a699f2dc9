import type { Terminal } from '../../../packages/terminal/src/terminal.ts'

/** The parts of its process that a staff command uses. `cli.ts` passes the real ones, tests pass their own. */
export interface StaffTerminal extends Terminal {
  /** Environment for `readConfig`. */
  env: NodeJS.ProcessEnv
  /** Aborts on Ctrl-C and SIGTERM. Unless a command reads this, they end the process at once. */
  stop: () => AbortSignal
}
