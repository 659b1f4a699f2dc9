/** Checks the rows of one table of a ledger: the form of their values, their order, and the sums of movements. */
import { type Buffer, isUtf8 } from 'node:buffer'
import {
  type ColumnType,
  type LedgerTableName,
  ledgerTables,
} from '../../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../changes.ts'
import type { GrandlivreError } from '../errors.ts'
import { lastEntryId } from './entry-ranges.ts'

/**
 * The form in which COPY writes a value of each type. A copy would give back a value in any other form as bytes that
 * differ from the proven bytes. The pattern for texts excludes the characters that COPY escapes.
 */
const text = '[^\\0\\b\\t\\n\\v\\f\\r\\\\]*'
const day = '(?:\\d{4}|[1-9]\\d{4,6})-\\d\\d-\\d\\d'
const forms: Record<ColumnType, string> = {
  bigint: '0|-?[1-9]\\d{0,17}',
  date: `${day}(?: BC)?`,
  timestamptz: `${day} (?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{0,5}[1-9])?\\+00(?: BC)?`,
  boolean: '[tf]',
  'numeric(18,2)': '(?!-0\\.00)-?(?:0|[1-9]\\d{0,15})\\.\\d\\d',
  'numeric(18,6)': '(?!-0\\.0{6})-?(?:0|[1-9]\\d{0,11})\\.\\d{6}',
  text,
  json: text,
}

/**
 * Patterns for the fields of a row. Their groups are the id (for movements the ids of the entry and of the movement) and
 * the amounts.
 */
function formsOf(table: LedgerTableName): string[] {
  return ledgerTables[table].columns.map(({ name, type }, place) => {
    if (place === 0 || name === 'movement_id') return '(0|[1-9]\\d{0,15})'
    const isAmount = name === 'debit' || name === 'credit'
    return isAmount ? `(${forms[type]})` : `(?:\\\\N|${forms[type]})`
  })
}

const rowForms = new Map(
  (Object.keys(ledgerTables) as LedgerTableName[]).map((table) => [
    table,
    new RegExp(`^${formsOf(table).join('\t')}\n$`),
  ]),
)

const lineFeed = 10
/** Every decimal number with at most this many characters is exact as a double. */
export const exactLength = 15

export class TableRows {
  readonly table: LedgerTableName
  rows = 0
  /** The entry of the last row, for movements only; -1 before the first row. */
  lastEntry = -1
  readonly debit = new Sum()
  readonly credit = new Sum()
  readonly #society: string
  readonly #ranges: readonly (readonly [number, number])[]
  readonly #fail: (what: string) => GrandlivreError
  readonly #form: RegExp
  #range = 0
  /** The id of the last row: its first column, or for movements the id of the movement. */
  #lastId = -1

  /** @param ranges that must contain the entries of all movements */
  constructor(
    table: LedgerTableName,
    society: string,
    ranges: readonly EntryRange[],
    fail: (what: string) => GrandlivreError,
  ) {
    this.table = table
    this.#society = society
    this.#ranges = ranges.map(([from, to]) => [Number(from), Number(to)])
    this.#fail = fail
    this.#form = rowForms.get(table)!
  }

  /**
   * Checks lines. One expression matches a whole row: 600,000 movements (181 MB) take 0.25 s. A loop over the bytes
   * took 0.3 s and checked less.
   * @param bytes whole lines
   * @returns the number of lines
   */
  pass(bytes: Buffer): number {
    const before = this.rows
    if (!isUtf8(bytes)) throw this.#wrong('is not UTF-8')
    for (let at = 0; at < bytes.length; this.rows += 1) {
      const end = bytes.indexOf(lineFeed, at) + 1
      // Latin-1 makes one character of each byte, and everything that is checked is ASCII. Each line becomes a text of
      // its own: a text of all lines would be too long for the young part of the heap, and would cause collections of
      // the whole heap that take a fifth of the time of a copy into PostgreSQL.
      const line = bytes.toString('latin1', at, end)
      const [, id, movement, debit, credit] = this.#form.exec(line) ?? this.#escaped(line)
      if (this.table === 'movements') this.#movement(Number(id), Number(movement), debit!, credit!)
      else this.#item(Number(id))
      at = end
    }
    return this.rows - before
  }

  /**
   * Matches a line with escapes, which few rows have. An expression with any number of escapes would overflow the stack
   * at a long text.
   */
  #escaped(line: string): RegExpExecArray {
    const plain = line.replaceAll(/\\[bfnrtv\\]/g, 'e')
    const found = this.#form.exec(plain)
    if (found) return found
    const { columns } = ledgerTables[this.table]
    const fields = plain.slice(0, -1).split('\t')
    if (fields.length !== columns.length)
      throw this.#wrong(`has ${fields.length} columns instead of ${columns.length}`)
    const place = formsOf(this.table).findIndex((form, at) => !new RegExp(`^(?:${form})$`).test(fields[at]!))
    throw this.#wrong(`has as ${columns[place]!.name} what COPY does not write`)
  }

  #item(id: number): void {
    if (this.table === 'folders' && String(id) !== this.#society) throw this.#wrong(`is that of folder ${id}`)
    this.#ascend(id)
  }

  #movement(entry: number, id: number, debit: string, credit: string): void {
    if (entry !== this.lastEntry) {
      if (entry < this.lastEntry) throw this.#wrong(`is of entry ${entry}, after entry ${this.lastEntry}`)
      while (this.#range < this.#ranges.length && entry > this.#ranges[this.#range]![1]) this.#range += 1
      const range = this.#ranges[this.#range]
      if (!range || entry < range[0]) throw this.#wrong(`is of entry ${entry}, which was not announced`)
      this.lastEntry = entry
      this.#lastId = -1
    }
    this.#ascend(id)
    this.debit.add(debit)
    this.credit.add(credit)
  }

  #ascend(id: number): void {
    if (id > Number(lastEntryId)) throw this.#wrong(`has the id ${id}, and ${lastEntryId} is the greatest`)
    if (id <= this.#lastId) throw this.#wrong(`has the id ${id} after ${this.#lastId}`)
    this.#lastId = id
  }

  #wrong(what: string): GrandlivreError {
    return this.#fail(`row ${this.rows + 1} of ${this.table} ${what}`)
  }
}

/**
 * An exact sum of amounts. It adds numbers as long as they are exact: a BigInt for each row takes ten times as long.
 */
class Sum {
  #large = 0n
  #cents = 0

  add(amount: string): void {
    if (amount.length > exactLength) this.#large += BigInt(amount.replace('.', ''))
    else this.#cents += Math.round(Number(amount) * 100)
    if (Math.abs(this.#cents) > 2 ** 52) this.#flush()
  }

  /** The sum as a text with two decimals. */
  text(): string {
    this.#flush()
    const digits = String(this.#large).replace('-', '').padStart(3, '0')
    return `${this.#large < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
  }

  #flush(): void {
    this.#large += BigInt(this.#cents)
    this.#cents = 0
  }
}
