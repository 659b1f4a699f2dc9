import { printable } from '../../../packages/terminal/src/printable.ts'
import type { Output } from './terminal.ts'

/** Prints lines. This is the way of every command to its terminal, so texts of others are made safe here alone. */
export function printLines(output: Output, lines: readonly string[]): void {
  output.write(lines.map((line) => `${printable(line)}\n`).join(''))
}
