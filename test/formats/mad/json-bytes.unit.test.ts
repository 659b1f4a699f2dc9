/** JSON written byte by byte, compared with arithmetic and JSON.stringify. */

import { expect, test } from 'vitest'
import { writeAttachments } from '../../../src/formats/mad/attachments.ts'
import { writeText, writeDecimal as writeWordDecimal } from '../../../src/formats/mad/json-bytes.ts'
import { outputOf, pieceOf, writePiece } from '../../../src/formats/mad/words.ts'
import { writeDecimal } from '../../../src/formats/minor-units.ts'
import { bytesOf, readId, writeJson } from '../../../src/formats/text-bytes.ts'

const written = (write: (out: Uint8Array, at: number) => number): string => {
  // Starts inside the buffer, between bytes that must not change.
  const out = new Uint8Array(2048).fill(0x23)
  const end = write(out, 5)
  expect([...out.subarray(0, 5), out[end]]).toEqual([0x23, 0x23, 0x23, 0x23, 0x23, 0x23])
  return new TextDecoder().decode(out.subarray(5, end))
}

/** A row of one field, between bytes that do not belong to it. */
const rowOf = (text: string) => {
  const bytes = bytesOf(`x${text}"\\"\\"\\"\\`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return { bytes, view, fields: Int32Array.of(1, bytes.length - 7) }
}

/** As `written`; what follows the end may change, but for no more than seven bytes. */
const writtenInWords = (write: (out: ReturnType<typeof outputOf>, at: number) => number): string => {
  const out = outputOf(new Uint8Array(2048).fill(0x23))
  const end = write(out, 5)
  expect([...out.bytes.subarray(0, 5), out.bytes[end + 7]]).toEqual([0x23, 0x23, 0x23, 0x23, 0x23, 0x23])
  return new TextDecoder().decode(out.bytes.subarray(5, end))
}

const decimal = (units: bigint, decimals: number): string => {
  const bytes = bytesOf(`7${units}7`)
  return written((out, at) => writeDecimal(out, at, bytes, 1, bytes.length - 1, decimals))
}

/** By integer arithmetic: the quotient, and the remainder without trailing zeros. */
function expectedDecimal(units: bigint, decimals: number): string {
  const scale = 10n ** BigInt(decimals)
  const size = units < 0n ? -units : units
  const fraction = String(size % scale)
    .padStart(decimals, '0')
    .replace(/0+$/, '')
  return `${units < 0n ? '-' : ''}${size / scale}${fraction === '' ? '' : `.${fraction}`}`
}

test('a decimal is exact at any size', () => {
  const edges = [9_007_199_254_740_991n, 9_007_199_254_740_993n, 9_223_372_036_854_775_807n]
  const powers = Array.from({ length: 19 }, (_, i) => 10n ** BigInt(i))
  const small = Array.from({ length: 2001 }, (_, i) => BigInt(i))
  const near = [...edges, ...powers].flatMap((value) => [value - 1n, value, value + 1n])
  for (const size of [...small, ...near, ...near.map((value) => value * 3n)])
    for (const units of [size, -size])
      for (const decimals of [2, 4] as const) {
        const expected = expectedDecimal(units, decimals)
        expect(decimal(units, decimals)).toBe(expected)
        const row = rowOf(String(units))
        const [start, next] = row.fields
        const inWords = writtenInWords((out, at) =>
          writeWordDecimal(out, at, row, start!, next! - 1, decimals),
        )
        expect(inWords).toBe(expected)
      }
})

test('a decimal is a JSON number without superfluous digits', () => {
  for (const [units, text] of [
    [0n, '0'],
    [1n, '0.01'],
    [-1n, '-0.01'],
    [10n, '0.1'],
    [100n, '1'],
    [26444n, '264.44'],
    [10_000n, '100'],
    [-9_223_372_036_854_775_807n, '-92233720368547758.07'],
  ] as const) {
    expect(decimal(units, 2)).toBe(text)
    expect(JSON.parse(text)).toBe(Number(text))
  }
  expect([decimal(1_000_000n, 4), decimal(333_333n, 4), decimal(1n, 4), decimal(-5n, 4)]).toEqual([
    '100',
    '33.3333',
    '0.0001',
    '-0.0005',
  ])
})

/** Escapes a text as COPY's text format does. */
const copied = (text: string): string => {
  const letters: Record<string, string> = {
    '\b': 'b',
    '\f': 'f',
    '\n': 'n',
    '\r': 'r',
    '\t': 't',
    '\v': 'v',
    '\\': '\\',
  }
  return text.replace(/[\b\f\n\r\t\v\\]/g, (sign) => `\\${letters[sign]}`)
}

test('every character, alone and among others, is written as JSON.stringify does', () => {
  const signs = [
    ...Array.from({ length: 0x2ff }, (_, i) => String.fromCodePoint(i + 1)),
    '\u2028',
    '\uffff',
    '😀',
  ]
  for (const sign of signs)
    for (const text of [sign, `a${sign}`, `${sign}b`, `é${sign}${sign}中`])
      expect(writtenInWords((out, at) => writeText(out, at, rowOf(copied(text)), 0))).toBe(
        JSON.stringify(text),
      )
})

test('what must be escaped is found at every position of a text of any length', () => {
  const signs = [
    '"',
    '\\',
    '\n',
    '\u0001',
    '\u001f',
    '\v',
    ' ',
    '!',
    '#',
    '[',
    ']',
    '\u007f',
    'é',
    '€',
    '😀',
    '\u0082',
  ]
  for (let length = 0; length <= 40; length++)
    for (let place = 0; place <= length; place++)
      for (const sign of signs) {
        const text = `${'~'.repeat(place)}${sign}${'é'.repeat(length - place)}`
        expect(writtenInWords((out, at) => writeText(out, at, rowOf(copied(text)), 0))).toBe(
          JSON.stringify(text),
        )
      }
})

test('a piece of any length is written whole', () => {
  for (let length = 0; length <= 300; length++) {
    const text = Array.from({ length }, (_, i) => String.fromCharCode(0x30 + ((i * 7 + length) % 64))).join(
      '',
    )
    expect(writtenInWords((out, at) => writePiece(out, at, pieceOf(text)))).toBe(text)
  }
})

test('JSON keeps its strings and digits, and loses the blanks between its tokens', () => {
  for (const text of [
    '',
    ' ',
    'a b',
    '"',
    '\\',
    '\\"',
    '\\\\n',
    '\n\t\u0001',
    '{": "}',
    'é😀\u2028',
    'C:\\dir\\',
  ])
    for (const json of [
      JSON.stringify(text),
      `{${JSON.stringify(text)}: [1,  0.10, ${JSON.stringify(text)}]}`,
    ]) {
      const bytes = bytesOf(`x${copied(json)}x`)
      const compact = written((out, at) => writeJson(out, at, bytes, 1, bytes.length - 1))
      expect(JSON.parse(compact)).toEqual(JSON.parse(json))
      expect(compact).toBe(
        json.startsWith('{') ? `{${JSON.stringify(text)}:[1,0.10,${JSON.stringify(text)}]}` : json,
      )
      expect(written((out, at) => writeJson(out, at, bytes, 1, bytes.length - 1, true))).toBe(
        compact.replaceAll('"', '""'),
      )
    }
})

test('attachments become files with a type, whatever their names and addresses contain', () => {
  for (const name of ['a.pdf', 'a "b": c.pdf', 'back\\slash', '\\"', 'é: {😀}'])
    for (const address of ['https://example.com/1', 'x" : "y', 'C:\\dir\\', '']) {
      const bytes = bytesOf(
        `x${copied(`{${JSON.stringify(name)}: ${JSON.stringify(address)}, "z": "https://z"}`)}x`,
      )
      const files = { [name]: { type: 'URL', value: address }, z: { type: 'URL', value: 'https://z' } }
      expect(written((out, at) => writeAttachments(out, at, bytes, 1, bytes.length - 1))).toBe(
        JSON.stringify(files),
      )
    }
})

test('an id is read from its digits', () => {
  for (const id of ['1', '10', '9007199254740991']) {
    const bytes = bytesOf(`5${id}5`)
    expect(readId(bytes, 1, bytes.length - 1)).toBe(Number(id))
  }
})
