/** The files of `fixtures/`: read, and compared with what the service makes today. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

const folder = join(import.meta.dirname, '../../fixtures')
const isRefreshing = process.env['REFRESH_FIXTURES'] === '1'

export const fixturePath = (name: string) => join(folder, name)
export const readFixture = (name: string) => readFileSync(fixturePath(name))

/**
 * Byte for byte. A failure shows the lines that differ; `npm run refresh-fixtures` writes the file anew, and its diff is
 * what there is to review.
 */
export function expectFixture(name: string, bytes: Buffer): void {
  if (isRefreshing) writeFileSync(fixturePath(name), bytes)
  const stored = readFixture(name)
  expect(linesOf(bytes)).toEqual(linesOf(stored))
  expect(bytes.equals(stored)).toBe(true)
}

const linesOf = (bytes: Buffer) => bytes.toString('latin1').split('\n')
