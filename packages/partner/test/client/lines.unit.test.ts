import { createHash, randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Block, BlockCheck } from '../../src/client/blocks.ts'
import { countLines, idOf, itemsOf, lastLineOf, WholeLines } from '../../src/client/lines.ts'
import { retryAfterOf } from '../../src/client/requests.ts'

async function* chunksOf(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

const lines = Array.from(
  { length: 200 },
  (_, i) => `{"producerId":"${i}","text":"${'é\u2028x'.repeat(i % 7)}"}\n`,
)
const body = Buffer.from(lines.join(''))

test('wherever the bytes are cut, only whole lines come out, and no line is missing', async () => {
  for (let round = 0; round < 100; round += 1) {
    const framing = new WholeLines()
    const out: Uint8Array[] = []
    for (let at = 0; at < body.length; ) {
      const chunk = body.subarray(at, at + randomInt(1, 300))
      at += chunk.length
      const whole = framing.push(chunk)
      if (whole) out.push(whole)
    }
    expect(out.every((chunk) => chunk.at(-1) === 10)).toBe(true)
    expect(Buffer.concat(out).equals(body)).toBe(true)
    expect(framing.restBytes).toBe(0)
    expect(out.reduce((sum, chunk) => sum + countLines(chunk), 0)).toBe(lines.length)
    expect(idOf(lastLineOf(out.at(-1)!))).toBe('199')
    const items = await Array.fromAsync(itemsOf<{ producerId: string }>(chunksOf(...out)))
    expect(items.map(({ producerId }) => producerId)).toEqual(lines.map((_, i) => String(i)))
  }
})

test('bytes after the last line feed are held back', () => {
  const framing = new WholeLines()
  expect(Buffer.from(framing.push(Buffer.from('{}\n{"a'))!).toString()).toBe('{}\n')
  expect(framing.restBytes).toBe(3)
  expect(framing.push(Buffer.from('"'))).toBeUndefined()
})

const damaged: [string, string | Uint8Array][] = [
  ['no JSON', '{}\n{"a":}\n'],
  ['an empty line', '{}\n\n'],
  ['no UTF-8', Buffer.from([0x22, 0xc3, 0x22, 0x0a])],
  ['a byte-order mark', '\ufeff{}\n'],
]
test.each(damaged)('%s among the items is refused as an error', async (_, chunk) => {
  await expect(Array.fromAsync(itemsOf(chunksOf(chunk)))).rejects.toMatchObject({ code: 'NOT-PROVEN' })
})

const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex')
const block = (from: number, to: number): Block => {
  const held = lines.slice(from, to)
  return { from: String(from), to: String(to), rows: held.length, sha256: sha256Of(held.join('')) }
}
const blocks = [block(0, 0), block(0, 80), block(80, 80), block(80, 81), block(81, 200), block(200, 200)]

/** Passes lines in chunks of random length. */
function pass(check: BlockCheck, rows: string[]): void {
  for (let at = 0; at < rows.length; ) {
    const count = randomInt(1, 90)
    check.pass(Buffer.from(rows.slice(at, at + count).join('')))
    at += count
  }
}

test.each([0, 1, 79, 80, 81, 150, 200])('the lines after the first %i match the blocks', (before) => {
  const check = new BlockCheck(blocks, before)
  expect(check.isComplete).toBe(before === 200)
  pass(check, lines.slice(before))
  expect(check.isComplete).toBe(true)
})

test('a selection without rows is complete at once', () => {
  expect(new BlockCheck([block(0, 0)]).isComplete).toBe(true)
})

test('one extra, missing or different line does not match the blocks', () => {
  expect(() => pass(new BlockCheck(blocks), [...lines, lines[0]!])).toThrow('More movements')
  expect(() => pass(new BlockCheck(blocks), lines.with(20, lines[20]!.toUpperCase()))).toThrow('differ')
  expect(() => pass(new BlockCheck(blocks, 79), lines.with(90, '{}\n').slice(79))).toThrow(
    'entries 81 to 200',
  )
  expect(() => new BlockCheck(blocks, 201)).toThrow('More movements')
  const short = new BlockCheck(blocks)
  pass(short, lines.slice(0, -1))
  expect(short.isComplete).toBe(false)
})

test.each([
  ['0', 0],
  ['12', 12_000],
  [' 3 ', 3_000],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
  ['soon', undefined],
  [undefined, undefined],
])('at noon of 1 March 2026, Retry-After %j means a wait of %j ms', (text, ms) => {
  expect(retryAfterOf(text, Date.parse('2026-03-01T12:00:00Z'))).toBe(ms)
})
