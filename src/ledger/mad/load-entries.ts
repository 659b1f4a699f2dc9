/** Checks the entries of a MAD file against its books, and loads them. */
import type { ClientBase } from 'pg'
import { type EntryRow, entryTable, type FileEntry, MadEntry } from '../../formats/items/entry.ts'
import type { FileExercice } from '../../formats/items/exercice.ts'
import { type FileMovement, type MovementRow, movementTable } from '../../formats/items/movement.ts'
import type { IdOf } from '../../formats/items/table.ts'
import { type FileItem, pathOf } from '../../formats/mad/read/json-items.ts'
import { readItem } from '../../formats/mad/read/read-item.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { EntryNumbers } from '../entry-numbers.ts'
import { EntryWriter, type WrittenCounts } from '../import/entry-writer.ts'
import { compared } from '../load.ts'
import { type Books, type Place, within } from './books.ts'

export interface EntryTarget extends FolderKey {
  books: Books
  idOf: IdOf
  /** Whether entries go into the tables of a replacement; they get the ids of the file in any case. */
  isCompared: boolean
  /** Whether validated entries get numbers here; otherwise the database gives them where there are none. */
  isNumbered: boolean
  /** Ids of registered third parties by their code. */
  thirdParties: ReadonlyMap<string, string>
}

export interface EntryCounts {
  unbalancedEntries: number
  /** Entries that name a partner which is not registered here. */
  unknownSenders: number
  /** Of entries without a rate. */
  currencies: Set<string>
}

export class MadEntryLoader {
  readonly #target: EntryTarget
  readonly #writer: EntryWriter<EntryRow, MovementRow>
  readonly #numbers = new EntryNumbers()
  readonly #exercices: FileExercice[]
  readonly #counts: EntryCounts = { unbalancedEntries: 0, unknownSenders: 0, currencies: new Set() }

  constructor(client: ClientBase, target: EntryTarget) {
    this.#target = target
    this.#writer = target.isCompared
      ? new EntryWriter(client, compared(entryTable), compared(movementTable))
      : new EntryWriter(client, entryTable, movementTable)
    this.#exercices = [...target.books.exercices.values()]
  }

  /** Once there are problems, entries are only checked: nothing will be kept. */
  async add(item: FileItem): Promise<void> {
    const { books } = this.#target
    const read = readItem(MadEntry, item, books.problems)
    if (read === undefined) return
    const exercice = this.#check(read, { item: pathOf(item), path: [] })
    if (exercice === undefined || books.problems.found.length > 0) return
    const row = this.#entryRow(read, exercice)
    this.#writer.addEntry(row)
    let balance = 0n
    for (const movement of read.movements) {
      this.#writer.addMovement(this.#movementRow(movement, row))
      balance += movement.value.debit - movement.value.credit
    }
    this.#count(read, row, balance)
    await this.#writer.flushIfFull()
  }

  async end(): Promise<EntryCounts & WrittenCounts> {
    await this.#writer.flush()
    return { ...this.#writer.counts, ...this.#counts }
  }

  /** Handed over so far. */
  get movements(): number {
    return this.#writer.counts.movements
  }

  #count(read: FileEntry, row: EntryRow, balance: bigint): void {
    const counts = this.#counts
    if (balance !== 0n) counts.unbalancedEntries += 1
    if (read.additionalProducerProperties.source.thirdParty !== null && row.thirdPartyId === null)
      counts.unknownSenders += 1
    if (row.rate === null) counts.currencies.add(row.currency)
  }

  /** The exercice of the entry; undefined if it has none, which is a problem. */
  #check(read: FileEntry, at: Place): FileExercice | undefined {
    const { books } = this.#target
    books.checkSame(
      read.journal,
      books.journals.get(read.journal.producerId),
      within(at, 'journal'),
      'data.journals',
    )
    for (const [i, movement] of read.movements.entries())
      this.#checkMovement(movement, within(at, 'movements', i))
    const exercice = this.#exercices.find(
      ({ period: { start, end } }) => start <= read.date && read.date <= end,
    )
    if (exercice === undefined)
      books.problems.add(at.item, ['date'], read.date, 'no exercice of data.exercices contains this day')
    return exercice
  }

  #checkMovement(movement: FileMovement, at: Place): void {
    const { books } = this.#target
    const { value, lettering } = movement
    const refuse = (path: string[], found: unknown, message: string) =>
      books.problems.add(at.item, [...at.path, ...path], found, message)
    books.checkAccount(movement.account, within(at, 'account'))
    if (movement.payment !== null) books.checkPayment(movement.payment, within(at, 'payment'))
    if (value.debit !== 0n && value.credit !== 0n)
      refuse(['value', 'debit'], inUnits(value.debit), 'debit or credit must be zero')
    else if (value.amount !== value.credit - value.debit)
      refuse(['value', 'amount'], inUnits(value.amount), 'credit minus debit is expected')
    if ((lettering.state === 'none') !== (lettering.value === null))
      refuse(
        ['lettering', 'value'],
        lettering.value,
        'a code is expected exactly where the state is not none',
      )
    else if (lettering.state === 'partial' && !lettering.value!.startsWith('*'))
      refuse(['lettering', 'value'], lettering.value, 'the code of a partial lettering has * in front')
    if (movement.analytics.length > 0) this.#checkAnalytics(movement.analytics, within(at, 'analytics'))
  }

  #checkAnalytics(analytics: FileMovement['analytics'], at: Place): void {
    const { books } = this.#target
    const seen = new Set<string>()
    for (const [i, axis] of analytics.entries()) {
      const place = within(at, i)
      const { producerId, code, name, sections } = axis
      books.checkSame({ producerId, code, name }, books.axes.get(producerId), place, 'data.analytics')
      if (seen.has(producerId))
        books.problems.add(
          place.item,
          [...place.path, 'producerId'],
          producerId,
          'each axis is expected once',
        )
      seen.add(producerId)
      for (const [k, section] of sections.entries()) {
        const known = books.sections.get(section.producerId)
        const given = { producerId: section.producerId, code: section.code, name: section.name }
        // A section of another axis is none of this one.
        const ofAxis = known?.axis.producerId === producerId ? known : undefined
        books.checkSame(given, ofAxis, within(place, 'sections', k), `axis ${code} of data.analytics`)
      }
    }
  }

  #entryRow(read: FileEntry, exercice: FileExercice): EntryRow {
    const { schemaId, folderId, idOf, isNumbered, thirdParties } = this.#target
    const { source, partnerMetadata, comment, createdAt, accountedAt, validationDate } =
      read.additionalProducerProperties
    const numbered = {
      exerciceId: idOf('exercices', exercice.producerId),
      journalId: idOf('journals', read.journal.producerId),
      validatedAt: validationDate,
    }
    return {
      schemaId,
      folderId,
      id: read.producerId,
      ...numbered,
      date: read.date,
      dueDate: read.dueDate,
      accountedAt,
      createdAt: new Date(Number(createdAt) * 1000).toISOString(),
      source: source.name,
      thirdPartyId: (source.thirdParty && thirdParties.get(source.thirdParty.code)) ?? null,
      currency: read.currency.code,
      rate: read.currency.rate === undefined ? null : inMillionths(read.currency.rate),
      comment,
      partnerMetadata,
      attachments: addresses(read.attachments),
      number: isNumbered ? this.#numbers.next(numbered) : null,
    }
  }

  #movementRow(read: FileMovement, { schemaId, folderId, exerciceId, id: entryId }: EntryRow): MovementRow {
    const { idOf } = this.#target
    const { producerId, account, value, payment, analytics, lettering, attachments, ...own } = read
    const { state, value: code } = lettering
    return {
      ...own,
      schemaId,
      folderId,
      exerciceId,
      entryId,
      id: producerId,
      accountId: idOf('accounts', account.producerId),
      debit: value.debit,
      credit: value.credit,
      paymentId: payment && idOf('payments', payment.producerId),
      letteringState: state,
      letteringCode: state === 'partial' ? code!.slice(1) : code,
      shares:
        analytics.length === 0
          ? null
          : analytics.flatMap(({ sections }) =>
              sections.flatMap(({ producerId, amount, rate }) => [
                BigInt(idOf('sections', producerId)),
                amount,
                rate,
              ]),
            ),
      attachments: addresses(attachments),
    }
  }
}

function addresses(files: FileEntry['attachments']): EntryRow['attachments'] {
  const all = Object.entries(files)
  return all.length === 0 ? null : Object.fromEntries(all.map(([name, { value }]) => [name, value]))
}

function inMillionths(rate: bigint): string {
  const sign = rate < 0n ? '-' : ''
  const digits = String(rate < 0n ? -rate : rate).padStart(7, '0')
  return `${sign}${digits.slice(0, -6)}.${digits.slice(-6)}`
}
