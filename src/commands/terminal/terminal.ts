/** The parts of its process that a command uses. `cli.ts` passes the real ones, tests pass their own. */
export interface Terminal {
  /** Environment for `readConfig`. */
  env: NodeJS.ProcessEnv
  /** Answers to questions; absent where nobody can be asked. */
  input?: Input
  /** Results, which scripts may read. */
  out: Output
  /** Progress and errors. */
  err: Output
  /** Aborts on Ctrl-C and SIGTERM. Unless a command reads this, they end the process at once. */
  stop: () => AbortSignal
}

export interface Input extends NodeJS.ReadableStream {
  isTTY?: boolean
}

export interface Output extends NodeJS.WritableStream {
  isTTY?: boolean
  /** Width of a terminal in characters. */
  columns?: number
}
