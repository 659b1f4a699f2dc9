/** The FEC parser: every form of the same ledger gives the same lines, and every error states its position. */
import iconv from 'iconv-lite'
import { describe, expect, test } from 'vitest'
import { detectEncoding } from '../../../src/formats/fec/encoding.ts'
import { FecError, FecProblems } from '../../../src/formats/fec/fields.ts'
import { FecFindings, type FecLine, parseFec } from '../../../src/formats/fec/parse.ts'
import {
  changed,
  columns,
  type FecRow,
  fecFile,
  forms,
  ledger,
  refusals,
} from '../../support/ledgers/fec-file.ts'

/** Splits the file into pieces of that many bytes, so that characters, line ends and fields are cut anywhere. */
async function* inPieces(file: Buffer, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.length; at += bytes) yield file.subarray(at, at + bytes)
}

async function parse(file: Buffer, bytes = 7): Promise<FecLine[]> {
  const { encoding } = await detectEncoding(inPieces(file, bytes))
  return (await Array.fromAsync(parseFec(inPieces(file, bytes), encoding))).flat()
}

async function problemsOf(file: Buffer): Promise<FecError['problems']> {
  const error = await parse(file).catch((refused: unknown) => refused)
  expect(error).toBeInstanceOf(FecError)
  return (error as FecError).problems
}

test('each line is read with the values of its columns', async () => {
  const lines = await parse(fecFile(ledger))
  expect(lines).toHaveLength(ledger.length)
  expect(lines[9]).toEqual({
    number: 11,
    journalCode: 'HA',
    journalName: 'Achats',
    entryNumber: '9',
    date: '2023-02-02',
    accountNumber: '401000',
    accountName: 'Fournisseurs',
    thirdPartyNumber: 'F.IT',
    thirdPartyName: 'F. I. T.',
    pieceReference: 'INV-5',
    pieceDate: '2023-02-02',
    description: 'Beans',
    debit: 0n,
    credit: 9000n,
    letteringCode: '',
    letteredOn: undefined,
    validatedOn: '2023-02-28',
    amountInCurrency: -100_000n,
    amountInCurrencyAsFiled: '-100,00',
    currency: 'USD',
    currencyAsFiled: 'USD',
    settledOn: undefined,
    paymentMode: '',
    operationNature: '',
    clientId: '',
    further: [],
  })
  expect(lines[11]).toMatchObject({ description: 'Vente "spéciale" \\ août', debit: 60_000n })
  expect(lines[14]).toMatchObject({ thirdPartyName: 'Müller', debit: -6000n, credit: 0n })
})

test('fields may contain the separator if all are in quotes; otherwise the quotes belong to the text', async () => {
  const text = '"Dupont"; Martin; ""'
  const quote = (value: string) => `"${value.replaceAll('"', '""')}"`
  const { lines, findings } = await parseWith(
    fecFile(changed(0, 'EcritureLib', text), { separator: ';', nameOf: quote, write: quote }),
  )
  expect(lines[0]).toMatchObject({ description: text, debit: 0n, credit: 30_000n, letteringCode: '' })
  expect(lines).toHaveLength(ledger.length)
  expect(findings).toMatchObject({ quotedLines: ledger.length })
  const some = await parseWith(fecFile(changed(0, 'EcritureLib', '"Dupont ""et"" fils"')))
  expect(some.lines[0]!.description).toBe('"Dupont ""et"" fils"')
  expect(some.findings).toMatchObject({ quotedLines: 0 })
})

test('amounts and days in other forms are read and counted', async () => {
  const same = { PieceDate: '1/12/2023', DateLet: '0/0/0000', Montantdevise: '1\u00a0000.0-' }
  const rows: FecRow[] = ledger.slice(0, 4).map((row) => ({ ...row, ...same }))
  rows[0]!['Debit'] = '12 345 678,5'
  rows[0]!['Credit'] = '0,00-'
  rows[1]!['Debit'] = '-1\u202f500'
  rows[2]!['Debit'] = ',5-'
  rows[3]!['PieceDate'] = '01/2/2023 10:30'
  const { lines, findings } = await parseWith(fecFile(rows))
  expect(lines.map(({ debit }) => debit)).toEqual([1_234_567_850n, -150_000n, -50n, 0n])
  expect(lines.map(({ pieceDate }) => pieceDate)).toEqual([
    '2023-12-01',
    '2023-12-01',
    '2023-12-01',
    '2023-02-01',
  ])
  expect(lines[0]).toMatchObject({
    letteredOn: undefined,
    amountInCurrency: -1_000_000n,
    amountInCurrencyAsFiled: '-1000,0',
  })
  expect(findings).toMatchObject({ groupedAmounts: 6, trailingMinuses: 6 })
  expect(findings.dayColumns.get('PieceDate')).toMatchObject({ shortDays: 4, droppedTimes: 1 })
  expect(findings.dayColumns.get('EcritureDate')).toMatchObject({ shortDays: 0 })
})

test.each(Object.entries(forms))('%s gives the same lines', async (_, form) => {
  expect(await parse(fecFile(ledger, form))).toEqual(await parse(fecFile(ledger)))
})

test.each(Object.entries(refusals))(
  '%s is refused with its position',
  async (name, { file, line, column, value }) => {
    const [problem, ...others] = await problemsOf(file)
    expect(problem).toMatchObject({ line, column, value, message: expect.stringMatching(/\w{3}/) })
    // An invalid side is a problem of every line of its file. A file with Montant beside Debit also lacks Credit.
    if (column !== 'Sens' && name !== 'Montant beside Debit') expect(others).toEqual([])
  },
)

test('fields of the maximum length are accepted; blanks around them do not count', async () => {
  const codes = { JournalCode: 'J'.repeat(32), CompteNum: '6'.repeat(32), CompAuxNum: 'A'.repeat(32) }
  const texts = { EcritureNum: 'N'.repeat(64), CompteLib: 'é'.repeat(255), EcritureLib: '😀'.repeat(5000) }
  const long = { ...ledger[5]!, ...codes, ...texts, Debit: '20,00'.padStart(64, '0') }
  const padded = Object.entries(long).map(([column, value]) => [column, `${' '.repeat(600)}${value} `])
  const [line] = await parse(fecFile([Object.fromEntries(padded)]))
  expect(line).toMatchObject({
    ...{ journalCode: codes.JournalCode, accountNumber: codes.CompteNum, thirdPartyNumber: codes.CompAuxNum },
    ...{ entryNumber: texts.EcritureNum, accountName: texts.CompteLib, description: texts.EcritureLib },
    debit: 2000n,
  })
})

test('a line may have 64 KiB, wherever the chunks of the file end', async () => {
  const lines = fecFile(ledger).toString().split('\n')
  const padded = (bytes: number) =>
    Buffer.from(
      lines.with(6, lines[6]!.padEnd(lines[6]!.length + bytes - Buffer.byteLength(lines[6]!))).join('\n'),
    )
  for (const pieces of [1000, 65_536, 1_000_000]) {
    expect(await parse(padded(65_536), pieces)).toEqual(await parse(fecFile(ledger)))
    await expect(parse(padded(65_537), pieces)).rejects.toThrow('line 7, line')
  }
})

test('a field that is too long is refused with its length and the limit', async () => {
  const [problem] = await problemsOf(fecFile(changed(5, 'CompteNum', '6'.repeat(5000))))
  expect(problem).toMatchObject({
    ...{ line: 7, column: 'CompteNum', value: `${'6'.repeat(60)}...` },
    message: 'at most 32 characters are expected, this field has 5000',
  })
})

test('up to 20 problems are reported at once, in the order of the file', async () => {
  const wrong = ledger.map((row, at) => ({
    ...row,
    ...(at % 2 === 0 && { Debit: '?' }),
    PieceDate: '',
    Idevise: 'dollars',
  }))
  const problems = await problemsOf(fecFile(wrong))
  expect(problems).toHaveLength(20)
  expect(problems.slice(0, 3)).toMatchObject([
    { line: 2, column: 'Debit' },
    { line: 2, column: 'Idevise' },
    { line: 3, column: 'Idevise' },
  ])
})

test('control characters for terminals are shown escaped, not executed', async () => {
  const rows = changed(5, 'Debit', '\x1b[2J\x9b1;31m20,0O')
  const error = await parse(fecFile(rows)).catch((refused: unknown) => refused)
  expect((error as FecError).message).toContain('line 7, Debit "\\x1b[2J\\x9b1;31m20,0O"')
  const apart = await parse(refusals['a surplus field']!.file).catch((refused: unknown) => refused)
  expect((apart as FecError).message).toContain('"HA\\tAchats\\t9')
})

test('all errors of a header are reported at once', async () => {
  const names = [...columns.filter((column) => column !== 'Credit'), '', 'EcritureLib']
  const problems = await problemsOf(fecFile(ledger, { columns: names }))
  expect(problems.map(({ message }) => message)).toEqual([
    'the column 18 has no name',
    expect.stringContaining('EcritureLib appears twice'),
    expect.stringContaining('Credit is missing'),
  ])
})

test.each([
  [['CodeDevise', 'Devise'], 'Idevise', 'currencyAsFiled'],
  [['EcritureLettrage', 'LettragePiece'], 'EcritureLet', 'letteringCode'],
  [['LettragePiece', 'EcrtureLet', 'EcritureLettrage'], 'EcritureLet', 'letteringCode'],
] as const)('if a column has several other names, one of them is used: %s', async (names, column, member) => {
  const own = { CodeDevise: '978', Devise: 'USD', EcritureLettrage: 'A', LettragePiece: 'B', EcrtureLet: 'C' }
  const taken = { Idevise: 'Devise', EcritureLet: names.length > 2 ? 'EcrtureLet' : 'EcritureLettrage' }[
    column
  ]
  const rows = ledger.map((row) => ({ ...row, ...own }))
  const file = fecFile(rows as unknown as FecRow[], {
    columns: [...columns.filter((one) => one !== column), ...names],
  })
  const { lines, findings } = await parseWith(file)
  expect(findings.renamedColumns).toEqual([{ name: taken, column }])
  const others = names.filter((name) => name !== taken)
  expect(findings.furtherColumns).toEqual(others)
  expect(lines[0]).toMatchObject({
    [member]: own[taken as keyof typeof own],
    further: others.map((name) => own[name]),
  })
  const twice = fecFile(rows as unknown as FecRow[], {
    columns: [...columns.filter((one) => one !== column), ...names, names[0].toLowerCase()],
  })
  await expect(parseWith(twice)).rejects.toThrow(/column \w+ appears twice/)
})

async function parseWith(file: Buffer): Promise<{ lines: FecLine[]; findings: FecFindings }> {
  const findings = new FecFindings()
  const batches = parseFec(inPieces(file, 7), 'utf-8', new FecProblems(), findings)
  return { lines: (await Array.fromAsync(batches)).flat(), findings }
}

test('further columns are read under their own names, even if these are names of object members', async () => {
  const names = ['constructor', '__proto__', 'Libelle', 'Sens', 'NatOp', '17']
  const rows = ledger.map((row, at) => ({
    ...row,
    constructor: `c${at}`,
    Libelle: 'L',
    Sens: 'D',
    17: ' x ',
  }))
  const { lines, findings } = await parseWith(
    fecFile(rows as unknown as FecRow[], {
      columns: [...columns.slice(0, 9), ...names, ...columns.slice(9)],
    }),
  )
  expect(findings.furtherColumns).toEqual(['constructor', '__proto__', 'Libelle', 'Sens', '17'])
  expect(findings.columnsBeyondStandard).toEqual(names)
  // The column Libelle stands for EcritureLib only in a file without one, and Sens has no meaning beside Debit and Credit.
  expect(lines[3]).toMatchObject({
    further: ['c3', expect.anything(), 'L', 'D', 'x'],
    debit: 0n,
    credit: 12_000n,
  })
  expect(lines[3]!.description).toBe('Café à réception n° 12')
})

test('all days of a column may have another form, and a time after them is dropped and counted', async () => {
  const asWritten = (value: string, column: string) => {
    const [year, month, day] = [value.slice(0, 4), value.slice(4, 6), value.slice(6)]
    if (value === '') return column === 'DateLet' ? '0000-00-00 00:00:00' : value
    if (column === 'EcritureDate') return `${day}/${month}/${year}`
    if (column === 'DateLet') return `${year}-${month}-${day}`
    return column === 'ValidDate' ? `${value}T10:25:37.5+01:00` : value
  }
  const { lines, findings } = await parseWith(fecFile(ledger, { write: asWritten }))
  expect(lines).toEqual(await parse(fecFile(ledger)))
  const counts = [...findings.dayColumns].map(([column, { droppedTimes }]) => [column, droppedTimes])
  expect(Object.fromEntries(counts)).toMatchObject({ EcritureDate: 0, DateLet: 0, ValidDate: 11 })
})

describe('the form of a column of days', () => {
  const slashed = (day: string) => `${day.slice(6)}/${day.slice(4, 6)}/${day.slice(0, 4)}`
  const dated = (days: Record<number, FecRow>) => fecFile(ledger.map((row, at) => ({ ...row, ...days[at] })))
  const expected = 'a day written YYYYMMDD is expected, as'

  test('is the form of most of its days: days in another form are problems, wherever they are', async () => {
    for (const at of [0, 13, 26]) {
      const day = slashed(ledger[at]!['EcritureDate']!)
      expect(await problemsOf(dated({ [at]: { EcritureDate: day } }))).toEqual([
        {
          ...{ line: at + 2, column: 'EcritureDate', value: day },
          message: `${expected} 26 of the 27 days of this column are`,
        },
      ])
    }
    // If half of the days have another form, the form of the standard is expected.
    const half = ledger
      .slice(0, 2)
      .map((row, at) => ({ ...row, ...(at === 0 && { PieceDate: '01/01/2023' }) }))
    expect(await problemsOf(fecFile(half))).toMatchObject([{ line: 2, column: 'PieceDate' }])
    const others = fecFile(ledger, {
      write: (value, column) => (column !== 'EcritureDate' || value === '20230331' ? value : slashed(value)),
    })
    expect(await problemsOf(others)).toMatchObject([
      {
        line: 18,
        value: '20230331',
        message: expect.stringMatching(/^a day written DD\/MM\/YYYY .*; also in line 19$/),
      },
    ])
  })

  test('leaves room for other problems: each unusual or invalid day is named once, with its lines', async () => {
    const days: Record<number, FecRow> = { 0: { EcritureDate: '01/01/2023' }, 26: { Debit: '?' } }
    for (let at = 1; at < 26; at += 1) days[at] = { ValidDate: '20230230' }
    for (let at = 1; at < 12; at += 1) days[at]!['EcritureDate'] = '2023-01-31'
    const after = `${expected} 15 of the 27 days of this column are`
    expect(await problemsOf(dated(days))).toEqual([
      { line: 2, column: 'EcritureDate', value: '01/01/2023', message: after },
      {
        ...{ line: 3, column: 'ValidDate', value: '20230230' },
        message: 'a day of the calendar written YYYYMMDD is expected; also in lines 4, 5, 6, 7 and 20 more',
      },
      {
        ...{ line: 3, column: 'EcritureDate', value: '2023-01-31' },
        message: `${after}; also in lines 4, 5, 6, 7 and 6 more`,
      },
      { line: 28, column: 'Debit', value: '?', message: expect.any(String) },
    ])
  })

  test('does not fill the report with one column before the unusual day of another is named', async () => {
    const days: Record<number, FecRow> = { 26: { PieceDate: '31/12/2023' } }
    for (let at = 0; at < 25; at += 1) days[at] = { ValidDate: `202302${at + 40}` }
    const problems = await problemsOf(dated(days))
    expect(problems).toHaveLength(20)
    expect(problems.at(-1)).toMatchObject({ line: 28, column: 'PieceDate', value: '31/12/2023' })
  })
})

test('lines in another encoding and truncated characters leave the lines around them intact', async () => {
  const lines = fecFile(ledger).toString().split('\n')
  const whole = await parse(fecFile(ledger))
  for (const share of [0.1, 0.3]) {
    const cut = Math.floor(lines.length * share)
    const [first, second] = [lines.slice(0, cut).join('\n'), `\n${lines.slice(cut).join('\n')}`]
    const file = Buffer.concat([iconv.encode(first, 'windows-1252'), Buffer.from(second)])
    expect((await detectEncoding(inPieces(file, 7))).encoding).toBe('utf-8')
    expect(await parse(file)).toEqual(whole)
  }
  const text = 'Réglé – 12 €'
  const bytes = fecFile(changed(3, 'EcritureLib', text))
  const end = bytes.indexOf('€') + 2
  const read = await parse(Buffer.concat([bytes.subarray(0, end), bytes.subarray(end + 1)]))
  expect(read[3]).toMatchObject({ description: 'Réglé – 12 â‚', thirdPartyName: "Société Générale d'été" })
  expect(read.toSpliced(3, 1)).toEqual(whole.toSpliced(3, 1))
})
