import { PassThrough } from 'node:stream'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../test/support/until.ts'

import { createProgressLine, createTerminal } from '../src/terminal.ts'

/** An output that the test reads. */
function setOutput(more: { isTTY?: boolean; columns?: number } = {}) {
  const output = { text: '', write: (text: string | Uint8Array) => (output.text += text), ...more }
  const taken = () => {
    const { text } = output
    output.text = ''
    return text
  }
  return { output, taken }
}

test('a signal ends the wait for a reader that has stopped reading', async () => {
  const stop = new AbortController()
  const out = { write: () => true }
  const { bytes } = createTerminal({ input: new PassThrough(), out, err: out })
  const written = bytes!(new Uint8Array(1), stop.signal)
  stop.abort(new Error('Interrupted'))
  await expect(written).rejects.toThrow('Interrupted')
})

describe('progress', () => {
  beforeEach(() => {
    vi.useFakeTimers()
    return () => vi.useRealTimers()
  })

  test.each([60, 200])('is one redrawn line that never wraps on a terminal of %i columns', (columns) => {
    const { output, taken } = setOutput({ isTTY: true, columns })
    const line = createProgressLine(output)
    line.show('half', 0.5)
    expect(taken()).toBe('\r\x1b[K[############............] half')
    vi.advanceTimersByTime(99)
    line.show('too early', 0.6)
    expect(taken()).toBe('')
    vi.advanceTimersByTime(1)
    line.show('x'.repeat(300))
    expect(taken()).toBe(`\r\x1b[K${'x'.repeat(columns - 1)}`)
    line.clear()
    line.clear()
    expect(taken()).toBe('\r\x1b[K')
  })

  test('is printed every ten seconds without a terminal, even if its text has not changed, until it ends', () => {
    const { output, taken } = setOutput()
    const line = createProgressLine(output)
    line.show('at once', 0.1)
    vi.advanceTimersByTime(9_999)
    line.show('latest', 0.2)
    expect(taken()).toBe('')
    vi.advanceTimersByTime(10_001)
    expect(taken()).toBe('latest\nlatest\n')
    line.clear()
    vi.advanceTimersByTime(60_000)
    line.show('other work', 0)
    vi.advanceTimersByTime(10_000)
    expect(taken()).toBe('other work\n')
    line.clear()
  })
})

/** Makes a terminal on which the test types. */
function setTerminal({ isTTY = false } = {}) {
  const out = setOutput({ isTTY })
  const err = setOutput({ isTTY })
  const input = Object.assign(new PassThrough(), { isTTY, setRawMode: (isRaw: boolean) => modes.push(isRaw) })
  const modes: boolean[] = []
  let interruptions = 0
  const interrupt = () => {
    interruptions += 1
  }
  const streams = { input, out: out.output, err: err.output, interrupt }
  return { terminal: createTerminal(streams), out, err, input, modes, interruptions: () => interruptions }
}

test('results go to standard output; notes and progress go to standard error', () => {
  const { terminal, out, err } = setTerminal({ isTTY: true })
  terminal.progress('working')
  terminal.print('a result')
  terminal.json({ rows: 1 })
  terminal.note('a note')
  expect(out.taken()).toBe('a result\n{"rows":1}\n')
  expect(err.taken()).toBe('\r\x1b[Kworking\r\x1b[Ka note\n')
})

describe('questions', () => {
  test('are each answered by a line of piped input; the end of the input is an error', async () => {
    const { terminal, err, input } = setTerminal()
    input.end('first\n second \n')
    expect(await terminal.ask('One?')).toBe('first')
    expect(await terminal.ask('Two?', { hidden: true })).toBe('second')
    await expect(terminal.ask('Three?')).rejects.toThrow('The input ended before an answer')
    expect(err.taken()).toBe('One? \nTwo? \nThree? \n')
    expect([terminal.isInteractive, terminal.keys]).toEqual([false, undefined])
  })

  test('echo what is typed, except a secret', async () => {
    const { terminal, err, input } = setTerminal({ isTTY: true })
    const url = terminal.ask('Address?')
    input.write('https://x\r')
    expect(await url).toBe('https://x')
    expect(err.taken()).toContain('https://x')
    const secret = terminal.ask('Secret?', { hidden: true })
    input.write('glv_secret_1\r')
    expect(await secret).toBe('glv_secret_1')
    expect(err.taken()).toBe('Secret? \n')
  })

  test('leave out the further lines of a paste, which may be secrets', async () => {
    const { terminal, err, input } = setTerminal({ isTTY: true })
    const url = terminal.ask('Address?')
    input.write('https://x\rglv_api_1\rglv_secret_1\r')
    expect(await url).toBe('https://x')
    expect(err.taken()).not.toContain('glv_')
  })

  test('end with the error of the input', async () => {
    const { terminal, input } = setTerminal({ isTTY: true })
    const answer = terminal.ask('Address?')
    input.destroy(new Error('EIO'))
    await expect(answer).rejects.toThrow('EIO')
  })

  test('let Ctrl-C interrupt the command', async () => {
    const { terminal, err, input, interruptions } = setTerminal({ isTTY: true })
    const answer = terminal.ask('Secret?', { hidden: true })
    input.write('\x03')
    await expect(answer).rejects.toThrow('Interrupted')
    // The next output begins on a new line.
    expect(err.taken()).toBe('Secret? \n')
    expect(interruptions()).toBe(1)
  })

  test('keep their line when a letter is erased', async () => {
    const { terminal, err, input } = setTerminal({ isTTY: true })
    const url = terminal.ask('Address?')
    input.write('ab')
    await until(() => err.taken().includes('b'))
    input.write('\x7f\r')
    expect(await url).toBe('a')
    expect(err.taken()).toContain('Address? a')
  })

  test.each([false, true])('end when a signal interrupts them, on a terminal: %s', async (isTTY) => {
    const { terminal, input } = setTerminal({ isTTY })
    const interruption = new AbortController()
    const answer = terminal.ask('Secret?', { hidden: true, signal: interruption.signal })
    input.write('half of it')
    interruption.abort(new Error('Stopped'))
    await expect(answer).rejects.toThrow('Stopped')
  })
})

test('keys are reported one by one until Ctrl-C, which interrupts the command', async () => {
  const { terminal, input, modes, interruptions } = setTerminal({ isTTY: true })
  input.write('r')
  input.write('q\x03x')
  const keys: string[] = []
  for await (const key of terminal.keys!()) keys.push(key)
  expect([keys, modes, interruptions()]).toEqual([['r', 'q'], [true, false], 1])
})

test('reading keys ends without an error when the terminal is closed', async () => {
  const { terminal, input, modes } = setTerminal({ isTTY: true })
  const keys = Array.fromAsync(terminal.keys!())
  input.destroy(new Error('read EIO'))
  expect([await keys, modes]).toEqual([[], [true, false]])
})
