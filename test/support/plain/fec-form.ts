/**
 * Checks the form of a FEC by article A47 A-1 of the Livre des procédures fiscales, line by line. It shares no code with
 * src: names, types and rules are transcribed from the article.
 */
import { isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'

type Kind = 'text' | 'day' | 'amount'
/** Name, kind, and whether it must have a value. */
const article: [string, Kind, boolean][] = [
  ['JournalCode', 'text', true],
  ['JournalLib', 'text', true],
  ['EcritureNum', 'text', true],
  ['EcritureDate', 'day', true],
  ['CompteNum', 'text', true],
  ['CompteLib', 'text', true],
  ['CompAuxNum', 'text', false],
  ['CompAuxLib', 'text', false],
  ['PieceRef', 'text', true],
  ['PieceDate', 'day', true],
  ['EcritureLib', 'text', true],
  ['Debit', 'amount', true],
  ['Credit', 'amount', true],
  ['EcritureLet', 'text', false],
  ['DateLet', 'day', false],
  ['ValidDate', 'day', true],
  ['Montantdevise', 'amount', false],
  ['Idevise', 'text', false],
]

export interface FecForm {
  /** What the article does not allow, each with its line. */
  findings: string[]
  /** Mandatory fields without a value, by column: programs leave them blank where their ledger has nothing. */
  blanks: Record<string, number>
  columns: string[]
  /** Fields by column. */
  lines: Record<string, string>[]
}

export function checkFecForm(
  name: string,
  file: Buffer,
  encoding: 'iso-8859-15' | 'utf-8' = 'iso-8859-15',
): FecForm {
  const findings: string[] = []
  if (!/^\d{9}FEC\d{8}\.txt$/.test(name)) findings.push(`name ${name}`)
  if (encoding === 'utf-8' && !isUtf8(file)) findings.push('not UTF-8')
  const text = encoding === 'utf-8' ? file.toString() : iconv.decode(file, 'iso-8859-15')
  const rows = text.split('\r\n')
  if (rows.pop() !== '') findings.push('the last line has no CR LF')
  for (const [at, row] of rows.entries())
    if (/(?!\t)\p{Cc}|[\u2028\u2029]/u.test(row)) findings.push(`line ${at + 1}: control character`)
  const columns = rows[0]!.split('\t')
  if (columns.slice(0, article.length).join() !== article.map(([column]) => column).join())
    findings.push(`line 1: columns ${columns}`)
  if (new Set(columns).size !== columns.length) findings.push('line 1: a column twice')
  const blanks: Record<string, number> = {}
  const lines = rows.slice(1).map((row, at) => {
    const fields = row.split('\t')
    if (fields.length !== columns.length) findings.push(`line ${at + 2}: ${fields.length} fields`)
    for (const [column, finding] of fieldFindings(fields, blanks))
      findings.push(`line ${at + 2}: ${column} ${finding}`)
    return Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? '']))
  })
  const days = lines.map((line) => line['EcritureDate']!)
  const closing = name.slice(12, 20)
  if (days.some((day) => day > closing)) findings.push(`an entry after ${closing}`)
  findings.push(...entryFindings(lines))
  return { findings, blanks, columns, lines }
}

function* fieldFindings(fields: string[], blanks: Record<string, number>): Generator<[string, string]> {
  for (const [index, [column, kind, isMandatory]] of article.entries()) {
    const field = fields[index] ?? ''
    if (field === '') {
      if (isMandatory) blanks[column] = (blanks[column] ?? 0) + 1
      continue
    }
    if (field !== field.trim()) yield [column, `"${field}" begins or ends with a blank`]
    if (kind === 'day' && !isDay(field)) yield [column, `"${field}" is not a day`]
    if (kind === 'amount' && !/^-?(0|[1-9]\d*)(,\d+)?$/.test(field))
      yield [column, `"${field}" is not an amount`]
  }
  const [debit, credit] = [fields[11], fields[12]]
  for (const amount of [debit, credit])
    if (!/,\d\d$/.test(amount ?? '')) yield ['Debit or Credit', `"${amount}" has not two decimals`]
  if (debit !== '0,00' && credit !== '0,00') yield ['Debit and Credit', `${debit} and ${credit}`]
  if ((fields[16] === '') !== (fields[17] === '')) yield ['Montantdevise', 'and Idevise go together']
}

function isDay(text: string): boolean {
  const [, year, month, day] = /^(\d{4})(\d\d)(\d\d)$/.exec(text) ?? []
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
}

/** Anything else has a finding of its own. */
const cents = (amount: string) => (/^-?\d+,\d\d$/.test(amount) ? BigInt(amount.replace(',', '')) : 0n)

/** Entries balance and each has one day; the numbers of a journal are 1, 2, 3 and so on; the file balances. */
function entryFindings(lines: Record<string, string>[]): string[] {
  const findings: string[] = []
  const entries = Map.groupBy(lines, (line) => `${line['JournalCode']} ${line['EcritureNum']}`)
  let sum = 0n
  for (const [name, ofEntry] of entries) {
    const balance = ofEntry.reduce((rest, line) => rest + cents(line['Debit']!) - cents(line['Credit']!), 0n)
    if (balance !== 0n) findings.push(`entry ${name} does not balance: ${balance}`)
    for (const column of ['EcritureDate', 'ValidDate', 'JournalLib'])
      if (new Set(ofEntry.map((line) => line[column])).size > 1)
        findings.push(`entry ${name}: several ${column}`)
    sum += balance
  }
  if (sum !== 0n) findings.push(`the file does not balance: ${sum}`)
  const journals = Map.groupBy(lines, (line) => line['JournalCode'])
  for (const [code, ofJournal] of journals) {
    const numbers = new Set(ofJournal.map((line) => line['EcritureNum']!))
    for (let number = 1; number <= numbers.size; number++)
      if (!numbers.has(String(number))) findings.push(`journal ${code}: no entry ${number}`)
  }
  return findings
}
