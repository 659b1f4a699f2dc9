/**
 * The first pass over a FEC: collects the facts that loading needs, and refuses invalid files before a row is loaded. It
 * keeps no lines. It keeps accounts and journals, which are few, and the balances of entries and letterings while
 * these are not zero (see OpenBalances).
 */

import { type FecProblems, problemsMax } from '../../../formats/fec/fields.ts'
import type { FecLine } from '../../../formats/fec/parse.ts'
import type { JournalType } from '../../../formats/items/journal.ts'
import { inUnits } from '../../../formats/minor-units.ts'
import type { Period } from '../../../formats/rows.ts'
import { accountKey, copyOf, type FecAccount, fecAccount, nameAccount, rootOfAuxiliary } from './accounts.ts'
import { type DatedLine, EntryGroups, OpenBalances } from './entries.ts'
import { LineDays } from './fiscal-year.ts'
import { isOpening, type JournalUse, journalTypeByName, noUse, paymentCode } from './journals.ts'

interface FecJournal {
  code: string
  /** JournalLib of the journal's first line; may be empty. */
  label: string
  /** The type according to code and label; undefined if they are not clear. */
  type: JournalType | undefined
  use: JournalUse
  /**
   * The number of lines on each account of class 5, by key of FecAccount. The most used account becomes the counterpart
   * of a bank journal.
   */
  treasury: Map<string, number>
}

export class FecSurvey {
  readonly period: Period
  readonly accounts = new Map<string, FecAccount>()
  readonly journals = new Map<string, FecJournal>()
  readonly paymentCodes = new Set<string>()
  readonly groups = new EntryGroups()
  /** The number of lines with an auxiliary that stays with the movement, by the root of the account. */
  readonly auxiliaryLines = new Map<string, number>()
  readonly #problems: FecProblems
  readonly #letterings = new OpenBalances()
  lines = 0
  debit = 0n
  credit = 0n
  #lastLine = 1
  readonly #days = new LineDays()
  #countOutOfYear = 0
  /** The first lines that lie outside the fiscal year. */
  readonly #linesOutOfYear: Pick<FecLine, 'number' | 'date'>[] = []

  constructor(period: Period, problems: FecProblems) {
    this.period = period
    this.#problems = problems
  }

  add(line: FecLine): void {
    this.lines += 1
    this.#lastLine = line.number
    this.debit += line.debit
    this.credit += line.credit
    const key = accountKey(line)
    if (key === undefined) {
      this.#problems.add(line.number, 'CompteNum', line.accountNumber, 'an account number is expected')
      return
    }
    const account = this.accounts.get(key)
    if (account === undefined) this.accounts.set(key, fecAccount(key, line))
    else nameAccount(account, line)
    const root = rootOfAuxiliary(line)
    if (root !== undefined) this.auxiliaryLines.set(root, (this.auxiliaryLines.get(root) ?? 0) + 1)
    this.#addToJournal(line, key)
    this.#days.add(line)
    const dated = this.dated(line)
    if (dated.date < this.period.start || dated.date > this.period.end) {
      this.#countOutOfYear += 1
      if (this.#linesOutOfYear.length < problemsMax)
        this.#linesOutOfYear.push({ number: line.number, date: line.date })
    }
    const payment = paymentCode(line.paymentMode)
    if (payment !== undefined) this.paymentCodes.add(payment)
    if (line.letteringCode !== '')
      this.#letterings.add(`${key}\n${line.letteringCode}`, line.debit - line.credit)
    this.groups.add(dated)
  }

  /** @throws {FecError} with every problem found, or if the ledger does not balance */
  end(): void {
    this.#refuseOutOfYear()
    this.#problems.throwIfAny()
    if (this.debit !== this.credit) {
      const totals = `debit ${inUnits(this.debit)}, credit ${inUnits(this.credit)}`
      const message = `both totals must be equal, but differ by ${inUnits(this.debit - this.credit)}`
      this.#problems.add(this.#lastLine, 'total', totals, message)
      this.#problems.throwIfAny()
    }
    this.groups.end()
  }

  /**
   * The line with its date in the ledger. It keeps its own date, except in an opening journal: there a line dated
   * before the fiscal year moves to the first day of the year. Some programs open a year with every unpaid item under
   * its old date; with that date, the item would appear in exports of another year, beside its original.
   */
  dated(line: FecLine): DatedLine {
    if (line.date >= this.period.start || !isOpening(this.journals.get(line.journalCode)?.type)) return line
    return { ...line, date: this.period.start, originalDate: line.date }
  }

  /** Whether the lines of one account with one lettering code balance. Call it after `end`. */
  isLetteringComplete(account: string, code: string): boolean {
    return !this.#letterings.has(`${account}\n${code}`)
  }

  /**
   * Refuses lines outside the fiscal year. If most lines are outside, the year is wrong rather than the lines, and only
   * that is reported.
   */
  #refuseOutOfYear(): void {
    const isYearWrong = this.#countOutOfYear * 2 > this.lines
    const remark = isYearWrong
      ? `, but ${this.#countOutOfYear} of ${this.lines} lines are dated outside it. ` +
        `The lines are dated ${this.#days.span()}: --start and --end set the fiscal year`
      : ' (--start and --end set another)'
    const message = `a day of the fiscal year ${this.period.start} to ${this.period.end} is expected${remark}`
    for (const { number, date } of this.#linesOutOfYear.slice(0, isYearWrong ? 1 : undefined))
      this.#problems.add(number, 'EcritureDate', date.replaceAll('-', ''), message)
  }

  #addToJournal(line: FecLine, account: string): void {
    let journal = this.journals.get(line.journalCode)
    if (journal === undefined) {
      const [code, label] = [copyOf(line.journalCode), copyOf(line.journalName)]
      const type = journalTypeByName(code, label || code)
      journal = { code, label, type, use: { ...noUse }, treasury: new Map() }
      this.journals.set(code, journal)
    }
    journal.use.lines += 1
    const kind = kindOfAccount(line.accountNumber)
    if (kind !== undefined) journal.use[kind] += 1
    if (kind === 'bank' || kind === 'cash')
      journal.treasury.set(account, (journal.treasury.get(account) ?? 0) + 1)
  }
}

function kindOfAccount(number: string): Exclude<keyof JournalUse, 'lines'> | undefined {
  if (/^51[1-7]/.test(number)) return 'bank'
  if (number.startsWith('53')) return 'cash'
  if (number.startsWith('40')) return 'supplier'
  if (number.startsWith('41')) return 'customer'
  if (number.startsWith('6')) return 'cost'
  if (number.startsWith('7')) return 'income'
  return undefined
}
