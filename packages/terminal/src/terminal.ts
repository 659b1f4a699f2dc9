/**
 * Where a command prints: results on standard output, everything else on standard error. Whatever it prints is made safe
 * here, so a command passes on texts of others as they are.
 */
import { printable, printableJson } from './printable.ts'
import { createProgressLine } from './progress-line.ts'
import { createQuestions } from './questions.ts'
import type { Input, Output } from './streams.ts'

export interface Terminal {
  /** The result, or a part of it, on standard output. */
  print(lines: string | readonly string[]): void
  /** A result as one line of JSON, on standard output. */
  json(value: unknown): void
  /**
   * Bytes of a result as they are, on standard output; resolves when they are taken. Absent where that is a terminal, which
   * would obey what is in them.
   * @param signal ends the wait for a reader that takes no more
   * @throws {Error} of the system, EPIPE if the reader has closed the pipe; the reason of the signal
   */
  bytes?: (chunk: Uint8Array, signal: AbortSignal) => Promise<void>
  /** About the run, on standard error: what is being done, waited for, or begun again. */
  note(lines: string | readonly string[]): void
  /** On standard error what is read also by those who want no notes: errors, losses, and results beside bytes. */
  warn(lines: string | readonly string[]): void
  /**
   * How far the command is, on standard error: one line that is redrawn on a terminal, a plain line every ten seconds
   * elsewhere, until it ends or something else is printed. Cheap enough to be called for every chunk.
   * @param done share, 0 to 1, where it is known
   */
  progress(text: string, done?: number): void
  /** Clears the line of progress. Every other output does so, too. */
  endProgress(): void
  /** Whether a person can answer: standard input and standard error are a terminal. */
  isInteractive: boolean
  /**
   * Keys as they are pressed, where standard input is a terminal, until the signal aborts. Ctrl-C interrupts the command,
   * and ends them.
   */
  keys?: (signal?: AbortSignal) => AsyncIterable<string>
  /**
   * Asks on standard error, and reads a line from standard input.
   * @param options.hidden shows nothing of the answer
   * @param options.signal gives the question up
   * @throws {UsageError} if the input ends before an answer
   */
  ask(question: string, options?: { hidden?: boolean; signal?: AbortSignal }): Promise<string>
}

export interface Streams {
  input: Input
  out: Output
  err: Output
  /** Ctrl-C while keys are read one by one, when the terminal sends no signal. */
  interrupt?: () => void
}

export function createTerminal({ input, out, err, interrupt = () => {} }: Streams): Terminal {
  const progress = createProgressLine(err)
  const isInteractive = input.isTTY === true && err.isTTY === true
  const questions = createQuestions({ input, err, interrupt })
  const write = (output: Output, lines: string | readonly string[]) => {
    progress.clear()
    output.write(
      [lines]
        .flat()
        .map((line) => `${printable(line)}\n`)
        .join(''),
    )
  }
  return {
    print: (lines) => write(out, lines),
    json: (value) => write(out, printableJson(value)),
    ...(out.isTTY ? {} : { bytes: (chunk: Uint8Array, signal: AbortSignal) => taken(out, chunk, signal) }),
    note: (lines) => write(err, lines),
    warn: (lines) => write(err, lines),
    progress: progress.show,
    endProgress: progress.clear,
    isInteractive,
    ...(input.isTTY ? { keys: (signal?: AbortSignal) => questions.keys(signal) } : {}),
    ask: (question, { hidden = false, signal } = {}) => {
      progress.clear()
      return questions.ask(question, hidden, signal)
    },
  }
}

function taken(out: Output, chunk: Uint8Array, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop)
    out.write(chunk, (error) => {
      signal.removeEventListener('abort', stop)
      if (error) reject(error)
      else resolve()
    })
  })
}
