/** The streams of a process, as far as the command line uses them. Tests pass their own. */

export interface Output {
  /** @param done called once it is taken, with the error if it is not */
  write(content: string | Uint8Array, done?: (error?: Error | null) => void): unknown
  isTTY?: boolean
  /** Width in characters. */
  columns?: number
}

export interface Input extends NodeJS.ReadableStream {
  isTTY?: boolean
  setRawMode?: (isRaw: boolean) => unknown
}
