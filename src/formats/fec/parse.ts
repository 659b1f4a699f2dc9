/**
 * Reads a FEC (fichier des écritures comptables): bytes in, batches of checked lines out, one chunk in memory
 * at a time.
 *
 * A line with `0,00` in both Debit and Credit is taken: it states an amount, zero, as real ledgers do now and
 * then, and zero changes no balance. Both fields empty state nothing, and are refused like amounts in both.
 * Blank lines and a Ctrl-Z at the end (DOS) are skipped. Text is trimmed: many programs pad columns with
 * blanks.
 */

import { charactersMax, type FecColumn, type FecHeader, parseHeader } from './columns.ts'
import { decodeLines, type FecEncoding } from './encoding.ts'
import { parseAmount, parseCurrency, parseDay, parseSide } from './fields.ts'
import { FecError, FecProblems } from './problem.ts'

/** Days are `YYYY-MM-DD`; texts are trimmed and empty where the file has nothing. */
export interface FecLine {
  /** 1-based place in the file; the header is line 1. */
  number: number
  journalCode: string
  journalName: string
  entryNumber: string
  date: string
  accountNumber: string
  accountName: string
  thirdPartyNumber: string
  thirdPartyName: string
  pieceReference: string
  pieceDate: string | undefined
  description: string
  /** Minor units; at most one of debit and credit is not zero. */
  debit: bigint
  credit: bigint
  letteringCode: string
  letteredOn: string | undefined
  validatedOn: string | undefined
  /** In thousandths of a unit of `currency`: no currency in use has finer coins. */
  amountInCurrency: bigint | undefined
  /** ISO 4217; undefined where the line names none. */
  currency: string | undefined
  settledOn: string | undefined
  paymentMode: string
}

/** A text without a line feed for so long is no FEC. Real lines have a few hundred bytes. */
const lineBytesMax = 64 * 1024

/**
 * @param problems where further checks of the caller add theirs, so that all are reported together; the
 *   caller then ends with `problems.throwIfAny()`. Lines with a problem are left out of the batches.
 * @throws {FecError} a header that cannot be understood, as soon as 20 problems have gathered, or at the end
 */
export async function* parseFec(
  bytes: AsyncIterable<Uint8Array>,
  encoding: FecEncoding,
  problems = new FecProblems(),
): AsyncGenerator<FecLine[]> {
  let reader: LineReader | undefined
  let number = 0
  for await (const texts of splitLines(bytes, encoding)) {
    const batch: FecLine[] = []
    for (const text of texts) {
      number += 1
      if (reader === undefined) {
        reader = new LineReader(parseHeader(text), problems)
        continue
      }
      const line = isBlank(text) ? undefined : reader.read(number, text)
      if (line !== undefined) batch.push(line)
    }
    if (batch.length > 0) yield batch
  }
  if (reader === undefined || !reader.any) problems.add(1, 'file', '', 'no line of a ledger in this file')
  problems.throwIfAny()
}

/**
 * Lines without their line feed; carriage returns before it are trimmed with the last field. Cut before they are
 * decoded: none of the encodings uses the byte of a line feed for anything else.
 */
async function* splitLines(
  bytes: AsyncIterable<Uint8Array>,
  encoding: FecEncoding,
): AsyncGenerator<string[]> {
  let rest: Uint8Array = new Uint8Array()
  let count = 0
  for await (const chunk of bytes) {
    const whole = Buffer.concat([rest, chunk])
    const end = whole.lastIndexOf(10) + 1
    rest = whole.subarray(end)
    const lines = decodeLines(whole.subarray(0, end), encoding).split('\n').slice(0, -1)
    count += lines.length
    if (rest.length > lineBytesMax) {
      const value = decodeLines(Buffer.from(rest.subarray(0, 240)), encoding)
      const message = `no line end in ${lineBytesMax} bytes: this is no FEC`
      throw new FecError([{ line: count + 1, column: 'line', value: value.slice(0, 60), message }])
    }
    yield lines
  }
  yield [decodeLines(Buffer.from(rest), encoding)]
}

/** Nothing but blanks and carriage returns, or the Ctrl-Z with which DOS ended files. */
function isBlank(line: string): boolean {
  const text = line.trim()
  return text === '' || text === '\x1a'
}

class LineReader {
  readonly #header: FecHeader
  readonly #problems: FecProblems
  /**
   * A ledger has a few hundred days and millions of fields with one of them; only days that exist are kept.
   */
  readonly #days = new Map<string, string>()
  /** Of each column that the file has. */
  readonly #bounds: { column: FecColumn; position: number; max: number }[]
  #number = 0
  #fields: string[] = []
  #valid = true
  /** Whether there was any line, right or wrong. */
  any = false

  constructor(header: FecHeader, problems: FecProblems) {
    this.#header = header
    this.#bounds = (Object.entries(header.position) as [FecColumn, number][])
      .filter(([, position]) => position >= 0)
      .map(([column, position]) => ({ column, position, max: charactersMax[column] }))
    this.#problems = problems
  }

  /** Undefined where the line has a problem, which was then added to the problems. */
  read(number: number, text: string): FecLine | undefined {
    this.any = true
    this.#number = number
    this.#valid = true
    this.#fields = text.split(this.#header.separator)
    if (!this.#hasAllFields()) {
      const separators = { '\t': 'tabs', '|': '"|"', ';': '";"' }[this.#header.separator]
      const { fieldCount } = this.#header
      const expected = `as in the header, ${fieldCount} fields separated by ${separators} are expected`
      this.#refuse('line', text.trim(), `${expected}, this line has ${this.#fields.length}`)
      return undefined
    }
    this.#boundFields()
    if (!this.#valid) return undefined
    const amounts = this.#header.position.Montant < 0 ? this.#debitAndCredit() : this.#amountAndSide()
    const line: FecLine = {
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
      ...amounts,
      letteringCode: this.#text('EcritureLet'),
      letteredOn: this.#optionalDay('DateLet'),
      validatedOn: this.#optionalDay('ValidDate'),
      amountInCurrency: this.#text('Montantdevise') === '' ? undefined : this.#amount('Montantdevise', 3),
      currency: this.#currency(),
      settledOn: this.#optionalDay('DateRglt'),
      paymentMode: this.#text('ModeRglt'),
    }
    return this.#valid ? line : undefined
  }

  /** One field more is what a separator at the end of the line leaves. */
  #hasAllFields(): boolean {
    const surplus = this.#fields.length - this.#header.fieldCount
    return surplus === 0 || (surplus === 1 && this.#fields.at(-1)!.trim() === '')
  }

  #boundFields(): void {
    for (const { column, position, max } of this.#bounds) {
      const field = this.#fields[position]!
      const length = field.length > max ? field.trim().length : 0
      if (length > max)
        this.#refuse(column, field.trim(), `at most ${max} characters are expected, this field has ${length}`)
    }
  }

  #refuse(column: FecColumn | 'line', value: string, message: string): void {
    this.#valid = false
    this.#problems.add(this.#number, column, value, message)
  }

  #text(column: FecColumn): string {
    return this.#fields[this.#header.position[column]]?.trim() ?? ''
  }

  #required(column: FecColumn): string {
    const text = this.#text(column)
    if (text === '') this.#refuse(column, '', 'a value is required')
    return text
  }

  #day(column: FecColumn): string | undefined {
    const text = this.#text(column)
    const known = this.#days.get(text)
    if (known !== undefined) return known
    const day = parseDay(text)
    if (day === undefined) this.#refuse(column, text, 'a day of the calendar written YYYYMMDD is expected')
    else this.#days.set(text, day)
    return day
  }

  /** Programs that pad with zeros write 00000000 for no day. */
  #optionalDay(column: FecColumn): string | undefined {
    return /^0*$/.test(this.#text(column)) ? undefined : this.#day(column)
  }

  #amount(column: FecColumn, decimals = 2): bigint {
    const text = this.#text(column)
    const amount = parseAmount(text, decimals)
    if (amount === undefined)
      this.#refuse(
        column,
        text,
        `an amount such as 1234,56 is expected, with at most 15 digits before the comma and ${decimals} behind it`,
      )
    return amount ?? 0n
  }

  #debitAndCredit(): { debit: bigint; credit: bigint } {
    const debitText = this.#text('Debit')
    const creditText = this.#text('Credit')
    if (debitText === '' && creditText === '')
      this.#refuse('Debit', '', 'neither Debit nor Credit has an amount, one of them is expected')
    else {
      const debit = debitText === '' ? 0n : this.#amount('Debit')
      const credit = creditText === '' ? 0n : this.#amount('Credit')
      if (debit === 0n || credit === 0n) return { debit, credit }
      this.#refuse(
        'Debit',
        `${debitText} / ${creditText}`,
        'both Debit and Credit have an amount, one is expected',
      )
    }
    return { debit: 0n, credit: 0n }
  }

  #amountAndSide(): { debit: bigint; credit: bigint } {
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
