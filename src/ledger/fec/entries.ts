/**
 * The second pass over a FEC. It turns lines into entries and movements, and loads them in batches in the caller's
 * transaction. Ids of movements ascend in the order of the file's lines.
 */

import { strict as assert } from 'node:assert'
import type { FecLine } from '../../formats/fec/parse.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { EntryWriter, NewEntry, NewMovement } from '../import/entry-writer.ts'
import {
  asJson,
  attachmentColumn,
  attachmentsIn,
  type Field,
  fieldsApart,
  type LedgerFields,
  noFields,
  type SharedFields,
  sharedFields,
} from './filed.ts'
import type { FecMasterData } from './master-data.ts'
import { accountKey } from './survey/accounts.ts'
import { type DatedLine, EntryFinder, type EntryPiece } from './survey/entries.ts'
import { paymentCode } from './survey/journals.ts'
import type { FecSurvey } from './survey/survey.ts'

/** The facts that loading needs, and the writer that receives the rows. */
interface FecTarget {
  survey: FecSurvey
  writer: EntryWriter
  masterData: FecMasterData
  exerciceId: string
  /** The currency of the folder. */
  currency: string
  /** The names of the file's further columns, known once its first line is read. */
  findings: { readonly furtherColumns: readonly string[] }
  /** Whether entries without a validation date become drafts, which await validation. */
  drafts: boolean
}

const unlettered = { letteringState: 'none', letteringCode: null } as const

type LoadedEntry = ReturnType<EntryWriter['addEntry']>

/** An entry whose first piece is loaded, kept for its later pieces. */
interface OpenEntry {
  row: LoadedEntry
  fields: LedgerFields['entry']
  shared: SharedFields
  balance: bigint
  /** Whether the entry is already counted among the `mixedCurrencyEntries`. */
  isMixed: boolean
}

/** A line to load, with the key of its account, its entry, and the fields to keep as filed. */
type BookedLine = { line: DatedLine; account: string; entry: LoadedEntry; filed: Field[] }

export class FecEntries {
  readonly #target: FecTarget
  readonly #finder: EntryFinder
  readonly #createdAt = new Date().toISOString()
  /** Entries that may get more pieces, by key. */
  readonly #open = new Map<string, OpenEntry>()
  #lastEntryId = 0
  readonly counts = {
    unbalancedEntries: 0,
    letteredLines: { complete: 0, partial: 0 },
    /** Lines of opening journals that were moved to the first day of the fiscal year. */
    movedOpeningLines: 0,
    /** Entries with a first line that has no ValidDate. */
    entriesWithoutValidDate: 0,
    attachments: 0,
    /** Entries with a line in another foreign currency than the entry's own. */
    mixedCurrencyEntries: 0,
    /** Lines whose ModeRglt is not among the six modes. */
    unknownPaymentLines: 0,
    /** Whether the order by entry id and movement id differs from the order of the file. */
    isScattered: false,
  }

  constructor(target: FecTarget) {
    this.#target = target
    this.#finder = new EntryFinder(target.survey.groups)
  }

  async load(batches: AsyncIterable<FecLine[]>): Promise<void> {
    const { survey, writer } = this.#target
    try {
      for await (const lines of batches) {
        for (const line of lines) {
          const pieces = this.#finder.add(survey.dated(line))
          // Most lines do not complete a piece, and an `await` for each of them would take time.
          if (pieces.length > 0) await this.#addPieces(pieces)
        }
      }
      await this.#addPieces(this.#finder.end())
      await writer.end()
    } finally {
      await writer.settled()
    }
    for (const { balance } of this.#open.values()) if (balance !== 0n) this.counts.unbalancedEntries += 1
  }

  /** @param pieces pieces whose lines, taken together, are consecutive lines of the file */
  async #addPieces(pieces: EntryPiece[]): Promise<void> {
    const { writer } = this.#target
    await writer.reserve(pieces.reduce((sum, { lines }) => sum + lines.length, pieces.length))
    const booked = pieces.flatMap((piece) => this.#book(piece))
    // A run that does not balance comes as one piece per entry number, each with lines from all over the run.
    if (pieces.length > 1) booked.sort((one, other) => one.line.number - other.line.number)
    for (const line of booked) {
      writer.addMovement(line.entry, this.#movementRow(line))
      const entryId = Number(line.entry.id)
      if (entryId < this.#lastEntryId) this.counts.isScattered = true
      this.#lastEntryId = entryId
    }
    await writer.loadIfFull()
  }

  #book({ key, lines }: EntryPiece): BookedLine[] {
    const balance = lines.reduce((sum, line) => sum + line.debit - line.credit, 0n)
    const open = key === undefined ? undefined : this.#open.get(key)
    if (open !== undefined) {
      open.balance += balance
      this.#countIfMixed(open, lines)
      const { row, fields, shared } = open
      return lines.map((line) => {
        const account = accountKey(line)!
        return { line, account, entry: row, filed: this.#fieldsApart(line, account, fields, shared) }
      })
    }
    const first = lines[0]!
    if (first.validatedOn === undefined) this.counts.entriesWithoutValidDate += 1
    const validatedAt = first.validatedOn ?? (this.#target.drafts ? null : first.date)
    const fields = { number: first.entryNumber || null, date: first.date, validatedAt }
    const keys = lines.map((line) => accountKey(line)!)
    const apart = lines.map((line, at) => this.#fieldsApart(line, keys[at]!, fields, noFields))
    const shared = sharedFields(apart, key === undefined)
    const row = this.#target.writer.addEntry(this.#entryRow(lines, fields, shared))
    const entry = { row, fields, shared, balance, isMixed: false }
    this.#countIfMixed(entry, lines)
    if (key !== undefined) this.#open.set(key, entry)
    else assert(balance === 0n, 'a whole entry balances')
    return lines.map((line, at) => ({
      line,
      account: keys[at]!,
      entry: row,
      filed:
        shared.size === 0 ? apart[at]! : apart[at]!.filter(([column, value]) => shared.get(column) !== value),
    }))
  }

  #fieldsApart(line: DatedLine, key: string, entry: LedgerFields['entry'], shared: SharedFields): Field[] {
    const { findings, masterData } = this.#target
    const { accounts, journals } = masterData
    const account = accounts.get(key)!
    const journal = journals.get(line.journalCode)!
    return fieldsApart(line, { entry, account, journal }, findings.furtherColumns, shared)
  }

  #countIfMixed(entry: OpenEntry, lines: DatedLine[]): void {
    if (entry.isMixed) return
    const others = foreignCurrencies(lines, this.#target.currency)
    others.delete(entry.row.currency)
    if (others.size === 0) return
    entry.isMixed = true
    this.counts.mixedCurrencyEntries += 1
  }

  /** @param lines the lines of the entry, or only of its first piece */
  #entryRow(
    lines: DatedLine[],
    { number, date, validatedAt }: LedgerFields['entry'],
    shared: SharedFields,
  ): NewEntry {
    const { masterData, exerciceId, currency } = this.#target
    return {
      exerciceId,
      journalId: masterData.journals.get(lines[0]!.journalCode)!.id,
      date,
      accountedAt: date,
      createdAt: this.#createdAt,
      validatedAt,
      source: 'FEC',
      ...currencyAndRate(lines, currency),
      number,
      filed: asJson(shared),
    }
  }

  #movementRow({ line, account, filed }: BookedLine): NewMovement {
    const { masterData } = this.#target
    const payment = paymentCode(line.paymentMode)
    if (payment === undefined && line.paymentMode !== '') this.counts.unknownPaymentLines += 1
    if (line.originalDate !== undefined) this.counts.movedOpeningLines += 1
    return {
      accountId: masterData.accounts.get(account)!.id,
      description: line.description,
      freeNumber: line.originalDate ?? null,
      invoiceNumber: line.pieceReference,
      debit: line.debit,
      credit: line.credit,
      paymentId: payment === undefined ? null : masterData.payments.get(payment)!,
      ...this.#lettering(line, account),
      attachments: this.#attachments(line),
      filed: asJson(filed),
    }
  }

  #attachments({ further }: DatedLine): Record<string, string> | null {
    const { furtherColumns } = this.#target.findings
    const values = further.filter((value, at) => value !== '' && attachmentColumn.test(furtherColumns[at]!))
    const found = values.length === 0 ? null : attachmentsIn(values)
    if (found !== null) this.counts.attachments += Object.keys(found).length
    return found
  }

  #lettering(line: DatedLine, account: string): Pick<NewMovement, 'letteringState' | 'letteringCode'> {
    if (line.letteringCode === '') return unlettered
    const state = this.#target.survey.isLetteringComplete(account, line.letteringCode)
      ? 'complete'
      : 'partial'
    this.counts.letteredLines[state] += 1
    return { letteringState: state, letteringCode: line.letteringCode }
  }
}

/**
 * The first foreign currency that lines of an entry name. Its rate is the price of one unit in the folder's own
 * currency, rounded to six decimals. It is computed from all lines together, so that the cents of small lines do not
 * distort it.
 */
function currencyAndRate(lines: DatedLine[], own: string): Pick<NewEntry, 'currency' | 'rate'> {
  const [currency] = foreignCurrencies(lines, own)
  if (currency === undefined) return { currency: own, rate: null }
  let minorUnits = 0n
  let thousandths = 0n
  for (const line of lines) {
    if (line.currency !== currency || line.amountInCurrency === undefined) continue
    minorUnits += absolute(line.debit + line.credit)
    thousandths += absolute(line.amountInCurrency)
  }
  if (thousandths === 0n || minorUnits === 0n) return { currency, rate: null }
  const millionths = (minorUnits * 10_000_000n + thousandths / 2n) / thousandths
  // numeric(18, 6) holds 12 digits before the point. An amount that rounds to zero gives no rate.
  if (millionths >= 10n ** 18n || millionths === 0n) return { currency, rate: null }
  return { currency, rate: inUnits(millionths, '.', 6) }
}

/** The foreign currencies that lines name, in the order of the lines. */
function foreignCurrencies(lines: DatedLine[], own: string): Set<string> {
  const found = new Set<string>()
  for (const { currency } of lines) if (currency !== undefined && currency !== own) found.add(currency)
  return found
}

function absolute(amount: bigint): bigint {
  return amount < 0n ? -amount : amount
}
