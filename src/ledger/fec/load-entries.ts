/** The second pass over a FEC: turns its lines into entries and movements, in batches, in the caller's transaction. */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import type { FecLine } from '../../formats/fec/parse.ts'
import type { EntryRow, FolderKey, MovementRow } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { analyzeWhileLoading, entries, movements, movementsBeforeAnalyze, TableWriter } from '../load.ts'
import { accountKey } from './survey/accounts.ts'
import { type DatedLine, EntryFinder, type EntryPiece } from './survey/entries.ts'
import { paymentCode } from './survey/payments.ts'
import type { FecSurvey } from './survey/survey.ts'

/** Where lines go, with ids of accounts by the key of FecAccount, of journals and payments by code. */
export interface LoadTarget extends FolderKey {
  exerciceId: string
  /** The folder's own currency. */
  currency: string
  /** Time of the import, ISO 8601. */
  createdAt: string
  accounts: ReadonlyMap<string, string>
  journals: ReadonlyMap<string, string>
  payments: ReadonlyMap<string, string>
}

export interface LoadCounts {
  lines: number
  debit: bigint
  credit: bigint
  entries: number
  unbalancedEntries: number
  letteredLines: { complete: number; partial: number }
  /** Lines of opening journals that were moved to the first day of the fiscal year. */
  movedOpeningLines: number
}

/** Movements per COPY: foreign keys are checked once per batch, and a batch is some 2 MB. */
const batchMovements = 10_000

export class EntryLoader {
  readonly #client: ClientBase
  readonly #target: LoadTarget
  readonly #survey: FecSurvey
  readonly #ids: IdSource
  readonly #finder: EntryFinder
  readonly #entries: TableWriter<EntryRow>
  readonly #movements: TableWriter<MovementRow>
  /** Entries that may get more pieces. */
  readonly #open = new Map<string, { id: string; balance: bigint }>()
  #pending = 0
  #isAnalyzed = false
  readonly counts: LoadCounts = {
    lines: 0,
    debit: 0n,
    credit: 0n,
    entries: 0,
    unbalancedEntries: 0,
    letteredLines: { complete: 0, partial: 0 },
    movedOpeningLines: 0,
  }

  constructor(client: ClientBase, ids: IdSource, survey: FecSurvey, target: LoadTarget) {
    this.#client = client
    this.#target = target
    this.#survey = survey
    this.#ids = ids
    this.#finder = new EntryFinder(survey.groups)
    this.#entries = new TableWriter(client, entries)
    this.#movements = new TableWriter(client, movements)
  }

  async add(lines: FecLine[]): Promise<void> {
    for (const line of lines)
      for (const piece of this.#finder.add(this.#survey.dated(line))) await this.#addPiece(piece)
  }

  async end(): Promise<LoadCounts> {
    for (const piece of this.#finder.end()) await this.#addPiece(piece)
    await this.#flush()
    for (const { balance } of this.#open.values()) if (balance !== 0n) this.counts.unbalancedEntries += 1
    return this.counts
  }

  async #addPiece(piece: EntryPiece): Promise<void> {
    await this.#ids.reserve(piece.lines.length + 1)
    const balance = piece.lines.reduce((sum, line) => sum + line.debit - line.credit, 0n)
    const entryId = this.#entryOf(piece, balance)
    for (const line of piece.lines) this.#movements.add(this.#movementRow(line, entryId))
    this.#pending += piece.lines.length
    if (this.#pending < (this.#isAnalyzed ? batchMovements : movementsBeforeAnalyze)) return
    await this.#flush()
    if (!this.#isAnalyzed) await analyzeWhileLoading(this.#client)
    this.#isAnalyzed = true
  }

  #entryOf(piece: EntryPiece, balance: bigint): string {
    const open = piece.key === undefined ? undefined : this.#open.get(piece.key)
    if (open !== undefined) {
      open.balance += balance
      return open.id
    }
    const id = this.#ids.next()
    this.#entries.add(this.#entryRow(piece.lines, id))
    this.counts.entries += 1
    if (piece.key !== undefined) this.#open.set(piece.key, { id, balance })
    else assert(balance === 0n, 'a whole entry balances')
    return id
  }

  /** @param lines of the entry, or of its first piece */
  #entryRow(lines: DatedLine[], id: string): EntryRow {
    const { schemaId, folderId, exerciceId, createdAt } = this.#target
    const first = lines[0]!
    return {
      schemaId,
      folderId,
      id,
      exerciceId,
      journalId: this.#target.journals.get(first.journalCode)!,
      date: first.date,
      dueDate: null,
      accountedAt: first.date,
      createdAt,
      validatedAt: first.validatedOn ?? first.date,
      source: 'FEC',
      thirdPartyId: null,
      ...currencyAndRate(lines, this.#target.currency),
      comment: null,
      partnerMetadata: null,
      attachments: null,
    }
  }

  #movementRow(line: DatedLine, entryId: string): MovementRow {
    const { schemaId, folderId, exerciceId } = this.#target
    const account = accountKey(line)!
    const payment = paymentCode(line.paymentMode)
    this.counts.lines += 1
    this.counts.debit += line.debit
    this.counts.credit += line.credit
    if (line.originalDate !== undefined) this.counts.movedOpeningLines += 1
    return {
      schemaId,
      folderId,
      exerciceId,
      entryId,
      id: this.#ids.next(),
      accountId: this.#target.accounts.get(account)!,
      description: line.description,
      dueDate: null,
      freeNumber: line.originalDate ?? null,
      invoiceNumber: line.pieceReference,
      debit: line.debit,
      credit: line.credit,
      paymentId: payment === undefined ? null : this.#target.payments.get(payment)!,
      ...this.#lettering(line, account),
      shares: null,
      attachments: null,
    }
  }

  #lettering(line: DatedLine, account: string): Pick<MovementRow, 'letteringState' | 'letteringCode'> {
    if (line.letteringCode === '') return { letteringState: 'none', letteringCode: null }
    const state = this.#survey.isLetteringComplete(account, line.letteringCode) ? 'complete' : 'partial'
    this.counts.letteredLines[state] += 1
    return { letteringState: state, letteringCode: line.letteringCode }
  }

  /** Entries first: movements refer to them. */
  async #flush(): Promise<void> {
    await this.#entries.flush()
    await this.#movements.flush()
    this.#pending = 0
  }
}

/**
 * The first foreign currency that lines of an entry name. The rate is the price of one unit of it in the folder's own
 * currency, computed from all lines together so that the cents of small lines do not distort it; six decimals, rounded.
 */
function currencyAndRate(lines: DatedLine[], own: string): Pick<EntryRow, 'currency' | 'rate'> {
  const currency = lines.find((line) => line.currency !== undefined && line.currency !== own)?.currency
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
  const digits = String(millionths).padStart(7, '0')
  // numeric(18, 6) holds 12 digits before the point, and an amount that rounds to zero is not a rate.
  if (digits.length > 18 || millionths === 0n) return { currency, rate: null }
  return { currency, rate: `${digits.slice(0, -6)}.${digits.slice(-6)}` }
}

function absolute(amount: bigint): bigint {
  return amount < 0n ? -amount : amount
}
