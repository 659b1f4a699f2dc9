/** The streams of a process, as far as the command line uses them. Tests pass their own. */

export interface Output {
  write(text: string): unknown
  isTTY?: boolean
  /** Width in characters. */
  columns?: number
}

export interface Input extends NodeJS.ReadableStream {
  isTTY?: boolean
  setRawMode?: (isRaw: boolean) => unknown
}
