/**
 * Renders entry lines from rows of COPY, bytes to bytes (docs/spec/tra.md#entry-lines): one line per movement, followed
 * by one per analytic share.
 *
 * This is the hot loop of a TRA export. A line has 1,407 columns, nearly all blank or equal throughout an entry. They
 * are laid out once per entry and copied into each of its lines (30 ns); then the columns of the movement are written
 * at their offsets. Accounts, journals, payments and sections come rendered, by id. Only amounts in a foreign currency,
 * and texts that are not plain French, allocate per movement. The plain renderer in test/support/plain/plain-tra.ts
 * does the same with objects and strings; tests compare the two byte for byte.
 *
 * 600,000 movements with 443,000 shares are 1.39 GB and take 1.7 s of processor in the thread, 0.7 s of it for SHA-256.
 */

import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { offsetsOf, type Rows } from '../columns.ts'
import { cited, endOfNumber, idOf, isNullField, readId, textOf, writePlainField } from '../text-bytes.ts'
import { noOpening, type TraDictionary } from './dictionary.ts'
import { axesMax, establishmentCode } from './folder-records.ts'
import { ForeignAmounts } from './foreign-amounts.ts'
import { LineWriter, noDay, TraOverflow } from './layouts/fixed-width.ts'
import { fieldOf, layouts } from './layouts/layouts.ts'
import { inCase, writeAmount, writeDay, writeRight, writeText } from './line-bytes.ts'
import type { PieceType } from './piece-type.ts'

const { blank, capitalA, capitalC, capitalD, capitalN, capitalS, capitalX, letterN, letterP, minus, zero } =
  ascii

/** The columns of an entry row. */
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
/** The columns of a movement row. */
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

export const traEntryOffsets = offsetsOf(traEntryColumns)
export const traMovementOffsets = offsetsOf(traMovementColumns)
const ofEntry = traEntryOffsets
const of = traMovementOffsets

/** Offset of a field in a line, from 0. */
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
/** Columns 1 to 222 have the same layout on lines of movements and of shares. */
const commonColumns = offset('REFEXTERNE')

/** The last column of both kinds is filled or mandatory, so all lines of a kind have the same length. */
const blankLine = new LineWriter(layouts.ENTRY)
  .text('ETABLISSEMENT', establishmentCode)
  .text('TVAENCAISSEMENT', '-')
  .text('DEVISE', 'EUR')
  .number('TAUXDEV', '1')
  .text('CODEMONTANT', 'E--')
  .line()
const blankShare = new LineWriter(layouts.ANALYTIC).text('ETABLISSEMENT', establishmentCode).line()

const rateDecimals = 6
/** A share takes at least six characters of its row (`1,1,1,`). */
const shareCharactersMin = 6

export class EntryLines {
  readonly #dictionary: TraDictionary
  readonly #line = Uint8Array.from(blankLine)
  readonly #share = Uint8Array.from(blankShare)
  #pieceNumber = 0
  /** Undefined if the entry is in euro. */
  #foreign: ForeignAmounts | undefined

  constructor(dictionary: TraDictionary) {
    this.#dictionary = dictionary
  }

  /** Upper bound of the bytes of this row's movement. */
  bytesMax({ fields }: Rows, base: number): number {
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return blankLine.length + (shareBytes / shareCharactersMin) * blankShare.length
  }

  /**
   * Sets the entry of the movements that follow: lays out the columns that its lines share. Fields: {@link
   * traEntryColumns}, starting at `base`.
   */
  setEntry(rows: Rows, base: number, pieceType: PieceType): void {
    const line = this.#line
    const booked = cited(this.#dictionary.journals, idOf(rows, base + ofEntry.journal_id), 'journal')
    line.set(booked.code, journal)
    writeDay(line, date, rows, base + ofEntry.date)
    line[pieceTypeAt] = pieceType.charCodeAt(0)
    line[pieceTypeAt + 1] = pieceType.charCodeAt(1)
    const isDraft = isNullField(rows, base + ofEntry.validated_at)
    line[entryType] = isDraft ? capitalS : capitalN
    this.#numberPiece()
    this.#setCurrency(rows, base)
    line.fill(blank, entryId, entryId + textColumns)
    writePlainField(line, entryId, rows, base + ofEntry.id)
    writeDay(line, createdOn, rows, base + ofEntry.created_on)
    const openingCode = booked.isOpening
      ? cited(this.#dictionary.openings, idOf(rows, base + ofEntry.exercice_id), 'exercice')
      : noOpening
    line.set(openingCode, opening)
    line[validated] = isDraft ? minus : capitalX
    writeDay(line, validatedOn, rows, base + ofEntry.validated_at)

    // A share repeats the columns of its entry, but not those of its movement. Only the movement is due.
    const share = this.#share
    line.set(noDayBytes, dueDate)
    share.set(line.subarray(0, commonColumns))
    share.set(line.subarray(createdOn, createdOn + noDay.length), createdOn)
    share.set(openingCode, opening)
    writeDay(line, dueDate, rows, base + ofEntry.due_date)
  }

  #numberPiece(): void {
    const digits = String(++this.#pieceNumber)
    if (digits.length > pieceNumberColumns)
      throw new TraOverflow(layouts.ENTRY, fieldOf(layouts.ENTRY, 'NUMEROPIECE'), digits)
    writeRight(this.#line, pieceNumber, pieceNumberColumns, digits)
  }

  /** The columns of the currency are kept from entry to entry: most ledgers have only the euro. */
  #setCurrency(rows: Rows, base: number): void {
    if (isNullField(rows, base + ofEntry.foreign_currency)) {
      if (!this.#foreign) return
      this.#foreign = undefined
      this.#line.set(euro, currency)
      writeRight(this.#line, rate, rateField.length, '1')
      this.#line.set(inEuro, amountCode)
      return
    }
    const text = textOf(rows, base + ofEntry.foreign_rate)
    const [whole, decimals = ''] = text.split('.')
    this.#foreign = new ForeignAmounts(BigInt(whole! + decimals.padEnd(rateDecimals, '0')))
    writePlainField(this.#line, currency, rows, base + ofEntry.foreign_currency)
    const written = text.replace('.', ',')
    if (written.length > rateField.length) throw new TraOverflow(layouts.ENTRY, rateField, written)
    writeRight(this.#line, rate, rateField.length, written)
    this.#line.set(inBoth, amountCode)
  }

  /** Writes a movement of the current entry, and its shares. Fields: {@link traMovementColumns}, starting at `base`. */
  write(out: Uint8Array, at: number, rows: Rows, base: number): number {
    const { bytes, fields } = rows
    out.set(this.#line, at)
    const accountId = idOf(rows, base + of.account_id)
    const booked = cited(this.#dictionary.accounts, accountId, 'account')
    out.set(booked.columns, at + account)
    writeText(out, at + invoiceNumber, rows, base + of.invoice_number)
    writeText(out, at + description, rows, base + of.description)
    if (!isNullField(rows, base + of.payment_id)) {
      const mode = cited(this.#dictionary.payments, idOf(rows, base + of.payment_id), 'payment')
      out.set(mode, at + payment)
    }
    if (!isNullField(rows, base + of.due_date)) writeDay(out, at + dueDate, rows, base + of.due_date)
    const isDebit = isDebitLine(rows, base)
    out[at + side] = isDebit ? capitalD : capitalC
    const amount = base + (isDebit ? of.debit : of.credit)
    this.#writeAmounts(out, at, bytes, fields[amount]!, fields[amount + 1]! - 1, isDebit, 0)
    if (!isNullField(rows, base + of.free_number))
      writeText(out, at + freeNumber, rows, base + of.free_number)
    this.#writeLettering(out, at, rows, base, accountId, booked.isThirdParty)
    at += this.#line.length
    if (isNullField(rows, base + of.shares)) return at
    return this.#writeShares(out, at, rows, base + of.shares, booked.columns, isDebit)
  }

  /**
   * Writes one line per share of `{section,amount,rate,section,amount,rate}`. The file has no columns for a sixth axis.
   */
  #writeShares(
    out: Uint8Array,
    at: number,
    { bytes, fields }: Rows,
    field: number,
    accountColumns: Uint8Array,
    isDebit: boolean,
  ): number {
    const end = fields[field + 1]! - 1
    for (let i = fields[field]! + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const divided = cited(this.#dictionary.sections, readId(bytes, i, idEnd), 'section')
      if (divided.axis <= axesMax) {
        out.set(this.#share, at)
        for (let column = 0; column < accountType - account; column++)
          out[at + account + column] = accountColumns[column]!
        out[at + accountType] = capitalA
        out.set(divided.code, at + section)
        out[at + side] = isDebit ? capitalD : capitalC
        this.#writeAmounts(out, at, bytes, idEnd + 1, amountEnd, isDebit, divided.axis)
        out[at + axis] = capitalA
        out[at + axis + 1] = zero + divided.axis
        at += this.#share.length
      }
      i = endOfNumber(bytes, amountEnd + 1) + 1
    }
    return at
  }

  /**
   * Writes MONTANT1 in the currency of the entry and, if that is not the euro, MONTANT2 in euro.
   * @param rank of the axis of a share; 0 for the movement itself
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

  #writeLettering(
    out: Uint8Array,
    at: number,
    rows: Rows,
    base: number,
    accountId: number,
    isThirdParty: boolean,
  ): void {
    const { bytes, fields } = rows
    const state = bytes[fields[base + of.lettering_state]!]
    if (state === letterN) {
      out.set(isThirdParty ? toLetter : cannotLetter, at + letteringState)
      return
    }
    const isPartial = state === letterP
    out.set(isPartial ? partlyLettered : lettered, at + letteringState)
    const written = this.#dictionary.letterings.get(accountId)
    if (!written) {
      const start = fields[base + of.lettering_code]!
      const end = fields[base + of.lettering_code + 1]! - 1
      for (let i = start; i < end; i++) out[at + lettering + i - start] = inCase(bytes[i]!, isPartial)
      return
    }
    const code = written.get(textOf(rows, base + of.lettering_code))
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

/** SENS: `D` where the debit is not zero. */
export function isDebitLine({ bytes, fields }: Rows, base: number): boolean {
  const start = fields[base + of.debit]!
  return bytes[start] !== zero || fields[base + of.debit + 1]! - 1 - start > 1
}
