/** What a command uses of the process that it runs in. `cli.ts` passes the real ones, a test its own. */
export interface Terminal {
  /** As `readConfig` takes them. */
  env: NodeJS.ProcessEnv
  /** Results, which scripts may read. */
  out: Output
  /** Progress and errors. */
  err: Output
  /** Aborts on Ctrl-C and SIGTERM. They end the process at once until a command asks for this. */
  stop: () => AbortSignal
}

export interface Output extends NodeJS.WritableStream {
  isTTY?: boolean
  /** Width of a terminal in characters. */
  columns?: number
}
