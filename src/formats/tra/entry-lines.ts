/**
 * Renders entry lines from rows of COPY, bytes to bytes (docs/spec/tra.md#entry-lines): one line per movement, followed
 * by one per analytic share.
 *
 * This is the hot loop of a TRA export. A line has 1,407 columns; nearly all are blank, or equal throughout an entry.
 * They are laid out once per entry and copied into each of its lines (30 ns); then the columns of the movement are
 * written at their offsets. Accounts, journals, payments and sections come rendered, by id. Only two things allocate
 * per movement: amounts in a foreign currency, and texts that are not plain French. The plain renderer in
 * test/support/plain/plain-tra.ts does the same with objects and strings; tests compare the two byte for byte.
 *
 * 600,000 movements with 443,000 shares make 1.39 GB and take 1.7 s of processor in the thread, 0.7 s of it for
 * SHA-256.
 */

import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { offsetsOf } from '../rows.ts'
import { cited, type Output, type Rows, Shares, sharesMax } from '../text-bytes.ts'
import {
  noOpening,
  type PieceRule,
  type PieceType,
  type TraDictionary,
  typeByLine,
  typeOtherwise,
} from './dictionary.ts'
import { foreignAmounts } from './foreign-amounts.ts'
import { fieldOf, LineWriter, layouts, noDay, TraOverflow } from './layouts.ts'
import { inCase, writeAmount, writeDay, writePlain, writeRight, writeText } from './line-bytes.ts'
import { axesMax } from './records.ts'

const { blank, capitalA, capitalC, capitalD, capitalN, capitalS, capitalX, letterN, letterP, minus, zero } =
  ascii

export const traEntryColumns = [
  'id',
  'exercice_id',
  'journal_id',
  'date',
  'due_date',
  'foreign_currency',
  'foreign_rate',
  'created_on',
  'validated_at',
] as const
export const traMovementColumns = [
  'entry_id',
  'account_id',
  'debit',
  'credit',
  'description',
  'due_date',
  'free_number',
  'invoice_number',
  'payment_id',
  'shares',
  'lettering_state',
  'lettering_code',
] as const

const entry = offsetsOf(traEntryColumns)
const movement = offsetsOf(traMovementColumns)

/** The offset of a field in a line, from 0. */
const offset = (name: string) => fieldOf(layouts.ENTRY, name).at - 1
const journal = offset('JOURNAL')
const date = offset('DATECOMPTABLE')
const pieceTypeAt = offset('TYPE PIECE')
const account = offset('GENERAL')
const accountType = offset('TYPE CPTE')
const section = offset('AUXILIAIRE OU SECTION')
const invoiceNumber = offset('REFINTERNE')
const description = offset('LIBELLE')
const payment = offset('MODEPAIE')
const dueDate = offset('ECHEANCE')
const side = offset('SENS')
const firstAmount = fieldOf(layouts.ENTRY, 'MONTANT1')
const entryType = offset('TYPE ECRITURE')
const pieceNumber = offset('NUMEROPIECE')
const currency = offset('DEVISE')
const rate = offset('TAUXDEV')
const amountCode = offset('CODEMONTANT')
const secondAmount = fieldOf(layouts.ENTRY, 'MONTANT2')
const axis = offset('AXE')
const entryId = offset('REFEXTERNE')
const createdOn = offset('DATECREATION')
const opening = offset('ECRANOUVEAU')
const freeNumber = offset('REFLIBRE')
const lettering = offset('LETTRAGE')
const letteringState = offset('ETATLETTRAGE')
const validated = offset('VALIDE')
const validatedOn = offset('VALIDDATE')

const textColumns = 35
const rateField = fieldOf(layouts.ENTRY, 'TAUXDEV')
const pieceNumberColumns = fieldOf(layouts.ENTRY, 'NUMEROPIECE').length
/** Columns up to 222 have the same layout on lines of movements and on lines of shares. */
const commonColumns = offset('REFEXTERNE')

/** The last column of either kind of line is filled or mandatory, so all lines of a kind have the same length. */
const blankLine = new LineWriter(layouts.ENTRY)
  .text('DEVISE', 'EUR')
  .number('TAUXDEV', '1')
  .text('CODEMONTANT', 'E--')
  .line()
const blankShare = new LineWriter(layouts.ANALYTIC).line()

const rateDecimals = 6

/**
 * The most bytes of movements that are held: about 150,000 movements. In a larger entry, these movements decide the
 * type.
 */
const heldBytesMax = 16 * 1024 * 1024

/** The rows of a batch from the present one on. */
interface BatchOfRows extends Rows {
  readonly stride: number
  readonly count: number
  /** Reads further rows, and keeps the present row and all after it. Returns false if there are no more. */
  extend(): Promise<boolean>
}

export class EntryLines {
  readonly entryColumns = traEntryColumns
  readonly movementColumns = traMovementColumns
  readonly #dictionary: TraDictionary
  readonly #line = Uint8Array.from(blankLine)
  readonly #share = Uint8Array.from(blankShare)
  readonly #shares = new Shares()
  #pieceNumber = 0
  /** Undefined if the currency of the entry is the euro. */
  #foreign: ReturnType<typeof foreignAmounts> | undefined

  constructor(dictionary: TraDictionary) {
    this.#dictionary = dictionary
  }

  /** The most bytes that the movement of this row needs. */
  bytesMax(rows: Rows): number {
    return blankLine.length + sharesMax(rows, movement.shares) * blankShare.length
  }

  /**
   * Sets the entry of the movements that follow. The type of document is on the first line, but a much later movement
   * may decide it. So movements are read ahead and held until the type is known.
   * @param movements positioned at the first movement of the entry
   */
  setEntry(entries: Rows, movements: BatchOfRows): Promise<void> | undefined {
    const { rule } = cited(this.#dictionary.journals, entries.id(entry.journal_id), 'journal')
    const type = rule === 'other' ? 'OD' : this.#typeIn(movements, rule, false)
    if (type === undefined) return this.#readOn(entries, movements, rule)
    this.#layOut(entries, type)
    return undefined
  }

  /** Reads movements until they decide the type of document. */
  async #readOn(entries: Rows, movements: BatchOfRows, rule: PieceRule): Promise<void> {
    for (let type: PieceType | undefined; type === undefined; ) {
      const isAll = movements.bytes.length > heldBytesMax || !(await movements.extend())
      type = this.#typeIn(movements, rule, isAll)
      if (type !== undefined) this.#layOut(entries, type)
    }
  }

  /**
   * The type of document of the entry that begins at the present row. Undefined if the rows of the batch do not decide
   * it and more rows may follow.
   */
  #typeIn(movements: BatchOfRows, rule: PieceRule, isAll: boolean): PieceType | undefined {
    const first = movements.base
    const entryId = movements.id(movement.entry_id)
    let hasCustomer = false
    let isWhole = isAll
    let type: PieceType | undefined
    for (
      ;
      type === undefined && movements.base < movements.count * movements.stride;
      movements.base += movements.stride
    ) {
      if (movements.id(movement.entry_id) !== entryId) {
        isWhole = true
        break
      }
      const party = this.#dictionary.accounts.get(movements.id(movement.account_id))?.party
      type = typeByLine(rule, party, isDebitLine(movements))
      hasCustomer ||= party === 'customer'
    }
    movements.base = first
    return type ?? (isWhole ? typeOtherwise(rule, hasCustomer) : undefined)
  }

  /** Lays out the columns that the lines of the entry share. */
  #layOut(rows: Rows, pieceType: PieceType): void {
    const line = this.#line
    const booked = cited(this.#dictionary.journals, rows.id(entry.journal_id), 'journal')
    line.set(booked.code, journal)
    writeDay(line, date, rows, entry.date)
    line[pieceTypeAt] = pieceType.charCodeAt(0)
    line[pieceTypeAt + 1] = pieceType.charCodeAt(1)
    const isDraft = rows.isNull(entry.validated_at)
    line[entryType] = isDraft ? capitalS : capitalN
    this.#numberPiece()
    this.#setCurrency(rows)
    line.fill(blank, entryId, entryId + textColumns)
    writePlain(line, entryId, rows, entry.id)
    writeDay(line, createdOn, rows, entry.created_on)
    const openingCode = booked.isOpening
      ? cited(this.#dictionary.openings, rows.id(entry.exercice_id), 'exercice')
      : noOpening
    line.set(openingCode, opening)
    line[validated] = isDraft ? minus : capitalX
    writeDay(line, validatedOn, rows, entry.validated_at)

    // A share repeats the columns of its entry, but not those of its movement. Only the movement has a due date.
    const share = this.#share
    line.set(noDayBytes, dueDate)
    share.set(line.subarray(0, commonColumns))
    share.set(line.subarray(createdOn, createdOn + noDay.length), createdOn)
    share.set(openingCode, opening)
    writeDay(line, dueDate, rows, entry.due_date)
  }

  #numberPiece(): void {
    const digits = String(++this.#pieceNumber)
    if (digits.length > pieceNumberColumns)
      throw new TraOverflow(layouts.ENTRY, fieldOf(layouts.ENTRY, 'NUMEROPIECE'), digits)
    writeRight(this.#line, pieceNumber, pieceNumberColumns, digits)
  }

  /** Sets the columns of the currency. They are kept from entry to entry, because most ledgers have only the euro. */
  #setCurrency(rows: Rows): void {
    if (rows.isNull(entry.foreign_currency)) {
      if (!this.#foreign) return
      this.#foreign = undefined
      this.#line.set(euro, currency)
      writeRight(this.#line, rate, rateField.length, '1')
      this.#line.set(inEuro, amountCode)
      return
    }
    const text = rows.text(entry.foreign_rate)
    const [whole, decimals = ''] = text.split('.')
    this.#foreign = foreignAmounts(BigInt(whole! + decimals.padEnd(rateDecimals, '0')))
    writePlain(this.#line, currency, rows, entry.foreign_currency)
    const written = text.replace('.', ',')
    if (written.length > rateField.length) throw new TraOverflow(layouts.ENTRY, rateField, written)
    writeRight(this.#line, rate, rateField.length, written)
    this.#line.set(inBoth, amountCode)
  }

  write({ bytes: out }: Output, at: number, rows: Rows): number {
    out.set(this.#line, at)
    const accountId = rows.id(movement.account_id)
    const booked = cited(this.#dictionary.accounts, accountId, 'account')
    out.set(booked.columns, at + account)
    writeText(out, at + invoiceNumber, rows, movement.invoice_number)
    writeText(out, at + description, rows, movement.description)
    if (!rows.isNull(movement.payment_id))
      out.set(cited(this.#dictionary.payments, rows.id(movement.payment_id), 'payment'), at + payment)
    if (!rows.isNull(movement.due_date)) writeDay(out, at + dueDate, rows, movement.due_date)
    const isDebit = isDebitLine(rows)
    out[at + side] = isDebit ? capitalD : capitalC
    const amount = isDebit ? movement.debit : movement.credit
    this.#writeAmounts(out, at, rows.bytes, rows.start(amount), rows.end(amount), isDebit, 0)
    if (!rows.isNull(movement.free_number)) writeText(out, at + freeNumber, rows, movement.free_number)
    this.#writeLettering(out, at, rows, accountId, booked.isThirdParty)
    at += this.#line.length
    return rows.isNull(movement.shares) ? at : this.#writeShares(out, at, rows, booked.columns, isDebit)
  }

  /** Writes one line per share, except for axes beyond the fifth, for which the file has no columns. */
  #writeShares(
    out: Uint8Array,
    at: number,
    rows: Rows,
    accountColumns: Uint8Array,
    isDebit: boolean,
  ): number {
    for (const share = this.#shares.begin(rows, movement.shares); share.read(); ) {
      const divided = cited(this.#dictionary.sections, share.section, 'section')
      if (divided.axis > axesMax) continue
      out.set(this.#share, at)
      for (let column = 0; column < accountType - account; column++)
        out[at + account + column] = accountColumns[column]!
      out[at + accountType] = capitalA
      out.set(divided.code, at + section)
      out[at + side] = isDebit ? capitalD : capitalC
      this.#writeAmounts(out, at, rows.bytes, share.amount, share.rate - 1, isDebit, divided.axis)
      out[at + axis] = capitalA
      out[at + axis + 1] = zero + divided.axis
      at += this.#share.length
    }
    return at
  }

  /**
   * Writes MONTANT1 in the currency of the entry and, if that is not the euro, MONTANT2 in euro.
   * @param rank the rank of the axis of a share; 0 for the movement itself
   */
  #writeAmounts(
    out: Uint8Array,
    at: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    isDebit: boolean,
    rank: number,
  ): void {
    if (!this.#foreign) {
      writeAmount(out, at, firstAmount, bytes, start, end)
      return
    }
    const inEuros = BigInt(Buffer.from(bytes.subarray(start, end)).toString('latin1'))
    const inCurrency =
      rank === 0 ? this.#foreign.movement(inEuros, isDebit) : this.#foreign.share(inEuros, rank)
    const digits = latin1(String(inCurrency))
    writeAmount(out, at, firstAmount, digits, 0, digits.length)
    writeAmount(out, at, secondAmount, bytes, start, end)
  }

  #writeLettering(out: Uint8Array, at: number, rows: Rows, accountId: number, isThirdParty: boolean): void {
    const { bytes } = rows
    const state = bytes[rows.start(movement.lettering_state)]
    if (state === letterN) {
      out.set(isThirdParty ? toLetter : cannotLetter, at + letteringState)
      return
    }
    const isPartial = state === letterP
    out.set(isPartial ? partlyLettered : lettered, at + letteringState)
    const written = this.#dictionary.letterings.get(accountId)
    if (!written) {
      const start = rows.start(movement.lettering_code)
      const end = rows.end(movement.lettering_code)
      for (let i = start; i < end; i++) out[at + lettering + i - start] = inCase(bytes[i]!, isPartial)
      return
    }
    const code = written.get(rows.text(movement.lettering_code))
    if (code === undefined) assert.fail('a movement has a lettering code that its account does not have')
    out.set(latin1(isPartial ? code.toLowerCase() : code), at + lettering)
  }
}

const noDayBytes = latin1(noDay)
const euro = latin1('EUR')
const inEuro = latin1('E--')
const inBoth = latin1('DE-')
const toLetter = latin1('AL')
const cannotLetter = latin1('RI')
const partlyLettered = latin1('PL')
const lettered = latin1('TL')

function latin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

/** Whether SENS is `D`: the debit is not zero. */
function isDebitLine(rows: Rows): boolean {
  const start = rows.start(movement.debit)
  return rows.bytes[start] !== zero || rows.end(movement.debit) - start > 1
}
