import { createInterface } from 'node:readline/promises'
import { printLines } from './lines.ts'
import type { Terminal } from './terminal.ts'

/**
 * Shows what is about to happen, and asks.
 * @throws {Error} without a `yes`, or without a terminal to ask on
 */
export async function confirm({ input, err }: Terminal, warning: readonly string[]): Promise<void> {
  if (!input?.isTTY || !err.isTTY) throw new Error('There is no terminal to ask on. Repeat it with --yes')
  printLines(err, warning)
  const lines = createInterface({ input, output: err })
  const { promise: closed, resolve } = Promise.withResolvers<string>()
  // Ctrl-C or Ctrl-D.
  lines.once('close', () => resolve(''))
  try {
    const answer = await Promise.race([lines.question('Go on? Type yes: '), closed])
    if (answer.trim() !== 'yes') throw new Error('Nothing was changed')
  } finally {
    lines.close()
  }
}
