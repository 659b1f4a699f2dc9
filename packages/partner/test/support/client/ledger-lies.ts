/**
 * Lies of a server about two ledgers, as changes of the lines of an honest answer. Each client has to find them. The
 * first ledger has at least 1,500 movements.
 */
import { createHash } from 'node:crypto'
import type { ColumnType } from '../../../../contract/src/ledger-tables.ts'

export const isJson = (line: Buffer) => line[0] === 123
export const kindOf = (line: Buffer) => (isJson(line) ? Object.keys(JSON.parse(String(line)))[0] : 'row')

export type Lie = (lines: Buffer[]) => Buffer | Buffer[] | Iterable<Buffer>

export const kinds = ['ledger', 'table', 'rows', 'end', 'whole', 'row']

/** Indexes of at most `count` lines of this kind, spread over the answer. */
export function placesOf(all: Buffer[], kind: string, count: number): number[] {
  const found = all.flatMap((line, at) => (kindOf(line) === kind ? [at] : []))
  const step = Math.max(1, found.length / count)
  return [...new Set(Array.from({ length: count }, (_, nth) => found[Math.floor(nth * step)]))].filter(
    (at) => at !== undefined,
  )
}

/** A hundred copies of the answer, each with one changed bit, and the kind of the line that contains the bit. */
export function* withOneBitChanged(
  lines: Buffer[],
): Generator<{ at: number; kind: string | undefined; spoiled: Buffer }> {
  const whole = Buffer.concat(lines)
  for (let nth = 0; nth < 100; nth += 1) {
    const at = nth < 50 ? nth * 37 : Math.floor((nth * whole.length) / 100)
    const spoiled = Buffer.from(whole)
    spoiled[at]! ^= 1 << (nth % 7)
    let left = at
    const line = lines.find(({ length }) => {
      left -= length
      return left < 0
    })!
    yield { at, kind: kindOf(line), spoiled }
  }
}

/** What happens to a line: the name of the change, and the change. */
export const ways: [string, (all: Buffer[], at: number) => Buffer[]][] = [
  ['left out', (all, at) => all.toSpliced(at, 1)],
  ['doubled', (all, at) => all.toSpliced(at, 0, all[at]!)],
  [
    'put behind the next',
    (all, at) => [...all.slice(0, at), ...all.slice(at, at + 2).reverse(), ...all.slice(at + 2)],
  ],
  ['sent first', (all, at) => [all[at]!, ...all.toSpliced(at, 1)]],
  ['without their line feed', (all, at) => all.with(at, all[at]!.subarray(0, -1))],
]

interface JsonLine {
  ledger: string
  columns: string[]
  rows: number
  tables: object
}

/** Changes members of all lines of a kind. */
export const changed =
  (kind: string, members: (line: JsonLine) => object): Lie =>
  (all) =>
    all.map((line) =>
      kindOf(line) === kind
        ? Buffer.from(
            `${JSON.stringify({ ...JSON.parse(String(line)), ...members(JSON.parse(String(line))) })}\n`,
          )
        : line,
    )

const sha256 = 'a'.repeat(64)
/** Lies in lines of JSON: the name of the lie, the kind of line, the members that it changes, and the error. */
export const jsonLies: [string, string, (line: JsonLine) => object, RegExp][] = [
  ['another folder', 'ledger', () => ({ ledger: '112' }), /ledger 112 came where 111 was asked for/],
  ['a folder as a number', 'ledger', ({ ledger }) => ({ ledger: Number(ledger) }), /111/],
  ['an older state', 'ledger', () => ({ since: 'x' }), /came since x and was asked for since null/],
  ['an invalid cursor', 'ledger', () => ({ cursor: 'x'.repeat(65) }), /cursor is no cursor/],
  ['no cursor', 'ledger', () => ({ cursor: undefined }), /cursor is no cursor/],
  ['fewer entries', 'ledger', () => ({ entries: [['1', '5']] }), /in none of its ranges/],
  ['descending entries', 'ledger', () => ({ entries: [['5', '1']] }), /not ascending/],
  [
    'entries twice',
    'ledger',
    () => ({
      entries: [
        ['0', '9'],
        ['9', '10'],
      ],
    }),
    /not ascending/,
  ],
  ['entries without an end', 'ledger', () => ({ entries: [['0']] }), /entries\[0\].1 is no id/],
  ['entries beyond all', 'ledger', () => ({ entries: [['0', '9999999999999999']] }), /not ascending/],
  ['an unknown table', 'table', () => ({ table: 'notes' }), /the table notes has other columns/],
  ['a table by a name of objects', 'table', () => ({ table: 'constructor' }), /other columns/],
  ['an extra column', 'table', ({ columns }) => ({ columns: [...columns, 'x'] }), /other columns/],
  ['a missing column', 'table', ({ columns }) => ({ columns: columns.slice(1) }), /other columns/],
  [
    'columns in another order',
    'table',
    ({ columns }) => ({ columns: columns.toReversed() }),
    /other columns/,
  ],
  [
    'more rows',
    'rows',
    ({ rows: count }) => ({ rows: count + 1 }),
    /rows of folders came, and their proof says/,
  ],
  ['a count as a text', 'rows', ({ rows: count }) => ({ rows: String(count) }), /rows is no number/],
  ['a negative count', 'rows', () => ({ rows: -1 }), /their proof says -1/],
  ['another digest', 'rows', () => ({ sha256 }), /differ from their SHA-256/],
  ['a digest in capitals', 'rows', () => ({ sha256: sha256.toUpperCase() }), /sha256 is no SHA-256/],
  ['a wrong end', 'end', () => ({ end: '999' }), /its end is that of 999/],
  ['fewer movements', 'end', ({ rows: count }) => ({ rows: count - 1 }), /rows of its movements are/],
  ['a wrong debit', 'end', () => ({ debit: '1.00' }), /debit of its movements are/],
  ['a wrong credit', 'end', () => ({ credit: '0.01' }), /credit of its movements are/],
  ['a sum without decimals', 'end', () => ({ debit: '1' }), /debit is no sum/],
  [
    'another table',
    'end',
    ({ tables }) => ({ tables: { ...tables, vats: sha256 } }),
    /the table vats differs/,
  ],
  ['no tables', 'end', () => ({ tables: {} }), /tables.folders is no SHA-256/],
  ['more ledgers', 'whole', () => ({ whole: 3 }), /the last line says 3 and 0/],
  ['more refusals', 'whole', () => ({ refusals: 1 }), /the last line says 2 and 1/],
]

/** Lines that replace the first line, by name. */
export const firstLines: [string, string][] = [
  ['nothing', ''],
  ['an empty line', '\n'],
  ['no JSON', '{"ledger"\n'],
  ['no UTF-8', '{"ledger":"\u00ff"}\n'],
  ['an unknown object', '{}\n'],
  ['nested a hundred thousand times', `{"ledger":${'['.repeat(100_000)}${']'.repeat(100_000)}}\n`],
  ['nested objects', `${'{"ledger":'.repeat(50_000)}1${'}'.repeat(50_000)}\n`],
  ['a text of almost a mebibyte', `{"ledger":"${'1'.repeat(1_000_000)}"}\n`],
  ['a member of the prototype', '{"__proto__":{"ledger":"111"}}\n'],
  ['an end', '{"whole":0,"refusals":0}\n'],
  ['a refusal of 999', '{"refused":"999","code":"ERR-FOLDER-NOT-FOUND","message":"x"}\n'],
  ['a refusal without a message', '{"refused":"111","code":"ERR-FOLDER-NOT-FOUND"}\n'],
  ['two mebibytes of JSON', `{"ledger":"${'1'.repeat(2 ** 21)}"}\n`],
  ['a row', '1\t2\n'],
]

/** Replaces the movements of the first ledger by those that `make` returns, with matching proofs. */
export const forged =
  (make: (row: string[][]) => string[][]): Lie =>
  (all) => {
    const table = all.findIndex((line) => String(line).startsWith('{"table":"movements"'))
    const end = all.findIndex((line) => kindOf(line) === 'end')
    const sent = all.slice(table + 1, end).filter((line) => !isJson(line))
    const made = make(sent.map((line) => String(line).slice(0, -1).split('\t'))).map((row) =>
      Buffer.from(`${row.join('\t')}\n`),
    )
    const groups: Buffer[] = []
    for (let from = 0; from < made.length; from += 500) {
      const group = made.slice(from, from + 500)
      const sha256 = createHash('sha256').update(Buffer.concat(group)).digest('hex')
      groups.push(...group, Buffer.from(`${JSON.stringify({ rows: group.length, sha256 })}\n`))
    }
    return [...all.slice(0, table + 1), ...groups, ...all.slice(end)]
  }

const at = 700
/** Gives one cell another value. */
export const cell = (column: number, value: string) => (all: string[][]) =>
  all.with(at, all[at]!.with(column, value))
/** Forged movements: the name of the forgery, how it changes the rows, and the error. */
export const forgeries: [string, (all: string[][]) => string[][], RegExp][] = [
  ['a lost movement', (all) => all.toSpliced(at, 1), /rows of its movements are/],
  ['a repeated one', (all) => all.toSpliced(at, 0, all[at]!), /has the id \d+ after/],
  ['two exchanged', (all) => all.with(at, all[at + 1]!).with(at + 1, all[at]!), /has the id|is of entry/],
  ['a wrong entry', cell(0, '5'), /is of entry 5, after/],
  ['no entry id', cell(0, '\\N'), /has as entry_id what COPY does not write/],
  ['no movement id', cell(18, ''), /has as movement_id what COPY does not write/],
  [
    'a movement beyond numbers',
    cell(18, '9007199254740992'),
    /has the id 9007199254740992, and 9007199254740991 is the greatest/,
  ],
  ['an entry beyond numbers', cell(0, '9007199254740993'), /was not announced/],
  ['a wrong amount', cell(28, '1.00'), /debit of its movements are/],
  ['no amount', cell(29, '\\N'), /has as credit what COPY does not write/],
  ['an extra column', (all) => all.with(at, [...all[at]!, 'x']), /has 40 columns instead of 39/],
  ['a missing column', (all) => all.with(at, all[at]!.slice(1)), /columns instead of/],
  ['movements cut short', (all) => all.slice(0, 10), /rows of its movements are/],
]

/** By type, values that a copy would accept and give back in another form. */
export const otherForms: Record<ColumnType, string[]> = {
  bigint: ['007', '+5', '1e3', ' 5', '5 ', '-0', '', '0x1', '5.0', '1_000', '9223372036854775808'],
  date: ['2026-1-5', '20260105', 'today', '05/01/2026', '02026-01-05'],
  timestamptz: ['2026-01-05', '2026-01-05 10:00:00', '2026-01-05 10:00:00+02', '2026-01-05 10:00:00.10+00'],
  boolean: ['true', '1', 'T'],
  'numeric(18,2)': ['1', '1.0', '1.000', '01.00', '-0.00', '+1.00', '1e2', 'NaN', '.10', 'x.00'],
  'numeric(18,6)': ['1.1', '-0.000000', '01.000000'],
  text: ['\\x41', 'a\\N', '\\N\\N', '\\.', 'a\\', '\\q', 'a\rb', 'a\0b'],
  json: ['"\\u0041"'],
}

const mebibyte = 1024 * 1024
/** Pieces of a body that never ends. */
export const endless: [string, (nth: number) => Buffer, RegExp][] = [
  ['a row without an end', () => Buffer.alloc(mebibyte, 97), /a row has more than 16 MiB/],
  [
    'rows without a proof',
    () => Buffer.alloc(mebibyte, '1\t2\n'),
    /more than 1 MiB of rows came without a proof/,
  ],
  [
    'JSON without an end',
    (nth) => Buffer.alloc(mebibyte, nth === 0 ? '{' : 'a'),
    /a line of JSON has more than 1 MiB/,
  ],
]
