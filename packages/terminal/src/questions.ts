/** Reads answers and keys from standard input. */
import { on } from 'node:events'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { UsageError } from './command-errors.ts'
import type { Input, Output } from './streams.ts'

const ctrlC = '\x03'

export function createQuestions(streams: { input: Input; err: Output; interrupt: () => void }) {
  // A pipe may deliver several answers at once, so its lines have one reader.
  let piped: AsyncIterator<string> | undefined
  const nextPiped = async (signal: AbortSignal | undefined) => {
    const { input, err } = streams
    piped ??= createInterface({ input, ...(signal ? { signal } : {}) })[Symbol.asyncIterator]()
    const { value, done } = await piped.next()
    signal?.throwIfAborted()
    if (done) {
      err.write('\n')
      throw noAnswer()
    }
    return value
  }
  return {
    async ask(question: string, hidden: boolean, signal?: AbortSignal): Promise<string> {
      const isTyped = streams.input.isTTY === true
      // What is typed visibly is redrawn together with its question.
      if (hidden || !isTyped) streams.err.write(`${question} `)
      const answer = isTyped ? await typed(streams, question, hidden, signal) : await nextPiped(signal)
      if (hidden || !isTyped) streams.err.write('\n')
      return answer.trim()
    },
    keys: (signal?: AbortSignal) => keysOf(streams, signal),
  }
}

const noAnswer = () => new UsageError('The input ended before an answer', ['Pipe the answers, one a line.'])

/** One line that a person types. */
function typed(
  { input, err, interrupt }: { input: Input; err: Output; interrupt: () => void },
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
  return new Promise((resolve, reject) => {
    const settings = { input, output, terminal: true, historySize: 0, prompt: `${question} ` }
    const lines = createInterface({ ...settings, ...(signal ? { signal } : {}) })
    let isAnswered = false
    lines.once('line', (line) => {
      isAnswered = true
      resolve(line)
      lines.close()
    })
    lines.once('SIGINT', () => {
      interrupt()
      reject(new Error('Interrupted'))
      lines.close()
    })
    lines.once('close', () => {
      if (isAnswered) return
      err.write('\n')
      reject(signal?.aborted ? signal.reason : noAnswer())
    })
    lines.prompt()
  })
}

async function* keysOf(
  { input, interrupt }: { input: Input; interrupt: () => void },
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
    // Aborted, or the terminal was closed: there are no more keys. The signal of its end stops the command.
  } finally {
    input.setRawMode?.(false)
    // A terminal that is still read would keep the process.
    input.pause()
  }
}
