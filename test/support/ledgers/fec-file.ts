/** A small ledger, and the many forms in which programs write one. */
import iconv from 'iconv-lite'
import { readFixture } from '../fixtures/fixture-files.ts'

export type FecRow = Record<string, string>

/** The 18 columns of the regulation, in its order. */
export const columns = [
  'JournalCode',
  'JournalLib',
  'EcritureNum',
  'EcritureDate',
  'CompteNum',
  'CompteLib',
  'CompAuxNum',
  'CompAuxLib',
  'PieceRef',
  'PieceDate',
  'EcritureLib',
  'Debit',
  'Credit',
  'EcritureLet',
  'DateLet',
  'ValidDate',
  'Montantdevise',
  'Idevise',
]

/**
 * 27 lines of the fiscal year 2023: opening balances (one under its old date), purchases (one in dollars, one line of
 * zero), sales with one number on two dates, wages, and a bank journal whose entry number is always 0.
 */
export const ledger: readonly FecRow[] = readFixture('ledger.fec.txt')
  .toString('utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => Object.fromEntries(line.split('|').map((field, index) => [columns[index]!, field])))

export interface FecForm {
  separator?: string
  lineEnd?: string
  encoding?: 'utf8' | 'windows-1252' | 'iso-8859-15' | 'cp850'
  byteOrderMark?: boolean
  /** The text after the last line break. */
  fileEnd?: string
  trailingSeparator?: boolean
  /** Columns in the order of the file; those of the regulation by default. */
  columns?: readonly string[]
  /** A column's name in the header. */
  nameOf?: (column: string) => string
  write?: (value: string, column: string, row: FecRow) => string
}

/** Writes a FEC with these lines in the given form. */
export function fecFile(rows: readonly FecRow[], form: FecForm = {}): Buffer {
  const { separator = '\t', lineEnd = '\n', nameOf = (column) => column } = form
  const { write = (value) => value, trailingSeparator = false } = form
  const names = form.columns ?? columns
  const end = (trailingSeparator ? separator : '') + lineEnd
  const lines = rows.map(
    (each) => names.map((name) => write(each[name] ?? '', name, each)).join(separator) + end,
  )
  const text = names.map(nameOf).join(separator) + end + lines.join('') + (form.fileEnd ?? '')
  const mark = Buffer.from(form.byteOrderMark ? '\uFEFF' : '')
  return Buffer.concat([mark, iconv.encode(text, form.encoding ?? 'utf8')])
}

const inQuotes = (value: string) => `"${value.replaceAll('"', '""')}"`
const isAmount = (column: string) => ['Debit', 'Credit'].includes(column)

function montantAndSens(debit: string, credit: string): FecForm {
  const amounts: Record<string, string> = { Debit: 'Montant', Credit: 'Sens' }
  return {
    columns: columns.map((column) => amounts[column] ?? column),
    write: (value, column, each) => {
      const isCredit = each['Debit'] === '0,00'
      if (column === 'Montant') return (isCredit ? each['Credit'] : each['Debit'])!
      return column === 'Sens' ? (isCredit ? credit : debit) : value
    },
  }
}

/** Each form holds the same ledger. */
export const forms: Record<string, FecForm> = {
  'tabs and UTF-8': {},
  'a byte-order mark': { byteOrderMark: true },
  pipes: { separator: '|' },
  semicolons: { separator: ';' },
  'ISO-8859-15': { encoding: 'iso-8859-15' },
  'Windows-1252': { encoding: 'windows-1252' },
  CP850: { encoding: 'cp850' },
  'a byte-order mark of UTF-8 before Windows-1252': { byteOrderMark: true, encoding: 'windows-1252' },
  'a byte-order mark of UTF-8 before CP850': { byteOrderMark: true, encoding: 'cp850' },
  '\\r\\n': { lineEnd: '\r\n' },
  '\\r\\r\\n': { lineEnd: '\r\r\n' },
  'blank lines and a Ctrl-Z at the end': { lineEnd: '\r\n', fileEnd: '\r\n  \r\n\x1A' },
  'a trailing separator': { trailingSeparator: true },
  'columns padded with blanks': { separator: '|', write: (value) => value.padEnd(30) },
  'amounts padded with zeros': {
    write: (value, column) =>
      isAmount(column) ? value.replace(/\d+/, (whole) => whole.padStart(13, '0')) : value,
  },
  'decimal points': { write: (value, column) => (isAmount(column) ? value.replace(',', '.') : value) },
  'minuses at the end': {
    write: (value, column) => (/^-\d/.test(value) && column !== 'EcritureLib' ? `${value.slice(1)}-` : value),
  },
  'days and months of one digit': {
    write: (value, column) =>
      /Date/.test(column)
        ? value.replace(/^(....)(..)(..)$/, (_, year, month, day) => `${+day}/${+month}/${year}`)
        : value,
  },
  'three decimals that end in zero': { write: (value, column) => (isAmount(column) ? `${value}0` : value) },
  'an empty field instead of zero': {
    write: (value, column, each) => {
      const isEmpty = column === 'Credit' ? each['Debit'] !== '0,00' : column === 'Debit' && value === '0,00'
      return isEmpty ? '' : value
    },
  },
  'Montant and D or C': montantAndSens('D', 'C'),
  'Montant and +1 or -1': montantAndSens('+1', '-1'),
  'columns in another order': { columns: columns.toReversed() },
  'names in capitals': { nameOf: (column) => column.toUpperCase() },
  'misspelt names': {
    nameOf: (column) => ({ EcritureLet: 'EcrtureLet', Montantdevise: 'MontantDevise' })[column] ?? column,
  },
  'all fields in quotes': { nameOf: inQuotes, write: inQuotes },
  'quotes, padded, and none around empty fields': {
    ...{ separator: ';', lineEnd: '\r\r\n', trailingSeparator: true, byteOrderMark: true },
    nameOf: (column) => ` "${column}" `,
    write: (value) => (value === '' ? ' ' : ` " ${value.replaceAll('"', '""')} " `),
  },
  'quotes in all lines but the first': { write: inQuotes },
  'names of other programs': {
    nameOf: (column) =>
      ({
        ...{ JournalLib: 'JournalLibelle', CompteLib: 'CompteLibelle', CompAuxLib: 'CompAuxLibelle' },
        ...{ EcritureLet: 'LettragePiece', Idevise: 'CodeDevise' },
      })[column] ?? column,
  },
  'columns of a cash-basis ledger': {
    columns: [...columns, 'DateRglt', 'ModeRglt', 'NatOp', 'IdClient'],
  },
  'everything at once': {
    ...montantAndSens('d', 'c'),
    columns: [
      ...columns.map((column) => ({ Debit: 'Montant', Credit: 'Sens' })[column] ?? column),
      'NatOp',
    ].toReversed(),
    separator: '|',
    encoding: 'cp850',
    lineEnd: '\r\r\n',
    trailingSeparator: true,
    nameOf: (column) => ` ${column.toLowerCase()} `,
  },
}

export interface Refusal {
  file: Buffer
  line: number
  column: string
  value: string
}

/** Changes one field of the ledger. @param index of the row, from 0. Its line in the file is `index + 2` */
export function changed(index: number, column: string, value: string): FecRow[] {
  return ledger.map((each, at) => (at === index ? { ...each, [column]: value } : { ...each }))
}

export function refusedField(index: number, column: string, value: string): Refusal {
  return { file: fecFile(changed(index, column, value)), line: index + 2, column, value }
}

/** The ledger in a form whose header is refused. */
function refusedHeader(form: FecForm, value = ''): Refusal {
  return { file: fecFile(ledger, form), line: 1, column: 'header', value }
}

/** Writes an invalid day in a column whose days have slashes. */
function refusedSlashedDay(value: string): Refusal {
  const write = (day: string, column: string) =>
    column === 'PieceDate' ? day.replace(/^(....)(..)(..)$/, '$3/$2/$1') : day
  return { file: fecFile(changed(5, 'PieceDate', value), { write }), line: 7, column: 'PieceDate', value }
}

const lastFieldGone = fecFile(ledger)
  .toString()
  .split('\n')
  .map((line, at) => (at === 4 ? line.replace(/\t[^\t]*$/, '') : line))

/** The maximum length of each field, in characters. */
const longest: Record<string, number> = {
  ...{ JournalCode: 32, JournalLib: 255, EcritureNum: 64, CompteNum: 32, CompteLib: 255, CompAuxNum: 32 },
  ...{ CompAuxLib: 255, PieceRef: 255, PieceDate: 32, EcritureLib: 5000, EcritureLet: 32 },
}

/** Invalid files, each with the line, column and value that its error names. */
export const refusals: Record<string, Refusal> = {
  'a missing field': {
    file: Buffer.from(lastFieldGone.join('\n')),
    line: 5,
    column: 'line',
    value: `${lastFieldGone[4]!.slice(0, 60)}...`,
  },
  'a surplus field': {
    file: Buffer.from(fecFile(ledger).toString().replace('Beans', 'Beans\tand more')),
    line: 11,
    column: 'line',
    value: 'HA\tAchats\t9\t20230202\t401000\tFournisseurs\tF.IT\tF. I. T.\tINV-5...',
  },
  'a missing column': refusedHeader({ columns: columns.filter((column) => column !== 'PieceRef') }),
  'a column without a name': refusedHeader({ columns: ['', ...columns] }),
  'a name of 65 characters': refusedHeader({ columns: [...columns, 'N'.repeat(65)] }, `${'N'.repeat(60)}...`),
  'more than 64 columns': refusedHeader({
    columns: [...columns, ...Array.from({ length: 47 }, (_, at) => `C${at}`)],
  }),
  'a further column twice': refusedHeader({ columns: ['PJ', ...columns, 'Pj'] }, 'Pj'),
  'a further field of 2,001 characters': {
    file: fecFile(changed(5, 'PJ', 'x'.repeat(2001)), { columns: [...columns, 'PJ'] }),
    line: 7,
    column: 'PJ',
    value: `${'x'.repeat(60)}...`,
  },
  'Montant beside Debit': refusedHeader({
    columns: columns.map((column) => (column === 'Credit' ? 'Montant' : column)),
  }),
  'a column twice': refusedHeader({ columns: [...columns, 'CompteLib'] }, 'CompteLib'),
  'a file that is not a table': {
    file: Buffer.from('Bonjour\n'),
    line: 1,
    column: 'header',
    value: 'Bonjour',
  },
  'a header partly in quotes': refusedHeader({
    nameOf: (column) => (column === 'PieceRef' ? `"${column}"` : column),
  }),
  'a line without quotes below a header in quotes': {
    file: fecFile(ledger.slice(0, 1), { nameOf: inQuotes }),
    line: 2,
    column: 'line',
    value: 'AN\tÀ nouveaux\t1\t20230101\t101000\tCapital\t\t\tRAN\t20230101\tRepor...',
  },
  'a field without quotes below a header in quotes': {
    file: fecFile(ledger, {
      nameOf: inQuotes,
      write: (value) => (value === '-100,00' ? value : inQuotes(value)),
    }),
    line: 11,
    column: 'line',
    value: '"HA"\t"Achats"\t"9"\t"20230202"\t"401000"\t"Fournisseurs"\t"F.IT"\t...',
  },
  'a line of more than 64 KiB': {
    file: fecFile(changed(5, 'JournalCode', `${' '.repeat(65_536)}HA`)),
    line: 7,
    column: 'line',
    value: ' '.repeat(60),
  },
  'a nonexistent day': refusedField(5, 'EcritureDate', '20230230'),
  'a nonexistent month': refusedField(5, 'PieceDate', '20231301'),
  'a date in another form than those before it': refusedField(5, 'ValidDate', '31/01/2023'),
  'a date with half a time': refusedField(5, 'ValidDate', '20230131 10'),
  'no date': refusedField(5, 'EcritureDate', ''),
  'an invalid amount': refusedField(5, 'Debit', '20,0O'),
  'an amount with three decimals': refusedField(5, 'Debit', '20,001'),
  'an amount whose blanks are not between thousands': refusedField(5, 'Debit', '1 0 20,00'),
  'an amount with two minuses': refusedField(5, 'Debit', '--20,00'),
  'an amount with a minus before its comma': refusedField(5, 'Debit', '20-,00'),
  'a day that its month does not have': refusedSlashedDay('31/2/2023'),
  'a month before its day': refusedSlashedDay('5/13/2023'),
  'an amount too large for the ledger': refusedField(5, 'Debit', '1000000000000000,00'),
  'both debit and credit': { ...refusedField(5, 'Credit', '1,00'), column: 'Debit', value: '20,00 / 1,00' },
  'neither debit nor credit': {
    file: fecFile(changed(5, 'Debit', '').map((each, at) => (at === 5 ? { ...each, Credit: '' } : each))),
    line: 7,
    column: 'Debit',
    value: '',
  },
  ...Object.fromEntries(
    Object.entries(longest).map(([column, max]) => [
      `a ${column} of ${max + 1} characters`,
      {
        ...refusedField(9, column, '0'.repeat(max + 1)),
        value: max < 60 ? '0'.repeat(max + 1) : `${'0'.repeat(60)}...`,
      },
    ]),
  ),
  'no account': refusedField(5, 'CompteNum', ''),
  'no journal': refusedField(5, 'JournalCode', ''),
  'an invalid currency': refusedField(9, 'Idevise', 'dollars'),
  'an invalid side': {
    file: fecFile(ledger, {
      ...montantAndSens('D', 'C'),
      write: (value, column) => (column === 'Montant' ? '1,00' : column === 'Sens' ? 'X' : value),
    }),
    line: 2,
    column: 'Sens',
    value: 'X',
  },
  'an empty file': { file: Buffer.alloc(0), line: 1, column: 'file', value: '' },
  'a header alone': { file: fecFile([]), line: 1, column: 'file', value: '' },
  'a binary file': {
    file: Buffer.concat([fecFile(ledger.slice(0, 3)), Buffer.from([0x50, 0x4b, 0x03, 0x04, 0x00, 0x00])]),
    line: 5,
    column: 'file',
    value: '0x00',
  },
}
