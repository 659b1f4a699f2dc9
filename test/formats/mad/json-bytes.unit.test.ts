/** JSON written byte by byte, compared with arithmetic and JSON.stringify. */

import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { writeAttachments, writeText } from '../../../src/formats/mad/json-bytes.ts'
import {
  outputOf,
  pieceOf,
  Rows,
  writeDecimal,
  writeJson,
  writePiece,
} from '../../../src/formats/text-bytes.ts'

/** A row of one field, between bytes that do not belong to it. */
const rowOf = (text: string) => {
  const bytes = Buffer.from(`x${text}"\\"\\"\\"\\`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return new Rows(bytes, view, Int32Array.of(1, bytes.length - 7))
}

/** Writes inside a buffer. The bytes around the result must not change, except seven bytes after its end. */
const written = (write: (out: ReturnType<typeof outputOf>, at: number) => number): string => {
  const out = outputOf(new Uint8Array(2048).fill(0x23))
  const end = write(out, 5)
  expect([...out.bytes.subarray(0, 5), out.bytes[end + 7]]).toEqual([0x23, 0x23, 0x23, 0x23, 0x23, 0x23])
  return new TextDecoder().decode(out.bytes.subarray(5, end))
}

const decimal = (units: bigint, decimals: number): string => {
  const row = rowOf(String(units))
  return written((out, at) => writeDecimal(out, at, row, row.start(0), row.end(0), decimals))
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

test('a decimal of any size is written exactly', () => {
  const edges = [9_007_199_254_740_991n, 9_007_199_254_740_993n, 9_223_372_036_854_775_807n]
  const powers = Array.from({ length: 19 }, (_, i) => 10n ** BigInt(i))
  const small = Array.from({ length: 2001 }, (_, i) => BigInt(i))
  const near = [...edges, ...powers].flatMap((value) => [value - 1n, value, value + 1n])
  for (const size of [...small, ...near, ...near.map((value) => value * 3n)])
    for (const units of [size, -size])
      for (const decimals of [2, 4]) expect(decimal(units, decimals)).toBe(expectedDecimal(units, decimals))
})

/** Escapes a text as COPY's text format does. */
const copied = (text: string): string => {
  const letters: Record<string, string> = { '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v' }
  return text.replace(/[\b\f\n\r\t\v\\]/g, (sign) => `\\${letters[sign] ?? sign}`)
}

test('every character, alone and among others, is written as by JSON.stringify', () => {
  const signs = [
    ...Array.from({ length: 0x2ff }, (_, i) => String.fromCodePoint(i + 1)),
    '\u2028',
    '\uffff',
    '😀',
  ]
  for (const sign of signs)
    for (const text of [sign, `a${sign}`, `${sign}b`, `é${sign}${sign}中`])
      expect(written((out, at) => writeText(out, at, rowOf(copied(text)), 0))).toBe(JSON.stringify(text))
})

test('a character that must be escaped is found at every position of a text of any length', () => {
  const signs = [...'"\\\n\u0001\u001f\v !#[]\u007fé€😀\u0082']
  for (let length = 0; length <= 40; length++)
    for (let place = 0; place <= length; place++)
      for (const sign of signs) {
        const text = `${'~'.repeat(place)}${sign}${'é'.repeat(length - place)}`
        expect(written((out, at) => writeText(out, at, rowOf(copied(text)), 0))).toBe(JSON.stringify(text))
      }
})

test('a piece of any length is written completely', () => {
  for (let length = 0; length <= 300; length++) {
    const text = Array.from({ length }, (_, i) => String.fromCharCode(0x30 + ((i * 7 + length) % 64))).join(
      '',
    )
    expect(written((out, at) => writePiece(out, at, pieceOf(text)))).toBe(text)
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
      const row = rowOf(copied(json))
      const compact = written((out, at) => writeJson(out.bytes, at, row, 0))
      expect(JSON.parse(compact)).toEqual(JSON.parse(json))
      expect(compact).toBe(
        json.startsWith('{') ? `{${JSON.stringify(text)}:[1,0.10,${JSON.stringify(text)}]}` : json,
      )
      expect(written((out, at) => writeJson(out.bytes, at, row, 0, 'doubled'))).toBe(
        compact.replaceAll('"', '""'),
      )
      expect(written((out, at) => writeJson(out.bytes, at, row, 0, 'copied'))).toBe(copied(compact))
    }
})

test('attachments become files with a type, with any texts in their names and addresses', () => {
  for (const name of ['a.pdf', 'a "b": c.pdf', 'back\\slash', '\\"', 'é: {😀}'])
    for (const address of ['https://example.com/1', 'x" : "y', 'C:\\dir\\', '']) {
      const row = rowOf(copied(`{${JSON.stringify(name)}: ${JSON.stringify(address)}, "z": "https://z"}`))
      const files = { [name]: { type: 'URL', value: address }, z: { type: 'URL', value: 'https://z' } }
      expect(written((out, at) => writeAttachments(out, at, row, 0))).toBe(JSON.stringify(files))
    }
})

test('an id is read from the bytes of its digits', () => {
  for (const id of ['1', '10', '9007199254740991']) {
    expect(rowOf(id).id(0)).toBe(Number(id))
  }
})
