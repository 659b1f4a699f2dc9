/**
 * A proxy before the real service that lies about ledgers. Whatever it does, no ledger is committed that differs from the
 * service's, each lie ends with a sentence or is overcome, and what is not proven is never handed over.
 */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addLargeExercice } from '../../../../../test/support/ledgers/large-exercice.ts'
import { folders } from '../../../../../test/support/ledgers/tenants.ts'
import { type ExportStage, setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { type ColumnType, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import { type Grandlivre, GrandlivreError } from '../../../src/client/grandlivre.ts'
import { type FaultyProxy, startFaultyProxy } from '../../support/client/faulty-proxy.ts'
import { libraryOf } from '../../support/client/library.ts'
import { linesOf, MemoryCopy } from '../../support/client/memory-copy.ts'

const path = '/api/v1/mad/ledgers/changes'
const wanted = [{ society: folders.first.folderId }, { society: folders.sameFirm.folderId }]

let stage: ExportStage
let proxy: FaultyProxy
let ledger: Grandlivre
let truth: MemoryCopy
/** Every row that the service sends. */
let rows: Set<string>
/** The lines of its answer. */
let lines: Buffer[]

beforeAll(async () => {
  const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
  stage = await setExportStage({ rateLimit })
  await addLargeExercice(stage.staff.client, 1_500)
  proxy = await startFaultyProxy(stage.service.url)
  const pacing = { random: () => 0, sleep: () => delay(5) }
  ledger = libraryOf(stage.firm, proxy.url, { pacing, attemptsMax: 2 })
  proxy.fault = () => ({
    kind: 'rewrite',
    body: (whole) => {
      lines = linesOf(whole)
      return whole
    },
  })
  truth = new MemoryCopy()
  await truth.follow(ledger, wanted, { encoding: 'identity' })
  rows = new Set(lines.filter((line) => !isJson(line)).map(String))
})

afterAll(async () => {
  ledger?.close()
  await proxy?.close()
  await stage?.close()
})

const isJson = (line: Buffer) => line[0] === 123
const kindOf = (line: Buffer) => (isJson(line) ? Object.keys(JSON.parse(String(line)))[0] : 'row')

type Lie = (lines: Buffer[]) => Buffer | Buffer[] | Iterable<Buffer>

/** Follows an answer that is always spoiled so. @returns the error, if it was not overcome */
async function believe(lie: Lie, isProven = false): Promise<GrandlivreError | undefined> {
  proxy.fault = (asked) =>
    asked.startsWith(path) ? { kind: 'rewrite', body: (whole) => bodyOf(lie(linesOf(whole))) } : undefined
  const copy = new MemoryCopy()
  let error: unknown
  try {
    for await (const part of ledger.ledgerChanges(wanted, { encoding: 'identity' })) {
      copy.take(part)
      if (part.kind === 'rows' && !isProven)
        for (const line of linesOf(part.bytes))
          if (!rows.has(String(line))) throw new Error(`A wrong row: ${line}`)
    }
    expect(copy.ledgers.size).toBe(2)
  } catch (thrown) {
    error = thrown
  }
  for (const { society } of wanted)
    if (copy.ledgers.has(society)) expect(copy.text(society) === truth.text(society)).toBe(true)
  if (error === undefined) return undefined
  expect(error).toBeInstanceOf(GrandlivreError)
  return error as GrandlivreError
}

const bodyOf = (made: ReturnType<Lie>) => (Array.isArray(made) ? Buffer.concat(made) : made)

/** Places that are tried, over all lines of this kind. */
function placesOf(all: Buffer[], kind: string, count: number): number[] {
  const found = all.flatMap((line, at) => (kindOf(line) === kind ? [at] : []))
  const step = Math.max(1, found.length / count)
  return [...new Set(Array.from({ length: count }, (_, nth) => found[Math.floor(nth * step)]))].filter(
    (at) => at !== undefined,
  )
}

const kinds = ['ledger', 'table', 'rows', 'end', 'whole', 'row']

describe('lines that are', () => {
  const ways: [string, (all: Buffer[], at: number) => Buffer[]][] = [
    ['left out', (all, at) => all.toSpliced(at, 1)],
    ['doubled', (all, at) => all.toSpliced(at, 0, all[at]!)],
    [
      'put behind the next',
      (all, at) => [...all.slice(0, at), ...all.slice(at, at + 2).reverse(), ...all.slice(at + 2)],
    ],
    ['sent first', (all, at) => [all[at]!, ...all.toSpliced(at, 1)]],
    ['without their line feed', (all, at) => all.with(at, all[at]!.subarray(0, -1))],
  ]
  for (const [way, spoil] of ways)
    test.each(kinds)(`${way}: %s`, async (kind) => {
      for (const at of placesOf(lines, kind, 6)) {
        const spoiled = spoil(lines, at)
        // The last line has none behind it, the first none before.
        if (Buffer.concat(spoiled).equals(Buffer.concat(lines))) continue
        const error = await believe(() => spoiled)
        // Both ledgers are proven before the last line.
        if (kind === 'whole' && Buffer.concat(lines).includes(Buffer.concat(spoiled))) {
          expect(error).toBeUndefined()
          continue
        }
        expect([way, kind, at, error?.code]).toEqual([
          way,
          kind,
          at,
          expect.stringMatching(/^(NOT-PROVEN|CONNECTION-LOST|UNEXPECTED-ANSWER)$/),
        ])
        expect(error!.message).not.toMatch(/undefined|Cannot/)
        expect(error!.message).toMatch(/^(Ledger \d+|The ledgers).*: ./)
      }
    })
})

test('breaks after the first line, and refusals of its cursor, end with the refusal', async () => {
  let answers = 0
  const refusal = '{"refused":"111","code":"ERR-CURSOR-EXPIRED","message":"no"}\n{"whole":0,"refusals":1}\n'
  proxy.fault = (asked) =>
    asked.startsWith(path)
      ? {
          kind: 'rewrite',
          body: (whole) => {
            answers += 1
            return answers % 2 === 1 ? linesOf(whole)[0]! : Buffer.from(refusal)
          },
        }
      : undefined
  const kinds: string[] = []
  for await (const { kind } of ledger.ledgerChanges([{ society: '111' }], { encoding: 'identity' }))
    kinds.push(kind)
  expect([answers, kinds.at(-2)]).toEqual([6, 'refused'])
})

test('one bit that is another, at a hundred places, is never handed over', async () => {
  const whole = Buffer.concat(lines)
  for (let nth = 0; nth < 100; nth += 1) {
    const at = nth < 50 ? nth * 37 : Math.floor((nth * whole.length) / 100)
    const error = await believe(() => {
      const spoiled = Buffer.from(whole)
      spoiled[at]! ^= 1 << (nth % 7)
      return spoiled
    })
    // A cursor names a state, and nothing proves it before it is used.
    if (!error) expect([at, kindOf(lineAt(at))]).toEqual([at, 'ledger'])
  }
})

function lineAt(place: number): Buffer {
  let left = place
  return lines.find((line) => {
    left -= line.length
    return left < 0
  })!
}

interface Said {
  ledger: string
  columns: string[]
  rows: number
  tables: object
}

/** The same line with some members of other values. */
const changed =
  (kind: string, members: (line: Said) => object): Lie =>
  (all) =>
    all.map((line) =>
      kindOf(line) === kind
        ? Buffer.from(
            `${JSON.stringify({ ...JSON.parse(String(line)), ...members(JSON.parse(String(line))) })}\n`,
          )
        : line,
    )

describe('JSON that says', () => {
  const sha256 = 'a'.repeat(64)
  const lies: [string, string, (line: Said) => object, RegExp][] = [
    ['another folder', 'ledger', () => ({ ledger: '112' }), /ledger 112 came where 111 was asked for/],
    ['a folder as a number', 'ledger', ({ ledger }) => ({ ledger: Number(ledger) }), /111/],
    ['a state before', 'ledger', () => ({ since: 'x' }), /came since x and was asked for since null/],
    ['a cursor that is none', 'ledger', () => ({ cursor: 'x'.repeat(65) }), /cursor is no cursor/],
    ['no cursor', 'ledger', () => ({ cursor: undefined }), /cursor is no cursor/],
    ['fewer entries', 'ledger', () => ({ entries: [['1', '5']] }), /in none of its ranges/],
    ['entries backwards', 'ledger', () => ({ entries: [['5', '1']] }), /not ascending/],
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
    ['a table that nobody knows', 'table', () => ({ table: 'notes' }), /the table notes has other columns/],
    ['a table by a name of objects', 'table', () => ({ table: 'constructor' }), /other columns/],
    ['one more column', 'table', ({ columns }) => ({ columns: [...columns, 'x'] }), /other columns/],
    ['one column less', 'table', ({ columns }) => ({ columns: columns.slice(1) }), /other columns/],
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
    ['rows as a text', 'rows', ({ rows: count }) => ({ rows: String(count) }), /rows is no number/],
    ['rows below zero', 'rows', () => ({ rows: -1 }), /their proof says -1/],
    ['another digest', 'rows', () => ({ sha256 }), /differ from their SHA-256/],
    ['a digest in capitals', 'rows', () => ({ sha256: sha256.toUpperCase() }), /sha256 is no SHA-256/],
    ['another end', 'end', () => ({ end: '999' }), /its end is that of 999/],
    ['fewer movements', 'end', ({ rows: count }) => ({ rows: count - 1 }), /rows of its movements are/],
    ['another debit', 'end', () => ({ debit: '1.00' }), /debit of its movements are/],
    ['another credit', 'end', () => ({ credit: '0.01' }), /credit of its movements are/],
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
  test.each(lies)('%s (%s)', async (_, kind, members, message) => {
    const error = await believe(changed(kind, members))
    expect(error).toMatchObject({ message: expect.stringMatching(message) })
    expect(error!.code).toBe(kind === 'table' ? 'UNEXPECTED-ANSWER' : 'NOT-PROVEN')
    expect(error!.requestId).toBeDefined()
  })
})

describe('lines in place of the first', () => {
  const lies: [string, string][] = [
    ['nothing', ''],
    ['an empty line', '\n'],
    ['no JSON', '{"ledger"\n'],
    ['no UTF-8', '{"ledger":"\u00ff"}\n'],
    ['an object of no kind', '{}\n'],
    ['nested a hundred thousand times', `{"ledger":${'['.repeat(100_000)}${']'.repeat(100_000)}}\n`],
    ['nested objects', `${'{"ledger":'.repeat(50_000)}1${'}'.repeat(50_000)}\n`],
    ['a text of almost a mebibyte', `{"ledger":"${'1'.repeat(1_000_000)}"}\n`],
    ['a member of the prototype', '{"__proto__":{"ledger":"111"}}\n'],
    ['an end', '{"whole":0,"refusals":0}\n'],
    ['a refusal of another', '{"refused":"999","code":"ERR-FOLDER-NOT-FOUND","message":"x"}\n'],
    ['a refusal without a message', '{"refused":"111","code":"ERR-FOLDER-NOT-FOUND"}\n'],
    ['two mebibytes of JSON', `{"ledger":"${'1'.repeat(2 ** 21)}"}\n`],
    ['a row', '1\t2\n'],
  ]
  test.each(lies)('%s', async (_, first) => {
    const error = await believe((all) => [Buffer.from(first, 'latin1'), ...all.slice(1)])
    expect(error?.code).toBe('NOT-PROVEN')
  })
})

/** Movements of the first ledger as this makes them, with proofs that fit them. */
const forged =
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

describe('forged movements with proofs that fit', () => {
  const at = 700
  const cell = (column: number, value: string) => (all: string[][]) =>
    all.with(at, all[at]!.with(column, value))
  const lies: [string, (all: string[][]) => string[][], RegExp][] = [
    ['one is missing', (all) => all.toSpliced(at, 1), /rows of its movements are/],
    ['one is there twice', (all) => all.toSpliced(at, 0, all[at]!), /has the id \d+ after/],
    [
      'two are exchanged',
      (all) => all.with(at, all[at + 1]!).with(at + 1, all[at]!),
      /has the id|is of entry/,
    ],
    ['another entry', cell(0, '5'), /is of entry 5, after/],
    ['no entry', cell(0, '\\N'), /has as entry_id what COPY does not write/],
    ['no movement', cell(18, ''), /has as movement_id what COPY does not write/],
    ['a movement beyond numbers', cell(18, '9007199254740992'), /has the id 9007199254740992, beyond all/],
    ['an entry beyond numbers', cell(0, '9007199254740993'), /was not announced/],
    ['another amount', cell(28, '1.00'), /debit of its movements are/],
    ['no amount', cell(29, '\\N'), /has as credit what COPY does not write/],
    ['one more column', (all) => all.with(at, [...all[at]!, 'x']), /has 40 columns instead of 39/],
    ['one column less', (all) => all.with(at, all[at]!.slice(1)), /columns instead of/],
    ['sent as one of another folder', (all) => all.slice(0, 10), /rows of its movements are/],
  ]
  test.each(lies)('%s', async (_, make, message) => {
    const error = await believe(forged(make), true)
    expect(error).toMatchObject({ code: 'NOT-PROVEN', message: expect.stringMatching(message) })
  })

  // What a copy would take, and give back as another line.
  const otherwise: Record<ColumnType, string[]> = {
    bigint: ['007', '+5', '1e3', ' 5', '5 ', '-0', '', '0x1', '5.0', '1_000', '9223372036854775808'],
    date: ['2026-1-5', '20260105', 'today', '05/01/2026', '02026-01-05'],
    timestamptz: ['2026-01-05', '2026-01-05 10:00:00', '2026-01-05 10:00:00+02', '2026-01-05 10:00:00.10+00'],
    boolean: ['true', '1', 'T'],
    'numeric(18,2)': ['1', '1.0', '1.000', '01.00', '-0.00', '+1.00', '1e2', 'NaN', '.10', 'x.00'],
    'numeric(18,6)': ['1.1', '-0.000000', '01.000000'],
    text: ['\\x41', 'a\\N', '\\N\\N', '\\.', 'a\\', '\\q', 'a\rb', 'a\0b'],
    json: ['"\\u0041"'],
  }
  const { columns } = ledgerTables.movements
  test.each(Object.entries(otherwise))('%s that COPY writes otherwise', async (type, values) => {
    const ofType = columns.filter((column) => column.type === type)
    for (const [nth, value] of values.entries()) {
      const column = ofType[nth % ofType.length]!
      const error = await believe(forged(cell(columns.indexOf(column), value)), true)
      const told = `has as ${column.name} what COPY does not write`
      expect([value, error?.message]).toEqual([value, expect.stringContaining(told)])
    }
  })

  test('the same, made by the same hand, is right', async () => {
    expect(
      await believe(
        forged((all) => all),
        true,
      ),
    ).toBeUndefined()
  })
})

describe('more than memory holds', () => {
  const mebibyte = 1024 * 1024
  const lies: [string, (nth: number) => Buffer, RegExp][] = [
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
  test.each(lies)('%s', async (_, piece, message) => {
    let sent = 0
    const error = await believe((all) =>
      (function* () {
        yield all[0]!
        for (let nth = 0; nth < 500; nth += 1) {
          sent += 1
          yield piece(nth)
        }
      })(),
    )
    expect(error).toMatchObject({ code: 'NOT-PROVEN', message: expect.stringMatching(message) })
    expect(sent).toBeLessThan(60)
  })
})
