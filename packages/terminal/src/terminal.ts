/**
 * The output of a command: results go to standard output, everything else to standard error. Everything is made safe
 * here, so a command can print texts of others as they are.
 */
import { on, once } from 'node:events'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { UsageError } from './command-errors.ts'
import { printable, printableJson } from './printable.ts'

const redrawMs = 100
const lineMs = 10_000
const barCharacters = 24
const widthDefault = 80
const clearLine = '\r\x1b[K'
const ctrlC = '\x03'

export interface Terminal {
  /** Prints the result, or a part of it, on standard output. */
  print(lines: string | readonly string[]): void
  /** Prints a result as one line of JSON on standard output. */
  json(value: unknown): void
  /**
   * Writes the bytes of a result unchanged to standard output, and resolves when they are written. Absent if standard
   * output is a terminal, which would obey control characters in the bytes.
   * @param signal ends the wait for a reader that has stopped reading
   * @throws {Error} of the system, EPIPE if the reader has closed the pipe; the reason of the signal
   */
  bytes?: (chunk: Uint8Array, signal: AbortSignal) => Promise<void>
  /** Says on standard error what the command does, waits for or begins again. */
  note(lines: string | readonly string[]): void
  /** Prints errors, losses, and results that accompany bytes on standard error, also with --quiet. */
  warn(lines: string | readonly string[]): void
  /**
   * Shows on standard error how far the command is, until progress ends or something else is printed: on a terminal as
   * one line that is redrawn, elsewhere as a plain line every ten seconds. It is cheap enough to be called for every
   * chunk.
   * @param done the share that is done, 0 to 1, if known
   */
  progress(text: string, done?: number): void
  /** Clears the line of progress, as every other output does. */
  endProgress(): void
  /** Whether a person can answer questions: standard input and standard error are both a terminal. */
  isInteractive: boolean
  /**
   * Gives out keys as they are pressed, until the signal aborts. Ctrl-C interrupts the command and ends the keys.
   * Absent if standard input is not a terminal.
   */
  keys?: (signal?: AbortSignal) => AsyncIterable<string>
  /**
   * Asks on standard error, and reads a line from standard input.
   * @param options.hidden hides what the user types
   * @param options.signal ends the wait for an answer
   * @throws {UsageError} if the input ends before an answer
   */
  ask(question: string, options?: { hidden?: boolean; signal?: AbortSignal }): Promise<string>
}

interface Output {
  /** @param done called once the content is written, or with the error that prevented it */
  write(content: string | Uint8Array, done?: (error?: Error | null) => void): unknown
  isTTY?: boolean
  /** Width in characters. */
  columns?: number
}

interface Input extends NodeJS.ReadableStream {
  isTTY?: boolean
  setRawMode?: (isRaw: boolean) => unknown
}

/** The parts of a process's streams that the command line uses. Tests pass streams of their own. */
interface Streams {
  input: Input
  out: Output
  err: Output
  /** Called on Ctrl-C while keys are read one by one, because the terminal then sends no signal. */
  interrupt?: () => void
}

export function createTerminal({ input, out, err, interrupt = () => {} }: Streams): Terminal {
  const progress = createProgressLine(err)
  const person = { input, err, interrupt }
  // A pipe may deliver several answers at once, so all questions share one reader of its lines.
  let piped: AsyncIterator<string> | undefined
  const write = (output: Output, lines: string | readonly string[]) => {
    progress.clear()
    const texts = [lines].flat().map((line) => `${printable(line)}\n`)
    output.write(texts.join(''))
  }
  const readPiped = async (signal: AbortSignal | undefined) => {
    piped ??= createInterface({ input, ...(signal ? { signal } : {}) })[Symbol.asyncIterator]()
    const { value, done } = await piped.next()
    signal?.throwIfAborted()
    err.write('\n')
    if (done) throw noAnswer()
    return value
  }
  return {
    print: (lines) => write(out, lines),
    json: (value) => write(out, printableJson(value)),
    ...(out.isTTY
      ? {}
      : { bytes: (chunk: Uint8Array, signal: AbortSignal) => writeBytes(out, chunk, signal) }),
    note: (lines) => write(err, lines),
    warn: (lines) => write(err, lines),
    progress: progress.show,
    endProgress: progress.clear,
    isInteractive: input.isTTY === true && err.isTTY === true,
    ...(input.isTTY ? { keys: (signal?: AbortSignal) => keysOf(person, signal) } : {}),
    async ask(question, { hidden = false, signal } = {}) {
      progress.clear()
      // For a visible answer on a terminal, readline writes the question, because it redraws both together.
      if (hidden || !input.isTTY) err.write(`${question} `)
      const answer = input.isTTY ? await readTyped(person, question, hidden, signal) : await readPiped(signal)
      if (hidden && input.isTTY) err.write('\n')
      return answer.trim()
    },
  }
}

function writeBytes(out: Output, chunk: Uint8Array, signal: AbortSignal): Promise<void> {
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

const noAnswer = () => new UsageError('The input ended before an answer', ['Pipe the answers, one a line.'])

/** Reads one line that a person types. */
async function readTyped(
  { input, err, interrupt }: Required<Omit<Streams, 'out'>>,
  question: string,
  hidden: boolean,
  signal: AbortSignal | undefined,
): Promise<string> {
  const output = new Writable({
    write(text, _encoding, done) {
      if (!hidden) err.write(String(text))
      done()
    },
  })
  const lines = createInterface({ input, output, terminal: true, historySize: 0, prompt: `${question} ` })
  const ending = new AbortController()
  lines.once('SIGINT', () => {
    interrupt()
    ending.abort(new Error('Interrupted'))
  })
  lines.once('close', () => ending.abort(noAnswer()))
  const ended = signal ? AbortSignal.any([signal, ending.signal]) : ending.signal
  const typed = once(lines, 'line', { signal: ended })
  // Closed at once: the echo of further lines of a paste would show secrets.
  lines.once('line', () => lines.close())
  lines.prompt()
  try {
    const [line] = await typed
    return line
  } catch (error) {
    err.write('\n')
    throw ended.aborted ? ended.reason : error
  } finally {
    lines.close()
  }
}

async function* keysOf(
  { input, interrupt }: Required<Omit<Streams, 'out' | 'err'>>,
  signal = new AbortController().signal,
): AsyncGenerator<string> {
  if (signal.aborted) return
  input.setRawMode?.(true)
  try {
    for await (const [chunk] of on(input, 'data', { signal, close: ['end'] })) {
      for (const key of String(chunk)) {
        if (key === ctrlC) return interrupt()
        yield key
      }
    }
  } catch {
    // Either the signal aborted or the terminal was closed, so no more keys come. If it was closed, a signal stops the
    // command.
  } finally {
    input.setRawMode?.(false)
    // A process that still reads its terminal would not end.
    input.pause()
  }
}

/**
 * Shows how far a command is: on a terminal as one line that is redrawn, elsewhere as a plain line with the latest text
 * every ten seconds. That line is repeated even if there is nothing new, because a wait for the service may take
 * minutes.
 */
export function createProgressLine(out: Output) {
  let shownAt = Number.NEGATIVE_INFINITY
  let isDrawn = false
  let latest = ''
  let lines: NodeJS.Timeout | undefined
  return {
    /** @param done the share that is done, 0 to 1; without it no bar is shown */
    show(text: string, done?: number): void {
      if (!out.isTTY) {
        latest = text
        lines ??= setInterval(() => out.write(`${printable(latest)}\n`), lineMs).unref()
        return
      }
      if (performance.now() - shownAt < redrawMs) return
      shownAt = performance.now()
      // Cut to the width of the terminal: a line that wraps could not be redrawn.
      const line = `${barOf(done)}${printable(text)}`.slice(0, (out.columns || widthDefault) - 1)
      out.write(clearLine + line)
      isDrawn = true
    },
    clear(): void {
      if (isDrawn) out.write(clearLine)
      isDrawn = false
      shownAt = Number.NEGATIVE_INFINITY
      clearInterval(lines)
      lines = undefined
    },
  }
}

function barOf(done: number | undefined): string {
  if (done === undefined) return ''
  const filled = Math.floor(Math.min(Math.max(done, 0), 1) * barCharacters)
  return `[${'#'.repeat(filled).padEnd(barCharacters, '.')}] `
}
