/**
 * Reads a FEC (fichier des écritures comptables): bytes in, batches of checked lines out, one chunk in memory at a
 * time.
 *
 * A line with `0,00` in both Debit and Credit is accepted: real ledgers have such lines now and then, and zero changes
 * no balance. A line with two empty amounts or with two amounts is refused. Blank lines and a Ctrl-Z at the end (DOS)
 * are skipped. Text is trimmed, because many programs pad columns with blanks.
 */

import {
  charactersMax,
  columnsBeyondStandard,
  type FecColumn,
  type FecHeader,
  furtherCharactersMax,
  parseHeader,
} from './columns.ts'
import {
  type Block,
  decodeLines,
  type FecEncoding,
  lineBytesMax,
  lineFeedsIn,
  wholeLines,
} from './encoding.ts'
import {
  DayColumn,
  FecError,
  FecProblems,
  isNoDay,
  parseAmount,
  parseCurrency,
  parseSide,
  plainAmount,
  quotedFields,
  standardAmount,
} from './fields.ts'

/** Days are `YYYY-MM-DD`. Texts are trimmed; a text that the file lacks is empty. */
export type FecLine = NonNullable<ReturnType<LineReader['read']>>

const dayColumns = ['EcritureDate', 'PieceDate', 'DateLet', 'ValidDate', 'DateRglt'] as const
type DayColumnName = (typeof dayColumns)[number]

/**
 * What a pass over a file finds in addition to its lines. The names of columns are known before the first line, all
 * other facts after the last.
 */
export class FecFindings {
  furtherColumns: readonly string[] = []
  /** Columns of a cash basis (DateRglt and so on) and further ones, in the order of the file. */
  columnsBeyondStandard: readonly string[] = []
  renamedColumns: FecHeader['renamed'] = []
  /** For each column of days, its counts of days that were read in another form. */
  readonly dayColumns: ReadonlyMap<FecColumn, DayColumn> = new Map(
    dayColumns.map((column) => [column, new DayColumn()]),
  )
  /** Lines whose fields are all in quotes. */
  quotedLines = 0
  /** Counts of amounts such as `1 500,00`, and of amounts such as `1,00-`. */
  groupedAmounts = 0
  trailingMinuses = 0
}

/**
 * @param findings receives what the file contains in addition to its lines
 * @param problems may be shared with checks of the caller, so that all problems are reported together; the caller then
 *   ends with `problems.throwIfAny()`. Batches leave out lines with a problem.
 * @throws {FecError} for a malformed header; as soon as there are 20 problems; or at the end, then also with texts that
 *   are not a day and days in another form than most of their column
 */
export async function* parseFec(
  bytes: AsyncIterable<Uint8Array>,
  encoding: FecEncoding,
  problems = new FecProblems(),
  findings = new FecFindings(),
): AsyncGenerator<FecLine[]> {
  let reader: LineReader | undefined
  // Lines are cut before they are decoded, because no encoding uses the byte of a line feed for anything else.
  for await (const block of wholeLines(bytes)) {
    checkLineLengths(block, encoding)
    const batch: FecLine[] = []
    let number = block.firstLine - 1
    for (const text of decodeLines(block.lines, encoding).split('\n')) {
      number += 1
      if (reader === undefined) {
        const header = parseHeader(text)
        reader = new LineReader(header, problems, findings)
        findings.furtherColumns = header.further.map(({ name }) => name)
        findings.renamedColumns = header.renamed
        findings.columnsBeyondStandard = columnsBeyondStandard(header)
        continue
      }
      const line = isBlank(text) ? undefined : reader.read(number, text)
      if (line !== undefined) batch.push(line)
    }
    if (batch.length > 0) yield batch
  }
  if (reader === undefined || !reader.any) problems.add(1, 'file', '', 'the file has no line of a ledger')
  // The column with the fewest problems comes first: a column with many problems would fill the report.
  const ofDays = [...findings.dayColumns].map(([column, days]) => ({ column, problems: days.problems() }))
  for (const days of ofDays.toSorted((one, other) => one.problems.length - other.problems.length))
    for (const { line, value, message } of days.problems) problems.add(line, days.column, value, message)
  problems.throwIfAny()
}

/** @throws {FecError} if a line is too long */
function checkLineLengths({ lines, firstLine }: Block, encoding: FecEncoding): void {
  for (let start = 0, line = firstLine; lines.length - start > lineBytesMax; ) {
    const lineEnd = lines.lastIndexOf(10, start + lineBytesMax)
    if (lineEnd < start) {
      const value = decodeLines(lines.subarray(start, start + 240), encoding).slice(0, 60)
      const message = `no line end in ${lineBytesMax} bytes: this is not a FEC`
      throw new FecError([{ line, column: 'line', value, message }])
    }
    line += lineFeedsIn(lines.subarray(start, lineEnd + 1))
    start = lineEnd + 1
  }
}

/** Whether a line has only blanks and carriage returns, or only the Ctrl-Z that ends DOS files. */
function isBlank(line: string): boolean {
  const text = line.trim()
  return text === '' || text === '\x1a'
}

const noFurther: readonly string[] = []

class LineReader {
  readonly #header: FecHeader
  readonly #problems: FecProblems
  readonly #findings: FecFindings
  /** The most characters allowed in each column that the file has. */
  readonly #bounds: { column: string; position: number; max: number }[]
  #number = 0
  #fields: string[] = []
  #valid = true
  /** Whether the file has any line besides its header, valid or not. */
  any = false

  constructor(header: FecHeader, problems: FecProblems, findings: FecFindings) {
    this.#header = header
    this.#findings = findings
    this.#bounds = [
      ...(Object.entries(header.position) as [FecColumn, number][])
        .filter(([, position]) => position >= 0)
        .map(([column, position]) => ({ column, position, max: charactersMax(column) })),
      ...header.further.map(({ name, position }) => ({ column: name, position, max: furtherCharactersMax })),
    ]
    this.#problems = problems
  }

  /** Returns undefined if the line has a problem, which is added to `problems`. */
  read(number: number, text: string) {
    this.any = true
    this.#number = number
    this.#valid = true
    const { separator, isQuoted } = this.#header
    const quoted = quotedFields(text, separator)
    if (quoted !== undefined) this.#findings.quotedLines += 1
    else if (isQuoted) {
      this.#refuse('line', text.trim(), 'all fields are expected in quotes, as in the header')
      return undefined
    }
    this.#fields = quoted ?? text.split(separator)
    if (!this.#hasAllFields()) {
      const separators = { '\t': 'tabs', '|': '"|"', ';': '";"' }[separator]
      const { fieldCount } = this.#header
      const expected = `as in the header, ${fieldCount} fields separated by ${separators} are expected`
      this.#refuse('line', text.trim(), `${expected}, this line has ${this.#fields.length}`)
      return undefined
    }
    this.#boundFields()
    if (!this.#valid) return undefined
    const inCurrency = this.#text('Montantdevise')
    const amounts = this.#header.position.Montant < 0 ? this.#debitAndCredit() : this.#amountAndSide()
    const line = {
      /** 1-based; the header is line 1. */
      number,
      journalCode: this.#required('JournalCode'),
      journalName: this.#text('JournalLib'),
      entryNumber: this.#text('EcritureNum'),
      date: this.#required('EcritureDate') && (this.#day('EcritureDate') ?? ''),
      accountNumber: this.#required('CompteNum'),
      accountName: this.#text('CompteLib'),
      thirdPartyNumber: this.#text('CompAuxNum'),
      thirdPartyName: this.#text('CompAuxLib'),
      pieceReference: this.#text('PieceRef'),
      pieceDate: this.#optionalDay('PieceDate'),
      description: this.#text('EcritureLib'),
      /** Minor units; at most one of debit and credit is not zero. */
      ...amounts,
      letteringCode: this.#text('EcritureLet'),
      letteredOn: this.#optionalDay('DateLet'),
      validatedOn: this.#optionalDay('ValidDate'),
      /** In thousandths of a unit of `currency`: no currency in use has finer coins. */
      amountInCurrency: inCurrency === '' ? undefined : this.#amount('Montantdevise', 3),
      /** Montantdevise with its digits as the standard writes them (`-100,5`), or empty. */
      amountInCurrencyAsFiled: '',
      /** ISO 4217; undefined if the line names none. */
      currency: this.#currency(),
      currencyAsFiled: this.#text('Idevise'),
      settledOn: this.#optionalDay('DateRglt'),
      paymentMode: this.#text('ModeRglt'),
      operationNature: this.#text('NatOp'),
      clientId: this.#text('IdClient'),
      /** The values of the further columns, in the order of `FecFindings.furtherColumns`. */
      further: this.#further(),
    }
    if (!this.#valid) return undefined
    if (inCurrency !== '') line.amountInCurrencyAsFiled = standardAmount(plainAmount(inCurrency))
    return line
  }

  /** A trailing separator adds a blank field. */
  #hasAllFields(): boolean {
    const surplus = this.#fields.length - this.#header.fieldCount
    return surplus === 0 || (surplus === 1 && this.#fields.at(-1)!.trim() === '')
  }

  #boundFields(): void {
    for (const { column, position, max } of this.#bounds) {
      const field = this.#fields[position]!
      // Compares characters, as some are two units of a string.
      const length = field.length > max ? [...field.trim()].length : 0
      if (length > max)
        this.#refuse(column, field.trim(), `at most ${max} characters are expected, this field has ${length}`)
    }
  }

  #refuse(column: string, value: string, message: string): void {
    this.#valid = false
    this.#problems.add(this.#number, column, value, message)
  }

  #text(column: FecColumn): string {
    const position = this.#header.position[column]
    return position < 0 ? '' : this.#fields[position]!.trim()
  }

  #further(): readonly string[] {
    const { further } = this.#header
    return further.length === 0 ? noFurther : further.map(({ position }) => this.#fields[position]!.trim())
  }

  #required(column: FecColumn): string {
    const text = this.#text(column)
    if (text === '') this.#refuse(column, '', 'a value is required')
    return text
  }

  #day(column: DayColumnName): string | undefined {
    const day = this.#findings.dayColumns.get(column)!.read(this.#text(column), this.#number)
    if (day === undefined) this.#valid = false
    return day
  }

  #optionalDay(column: DayColumnName): string | undefined {
    const text = this.#text(column)
    return text === '' || isNoDay(text) ? undefined : this.#day(column)
  }

  #amount(column: FecColumn, decimals = 2): bigint {
    const text = this.#text(column)
    const amount = parseAmount(text, decimals) ?? this.#amountInOtherForm(text, decimals)
    if (amount !== undefined) return amount
    const digits = `at most 15 digits before the comma and ${decimals} after it`
    this.#refuse(column, text, `an amount such as 1234,56 or 1 234,56 is expected, with ${digits}`)
    return 0n
  }

  #amountInOtherForm(text: string, decimals: number): bigint | undefined {
    const amount = parseAmount(plainAmount(text), decimals)
    if (amount === undefined) return undefined
    if (text.endsWith('-')) this.#findings.trailingMinuses += 1
    if (/\s/.test(text)) this.#findings.groupedAmounts += 1
    return amount
  }

  #debitAndCredit() {
    const [debitText, creditText] = [this.#text('Debit'), this.#text('Credit')]
    const debit = debitText === '' ? 0n : this.#amount('Debit')
    const credit = creditText === '' ? 0n : this.#amount('Credit')
    if (debitText === '' && creditText === '')
      this.#refuse('Debit', '', 'neither Debit nor Credit has an amount, one of them is expected')
    if (debit !== 0n && credit !== 0n) {
      const both = `${debitText} / ${creditText}`
      this.#refuse('Debit', both, 'both Debit and Credit have an amount, one is expected')
    }
    return { debit, credit }
  }

  #amountAndSide() {
    const text = this.#text('Montant')
    if (text === '') this.#refuse('Montant', '', 'an amount is expected')
    const amount = text === '' ? 0n : this.#amount('Montant')
    const side = parseSide(this.#text('Sens'))
    if (side === undefined)
      this.#refuse('Sens', this.#text('Sens'), 'D or C is expected, or +1 (debit) or -1 (credit)')
    return side === 'credit' ? { debit: 0n, credit: amount } : { debit: amount, credit: 0n }
  }

  #currency(): string | undefined {
    const text = this.#text('Idevise')
    if (text === '') return undefined
    const currency = parseCurrency(text)
    if (currency === undefined)
      this.#refuse('Idevise', text, 'a currency of three letters such as USD is expected')
    return currency
  }
}
