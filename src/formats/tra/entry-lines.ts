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
import { offsetsOf } from '../columns.ts'
import { endOfNumber, isNull, readId, unescaped, writePlain } from '../text-bytes.ts'
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
  bytesMax(fields: Int32Array, base: number): number {
    const shareBytes = fields[base + of.shares + 1]! - fields[base + of.shares]!
    return blankLine.length + (shareBytes / shareCharactersMin) * blankShare.length
  }

  /**
   * Sets the entry of the movements that follow: lays out the columns that its lines share. Fields: {@link
   * traEntryColumns}, starting at `base`.
   */
  setEntry(bytes: Uint8Array, fields: Int32Array, base: number, pieceType: PieceType): void {
    const line = this.#line
    const start = (column: number) => fields[base + column]!
    const end = (column: number) => fields[base + column + 1]! - 1
    const booked = this.#dictionary.journals.get(
      readId(bytes, start(ofEntry.journal_id), end(ofEntry.journal_id)),
    )
    if (!booked) assert.fail('an entry names a journal that its folder does not have')
    line.set(booked.code, journal)
    writeDay(line, date, bytes, start(ofEntry.date), end(ofEntry.date))
    line[pieceTypeAt] = pieceType.charCodeAt(0)
    line[pieceTypeAt + 1] = pieceType.charCodeAt(1)
    const isDraft = isNull(bytes, start(ofEntry.validated_at), end(ofEntry.validated_at))
    line[entryType] = isDraft ? capitalS : capitalN
    this.#numberPiece()
    this.#setCurrency(bytes, fields, base)
    line.fill(blank, entryId, entryId + textColumns)
    writePlain(line, entryId, bytes, start(ofEntry.id), end(ofEntry.id))
    writeDay(line, createdOn, bytes, start(ofEntry.created_on), end(ofEntry.created_on))
    const year = readId(bytes, start(ofEntry.exercice_id), end(ofEntry.exercice_id))
    const openingCode = booked.isOpening ? this.#dictionary.openings.get(year) : noOpening
    if (!openingCode) assert.fail('an entry names an exercice that its folder does not have')
    line.set(openingCode, opening)
    line[validated] = isDraft ? minus : capitalX
    writeDay(line, validatedOn, bytes, start(ofEntry.validated_at), end(ofEntry.validated_at))

    // A share repeats the columns of its entry, but not those of its movement. Only the movement is due.
    const share = this.#share
    line.set(noDayBytes, dueDate)
    share.set(line.subarray(0, commonColumns))
    share.set(line.subarray(createdOn, createdOn + noDay.length), createdOn)
    share.set(openingCode, opening)
    writeDay(line, dueDate, bytes, start(ofEntry.due_date), end(ofEntry.due_date))
  }

  #numberPiece(): void {
    const digits = String(++this.#pieceNumber)
    if (digits.length > pieceNumberColumns)
      throw new TraOverflow(layouts.ENTRY, fieldOf(layouts.ENTRY, 'NUMEROPIECE'), digits)
    writeRight(this.#line, pieceNumber, pieceNumberColumns, digits)
  }

  /** The columns of the currency are kept from entry to entry: most ledgers have only the euro. */
  #setCurrency(bytes: Uint8Array, fields: Int32Array, base: number): void {
    const start = fields[base + ofEntry.foreign_currency]!
    const rateStart = fields[base + ofEntry.foreign_rate]!
    const end = fields[base + ofEntry.foreign_currency + 1]! - 1
    if (isNull(bytes, start, end)) {
      if (!this.#foreign) return
      this.#foreign = undefined
      this.#line.set(euro, currency)
      writeRight(this.#line, rate, rateField.length, '1')
      this.#line.set(inEuro, amountCode)
      return
    }
    const text = Buffer.from(
      bytes.subarray(rateStart, fields[base + ofEntry.foreign_rate + 1]! - 1),
    ).toString('latin1')
    const [whole, decimals = ''] = text.split('.')
    this.#foreign = new ForeignAmounts(BigInt(whole! + decimals.padEnd(rateDecimals, '0')))
    writePlain(this.#line, currency, bytes, start, end)
    const written = text.replace('.', ',')
    if (written.length > rateField.length) throw new TraOverflow(layouts.ENTRY, rateField, written)
    writeRight(this.#line, rate, rateField.length, written)
    this.#line.set(inBoth, amountCode)
  }

  /** Writes a movement of the current entry, and its shares. Fields: {@link traMovementColumns}, starting at `base`. */
  write(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number {
    out.set(this.#line, at)
    const accountId = readId(bytes, fields[base + of.account_id]!, fields[base + of.account_id + 1]! - 1)
    const booked = this.#dictionary.accounts.get(accountId)
    if (!booked) assert.fail('a movement names an account that its folder does not have')
    out.set(booked.columns, at + account)
    writeText(
      out,
      at + invoiceNumber,
      bytes,
      fields[base + of.invoice_number]!,
      fields[base + of.invoice_number + 1]! - 1,
    )
    writeText(
      out,
      at + description,
      bytes,
      fields[base + of.description]!,
      fields[base + of.description + 1]! - 1,
    )
    const paymentStart = fields[base + of.payment_id]!
    const paymentEnd = fields[base + of.payment_id + 1]! - 1
    if (!isNull(bytes, paymentStart, paymentEnd)) {
      const mode = this.#dictionary.payments.get(readId(bytes, paymentStart, paymentEnd))
      if (!mode) assert.fail('a movement names a payment that its folder does not have')
      out.set(mode, at + payment)
    }
    const dueStart = fields[base + of.due_date]!
    const dueEnd = fields[base + of.due_date + 1]! - 1
    if (!isNull(bytes, dueStart, dueEnd)) writeDay(out, at + dueDate, bytes, dueStart, dueEnd)
    const isDebit = isDebitLine(bytes, fields, base)
    out[at + side] = isDebit ? capitalD : capitalC
    const amount = isDebit ? of.debit : of.credit
    this.#writeAmounts(out, at, bytes, fields[base + amount]!, fields[base + amount + 1]! - 1, isDebit, 0)
    const freeStart = fields[base + of.free_number]!
    const freeEnd = fields[base + of.free_number + 1]! - 1
    if (!isNull(bytes, freeStart, freeEnd)) writeText(out, at + freeNumber, bytes, freeStart, freeEnd)
    this.#writeLettering(out, at, bytes, fields, base, accountId, booked.isThirdParty)
    const sharesStart = fields[base + of.shares]!
    const sharesEnd = fields[base + of.shares + 1]! - 1
    at += this.#line.length
    if (isNull(bytes, sharesStart, sharesEnd)) return at
    return this.#writeShares(out, at, bytes, sharesStart, sharesEnd, booked.columns, isDebit)
  }

  /**
   * Writes one line per share of `{section,amount,rate,section,amount,rate}`. The file has no columns for a sixth axis.
   */
  #writeShares(
    out: Uint8Array,
    at: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    accountColumns: Uint8Array,
    isDebit: boolean,
  ): number {
    for (let i = start + 1; i < end; ) {
      const idEnd = endOfNumber(bytes, i)
      const amountEnd = endOfNumber(bytes, idEnd + 1)
      const divided = this.#dictionary.sections.get(readId(bytes, i, idEnd))
      if (!divided) assert.fail('an analytic share names a section that its folder does not have')
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
    bytes: Uint8Array,
    fields: Int32Array,
    base: number,
    accountId: number,
    isThirdParty: boolean,
  ): void {
    const state = bytes[fields[base + of.lettering_state]!]
    if (state === letterN) {
      out.set(isThirdParty ? toLetter : cannotLetter, at + letteringState)
      return
    }
    const isPartial = state === letterP
    out.set(isPartial ? partlyLettered : lettered, at + letteringState)
    const start = fields[base + of.lettering_code]!
    const end = fields[base + of.lettering_code + 1]! - 1
    const written = this.#dictionary.letterings.get(accountId)
    if (!written) {
      for (let i = start; i < end; i++) out[at + lettering + i - start] = inCase(bytes[i]!, isPartial)
      return
    }
    const code = written.get(unescaped(bytes, start, end))
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
export function isDebitLine(bytes: Uint8Array, fields: Int32Array, base: number): boolean {
  const start = fields[base + of.debit]!
  return bytes[start] !== zero || fields[base + of.debit + 1]! - 1 - start > 1
}
