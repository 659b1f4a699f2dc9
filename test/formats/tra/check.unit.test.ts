import { expect, test } from 'vitest'
import { checkTra, type TraSummary } from '../../../src/formats/tra/check/check.ts'
import { fieldOf, layouts, type TraRecord } from '../../../src/formats/tra/layouts.ts'
import {
  entryWriter,
  purchase,
  shareLine,
  smallEntries,
  smallParameters,
} from '../../support/imports/small-tra.ts'

const valid = [...smallParameters(), ...smallEntries()]

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
const check = (lines: Buffer[], size = 64 * 1024) => checkTra(inPieces(Buffer.concat(lines), size))

/** Index of the nth line of a record, both from 0. */
function lineOf(record: TraRecord, nth = 0): number {
  const starts = (line: Buffer) => {
    const text = line.toString('latin1')
    if (record === 'HEADER') return text.startsWith('***S5')
    if (record !== 'ENTRY' && record !== 'ANALYTIC') return text.startsWith(`***${record}`)
    return !text.startsWith('***') && (text[30] === 'A') === (record === 'ANALYTIC')
  }
  return valid.map((line, at) => (starts(line) ? at : -1)).filter((at) => at >= 0)[nth]!
}

/** The valid file with a field of the nth line of a record overwritten. */
function planted(record: TraRecord, field: string, value: string, nth = 0): Buffer[] {
  return changed(lineOf(record, nth), (line) => withField(line, record, field, value))
}

function withField(line: Buffer, record: TraRecord, field: string, value: string): Buffer {
  const { at, length } = fieldOf(layouts[record], field)
  const text = line.toString('latin1').slice(0, -2)
  const wide = Buffer.from(text.padEnd(at - 1 + length), 'latin1')
  wide.write(value.padEnd(length), at - 1, 'latin1')
  return Buffer.concat([wide, Buffer.from('\r\n')])
}

const changed = (at: number, change: (line: Buffer) => Buffer) => valid.with(at, change(valid[at]!))
const resized = (at: number, change: (text: string) => string) =>
  changed(at, (line) => Buffer.from(change(line.toString('latin1')), 'latin1'))

test('a valid file has no problem, and gets a summary', async () => {
  const summary = await check(valid)
  expect(summary.problems).toEqual([])
  expect(summary).toMatchObject({
    header: {
      type: 'DOS',
      format: 'ETE',
      version: '011',
      generatedAt: '2024-04-02 09:05',
      user: 'Grandlivre',
      firm: 'Cabinet Lefèvre',
    },
    folder: 'Société Bérénice',
    lines: valid.length,
    problemCount: 0,
    movements: 5,
    entries: 2,
    shares: 2,
    debit: 240_000n,
    credit: 240_000n,
    firstDate: '2024-03-15',
    lastDate: '2024-03-15',
  })
  expect(Object.fromEntries(summary.journals)).toEqual({
    AC: { movements: 3, debit: 120_000n, credit: 120_000n },
    BQ: { movements: 2, debit: 120_000n, credit: 120_000n },
  })
  expect(Object.fromEntries(summary.lettering)).toEqual({ TL: 2, RI: 3 })
  expect(Object.fromEntries(summary.journalNames)).toEqual({ AC: 'Achats', AN: 'À nouveaux', BQ: 'Banque' })
  expect(Object.fromEntries(summary.records)).toMatchObject({
    HEADER: 1,
    CGN: 7,
    CAE: 1,
    ENTRY: 5,
    ANALYTIC: 2,
  })
  expect(summary.records.has('SSA')).toBe(false)
})

test.each([1, 7, 1407, 1409, 5000])(
  'a file read in pieces of %s bytes gets the same summary',
  async (size) => {
    expect(await check(valid, size)).toEqual(await check(valid))
  },
)

test('results stay the same if the input buffer is reused', async () => {
  const buffer = Buffer.alloc(3000)
  async function* reused() {
    for await (const piece of inPieces(Buffer.concat(valid), buffer.length)) {
      buffer.set(piece)
      yield buffer.subarray(0, piece.length)
    }
  }
  expect(await checkTra(reused())).toEqual(await check(valid))
})

interface Planted {
  lines: Buffer[]
  /** Line and column of the only problem, both from 1, and its message. */
  line: number
  column: number
  message: RegExp
}

const field = (record: TraRecord, name: string, value: string, message: RegExp, nth = 0): Planted => ({
  lines: planted(record, name, value, nth),
  line: lineOf(record, nth) + 1,
  column: fieldOf(layouts[record], name).at,
  message,
})
/** @param at index of the line with the problem @param column from 1 */
const plant = (lines: Buffer[], at: number, column: number, message: RegExp): Planted => ({
  lines,
  line: at + 1,
  column,
  message,
})
/** The second line with another character in its column 21. */
const withCharacter = (character: string) =>
  plant(
    resized(1, (text) => text.slice(0, 20) + character + text.slice(21)),
    1,
    21,
    /not a printable character/,
  )
const share = lineOf('ANALYTIC')
const lastEntry = valid.length - 1
const length = (at: number) => valid[at]!.length - 2

const problems: Record<string, Planted> = {
  'a line that ends with LF only': plant(
    resized(2, (text) => text.replace('\r\n', '\n')),
    2,
    length(2) + 1,
    /does not end with CR LF/,
  ),
  'a last line without an end': plant(
    resized(lastEntry, (text) => text.slice(0, -2)),
    lastEntry,
    1408,
    /does not end with CR LF/,
  ),
  'a tab': withCharacter('\t'),
  'a byte that Windows-1252 leaves undefined': withCharacter('\x81'),
  'a carriage return inside a line': withCharacter('\r'),
  'a line that is too long': plant(
    resized(lastEntry, (text) => text.replace('\r\n', 'x\r\n')),
    lastEntry,
    1408,
    /longer than its 1407 columns/,
  ),
  'a line that is too short': plant(
    resized(lineOf('REG'), () => '***REGFRAFrance\r\n'),
    lineOf('REG'),
    16,
    /last mandatory column, 44/,
  ),
  'a truncated number': plant(
    resized(lineOf('TVA'), (text) => text.replace(/.\r\n$/, '\r\n')),
    lineOf('TVA'),
    58,
    /right-aligned number/,
  ),
  'an unknown record': plant(
    valid.toSpliced(3, 0, Buffer.from('***ZZZ\r\n')),
    3,
    4,
    /not a record of TRA files/,
  ),
  'a mandatory field that is blank': field('CGN', 'NATURE', '', /value is required/, 2),
  'an invalid day': field('EXO', 'DATEFIN', '31022024', /DDMMYYYY/),
  'an invalid number': field('ENTRY', 'TAUXDEV', '      1.00', /right-aligned number/),
  'a number on the left': field('ENTRY', 'NUMEROPIECE', '1', /right-aligned number/),
  'an invalid boolean': field('CGN', 'POINTABLE', 'O', /X or -/),
  'a value that is not in its list': field('JAL', 'NATURE', 'XXX', /one of ACH\|ANA/),
  'a format other than ETE': field('HEADER', 'FORMAT', 'STD', /one of ETE/),
  'a journal that is not defined': field('ENTRY', 'JOURNAL', 'ZZ', /no JAL record/, 4),
  'an account that is not defined': field('ENTRY', 'GENERAL', '445661', /no CGN record/, 1),
  'a third party that is not defined': field(
    'ENTRY',
    'AUXILIAIRE OU SECTION',
    '401MARTIN',
    /no CAE record/,
    2,
  ),
  'a third party under another collective': field(
    'ENTRY',
    'GENERAL',
    '471000',
    /collective account 401000/,
    2,
  ),
  'a third party on a general line': field(
    'ENTRY',
    'AUXILIAIRE OU SECTION',
    '401DUPONT',
    /only lines of TYPE CPTE X/,
  ),
  'a collective without a third party': {
    ...field('ENTRY', 'TYPE CPTE', ' ', /has only lines of TYPE CPTE X/, 2),
    lines: changed(lineOf('ENTRY', 2), () =>
      entryWriter({ account: '401000', credit: 120_000n }).text('ETATLETTRAGE', 'AL').line(),
    ),
  },
  'a payment mode that is not defined': field('ENTRY', 'MODEPAIE', 'LCR', /no MDP record/),
  'a currency that is not defined': field('ENTRY', 'DEVISE', 'CHF', /no DEV record/),
  'an establishment that is not defined': field('ENTRY', 'ETABLISSEMENT', '002', /no ETB record/),
  'a section that is not defined': field(
    'ANALYTIC',
    'AUXILIAIRE OU SECTION',
    'NORD',
    /no SAT record .* axis A1/,
  ),
  'a default section that is not defined': field('PS2', 'SECT2ATTEND', 'SIEGE', /no SAT record/),
  'a suspense account that is not defined': field('PS2', 'GENATTEND', '472000', /no CGN record/),
  'an opening journal that is not defined': field('PS3', 'JALOUVRE', 'RAN', /no JAL record/),
  'a default collective that is not defined': field('PS3', 'CLIDEFAUT', '411000', /no CGN record/),
  'a payment mode of a condition that is not defined': field('MDR', 'MP1', 'VIR', /no MDP record/),
  'a correspondence that is not defined': field('CGN', 'CORRESP1', '281831', /no CRR record/, 1),
  'a condition of a third party that is not defined': field('CAE', 'MODE REGLEMENT', 'VIR', /no MDR record/),
  'a journal account that is not defined': field('JAL', 'COMPTE', '512001', /no CGN record/, 2),
  'a bank account that is not defined': field('RIB', 'AUXILIAIRE', '512001', /no CAE or CGN record/),
  'a code that is defined twice': plant(
    valid.toSpliced(lineOf('JAL', 1), 0, valid[lineOf('JAL')]!),
    lineOf('JAL', 1),
    7,
    /another JAL record/,
  ),
  'a record out of its order': plant(
    valid.toSpliced(lineOf('JAL'), 0, valid[lineOf('REG')]!).toSpliced(lineOf('REG'), 1),
    lineOf('JAL') - 1,
    4,
    /REG records must come before the CAE records/,
  ),
  'a parameter after an entry': plant(
    [...valid, valid[lineOf('RIB')]!],
    valid.length,
    4,
    /before the first entry/,
  ),
  'a mandatory record that is missing': plant(
    valid.toSpliced(lineOf('SOU'), 1),
    valid.length - 2,
    1,
    /DOS must have a SOU record/,
  ),
  'an entry that does not balance': plant(
    changed(lineOf('ENTRY', 1), () => entryWriter({ account: '445660', debit: 20_001n }).line()),
    lineOf('ENTRY'),
    152,
    /debits of this entry exceed its credits by 0,01/,
  ),
  'a last entry that does not balance': plant(
    valid.slice(0, -1),
    lineOf('ENTRY', 3),
    152,
    /exceed its credits by 1200,00/,
  ),
  'shares that do not add up': plant(
    changed(share, () => shareLine(purchase, 'A1', 'SIEGE', 60_001n)),
    lineOf('ENTRY'),
    131,
    /axis A1 add up to 1000,01/,
  ),
  'shares of another line': field('ANALYTIC', 'SENS', 'C', /line that it divides has "D"/),
  'a line dated differently from its entry': {
    ...field('ENTRY', 'DATECOMPTABLE', '16032024', /first line of the entry has "15032024"/, 1),
  },
  'an entry outside the years': plant(
    valid.with(
      lineOf('EXO'),
      Buffer.from(valid[lineOf('EXO')]!.toString('latin1').replace('0101202431122024', '0104202431122024')),
    ),
    lineOf('ENTRY'),
    4,
    /no EXO record/,
  ),
  'a lettering in the wrong case': field('ENTRY', 'LETTRAGE', 'AAaA', /upper case/, 2),
  'a lettering without a code': field('ENTRY', 'LETTRAGE', '', /four characters/, 2),
  'a lettering code of five characters': field('ENTRY', 'LETTRAGE', 'AAAAA', /four characters/, 2),
  'a code without a lettering': field('ENTRY', 'LETTRAGE', 'AAAA', /RI takes no code/),
  'a partial lettering in upper case': {
    ...field('ENTRY', 'ETATLETTRAGE', 'PL', /lower case/, 2),
    column: 1014,
  },
  'a validation without its day': field('ENTRY', 'VALIDDATE', '01011900', /day of validation/),
  'a foreign amount without one in euro': {
    ...field('ENTRY', 'CODEMONTANT', 'DE-', /amount in euro/, 4),
    column: 176,
  },
  'an amount with one decimal': field('ENTRY', 'MONTANT1', '1200,0'.padStart(20), /two decimals/, 4),
}

/** Further problems caused by the planted one: entries outside a year that has no valid end, and so on. */
const furtherProblems: Record<string, number> = {
  'an invalid day': 2,
  'a number on the left': 2,
  'a journal that is not defined': 1,
  'an entry outside the years': 1,
  'a foreign amount without one in euro': 1,
  'an amount with one decimal': 1,
}

test.each(Object.entries(problems))('%s is found at its line and column', async (name, planted) => {
  const { lines, line, column, message } = planted
  const { problems: found } = await check(lines)
  expect(found).toContainEqual(
    expect.objectContaining({ line, column, message: expect.stringMatching(message) }),
  )
  expect(found).toHaveLength(1 + (furtherProblems[name] ?? 0))
})

test('the shares of the last line are added up too', async () => {
  const credit = entryWriter({ account: '445660', credit: 100_000n }).line()
  const lines = [credit, entryWriter(purchase).line(), shareLine(purchase, 'A1', 'SIEGE', 1n)]
  const { problems: found } = await check([...smallParameters(), ...lines])
  expect(found).toEqual([expect.objectContaining({ column: 131, value: '1000,00' })])
})

test('a share that follows no movement is reported', async () => {
  const lines = [...smallParameters(), shareLine(purchase, 'A1', 'SIEGE', 1n)]
  expect((await check(lines)).problems).toContainEqual(
    expect.objectContaining({
      column: 31,
      message: expect.stringContaining('must follow the line that it divides'),
    }),
  )
})

test('a repeated entry number is reported', async () => {
  const again = [...smallEntries(), ...smallEntries().slice(0, 5)]
  const { problems: found } = await check([...smallParameters(), ...again])
  expect(found).toEqual([
    expect.objectContaining({
      line: valid.length + 1,
      column: 152,
      message: expect.stringContaining('previous one is 2'),
    }),
  ])
})

test('a JRL file needs no records without values', async () => {
  const lines = planted('HEADER', 'TYPE FICHIER', 'JRL').filter(
    (line) => !/^\*{3}[A-Z]{3}\r\n$/.test(line.toString('latin1')),
  )
  expect(lines.length).toBe(valid.length - 4)
  expect((await check(lines)).problems).toEqual([])
})

test.each([
  ['nothing', '', 1, /empty/],
  ['a JSON export', '{"metadata":{"version":"1.0.0"}}\r\n{}\r\n', 1, /not a TRA file/],
  ['a text without an end', `***S5${'x'.repeat(200_000)}`, 1, /without an end/],
])('%s is not a TRA file, and reading stops there', async (_, text, line, message) => {
  const { problems: found, problemCount } = await check([Buffer.from(text)])
  expect(problemCount).toBe(1)
  expect(found[0]).toMatchObject({ line, message: expect.stringMatching(message) })
})

test('an endless line is not read to its end, and the file is refused', async () => {
  let pieces = 0
  async function* endless() {
    yield Buffer.concat(valid)
    for (; pieces < 10_000; pieces++) yield Buffer.alloc(64 * 1024, 'x')
  }
  expect((await checkTra(endless())).problemCount).toBe(1)
  expect(pieces).toBeLessThan(5)
})

test('the lines before an endless line are read', async () => {
  const { problems: found, lines } = await check([...valid, Buffer.alloc(200_000, 'x')], 1024 * 1024)
  expect(lines).toBe(valid.length)
  expect(found).toEqual([expect.objectContaining({ line: valid.length + 1 })])
})

test('an error in every line is counted each time, but only the first ones are listed', async () => {
  const bad = entryWriter({ account: '999999', debit: 0n }).line()
  const summary: TraSummary = await check([...smallParameters(), ...Array<Buffer>(1000).fill(bad)])
  expect(summary.problemCount).toBe(1000)
  expect(summary.problems).toHaveLength(100)
})

test('the problems listed are the first of the file, even if a line has several', async () => {
  const at = lineOf('CAE') + 1
  const wrong = Array.from({ length: 100 }, (_, i) => {
    const named = withField(valid[lineOf('CAE')]!, 'CAE', 'CODE', `FNEW${i}`)
    return withField(withField(named, 'CAE', 'COLLECTIF', '499999'), 'CAE', 'MODE REGLEMENT', 'XX')
  })
  const { problems, problemCount } = await check(valid.toSpliced(at, 0, ...wrong))
  expect(problemCount).toBe(200)
  const lines = Array.from({ length: 50 }, (_, i) => at + 1 + i)
  expect(problems.map(({ line }) => line)).toEqual(lines.flatMap((line) => [line, line]))
})
