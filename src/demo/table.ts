/** How the results of the demo are written: in columns of 80 characters together. */
import { relative } from 'node:path'
import type { Download } from './download.ts'

const columns = ['on the wire', 'body', 'seconds', 'MB/s', 'rows']
const labelCharacters = 32
const widths = [11, 9, 8, 5, 10]

export const heading = [line('What the partner gets', columns), '-'.repeat(79)]

/** MB/s are those of the body, before compression. */
export function resultLine(label: string, result: Partial<Download> & Pick<Download, 'ms'>): string {
  const { wireBytes, bytes, rows, ms } = result
  return line(label, [
    wireBytes === undefined ? '' : sizeOf(wireBytes),
    bytes === undefined ? '' : sizeOf(bytes),
    (ms / 1000).toFixed(3),
    bytes === undefined ? '' : (bytes / 1000 / ms).toFixed(0),
    rows === undefined ? '' : rows.toLocaleString('en'),
  ])
}

/** In MB of a million bytes. */
export function sizeOf(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** A path as one would type it here. */
export function pathOf(path: string): string {
  const fromHere = relative('.', path)
  return fromHere.startsWith('..') ? path : fromHere || '.'
}

/** @param minorUnits cents */
export function money(minorUnits: bigint): string {
  const digits = (minorUnits < 0n ? -minorUnits : minorUnits).toString().padStart(3, '0')
  const whole = BigInt(digits.slice(0, -2)).toLocaleString('en')
  return `${minorUnits < 0n ? '-' : ''}${whole}.${digits.slice(-2)}`
}

function line(label: string, cells: string[]): string {
  const padded = cells.map((cell, column) => cell.padStart(widths[column]!))
  return `${label.padEnd(labelCharacters)}${padded.join(' ')}`.trimEnd()
}
