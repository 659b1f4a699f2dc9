/** Checks the entries of a MAD file against its master data, and hands them over for loading. */
import { type FileEntry, type FileMovement, MadEntry } from '../../formats/items/entry.ts'
import type { FileExercice } from '../../formats/items/exercice.ts'
import { type FileItem, pathOf, readItem } from '../../formats/mad/read-items.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { EntryWriter, NewEntry, NewMovement } from '../import/entry-writer.ts'
import type { IdOf } from '../import/master-data.ts'
import type { MadMasterData } from './master-data.ts'

/** The writer that receives the entries, and the data that they refer to. */
interface MadTarget {
  masterData: MadMasterData
  idOf: IdOf
  writer: EntryWriter
  /** The ids of registered third parties, by code. */
  thirdParties: ReadonlyMap<string, string>
}

export class MadEntries {
  readonly #target: MadTarget
  readonly counts = {
    unbalancedEntries: 0,
    /** The number of entries that name a partner who is not registered here. */
    unknownSenders: 0,
  }
  /** The currencies of entries that have no rate. */
  readonly currencies = new Set<string>()

  constructor(target: MadTarget) {
    this.#target = target
  }

  /** Takes an entry. After the first problem entries are only checked, since nothing will be kept. */
  async add(item: FileItem): Promise<void> {
    const { writer, masterData } = this.#target
    const { problems } = masterData
    const entry = readItem(MadEntry, item, problems)
    if (entry === undefined) return
    const exercice = this.#check(entry, pathOf(item))
    if (exercice === undefined || problems.lines.length > 0) return
    const loaded = writer.addEntry(this.#entryRow(entry, exercice))
    let balance = 0n
    for (const movement of entry.movements) {
      writer.addMovement(loaded, this.#movementRow(movement))
      balance += movement.value.debit - movement.value.credit
    }
    if (balance !== 0n) this.counts.unbalancedEntries += 1
    await writer.loadIfFull()
  }

  /** Checks the entry, and finds its exercice. If there is none, adds a problem and returns undefined. */
  #check(entry: FileEntry, at: string): FileExercice | undefined {
    const { masterData } = this.#target
    const { problems, items } = masterData
    const { journal, date, movements } = entry
    masterData.checkNamed('journals', journal, `${at}.journal`)
    for (const [i, movement] of movements.entries()) this.#checkMovement(movement, `${at}.movements[${i}]`)
    const exercice = items.exercices
      .values()
      .find(({ period: { start, end } }) => start <= date && date <= end)
    if (exercice === undefined)
      problems.add(`${at}.date`, date, 'no exercice of data.exercices contains this day')
    return exercice
  }

  #checkMovement({ account, payment, value, lettering, analytics }: FileMovement, at: string): void {
    const { masterData } = this.#target
    const { problems } = masterData
    masterData.checkNamed('accounts', account, `${at}.account`)
    masterData.checkNamed('payments', payment, `${at}.payment`)
    if (value.debit !== 0n && value.credit !== 0n)
      problems.add(`${at}.value.debit`, inUnits(value.debit), 'debit or credit must be zero')
    else if (value.amount !== value.credit - value.debit)
      problems.add(`${at}.value.amount`, inUnits(value.amount), 'credit minus debit is expected')
    const { state, value: code } = lettering
    if ((state === 'none') !== (code === null))
      problems.add(
        `${at}.lettering.value`,
        code,
        `${code === null ? 'a' : 'no'} code is expected with state ${state}`,
      )
    else if (state === 'partial' && !code!.startsWith('*'))
      problems.add(`${at}.lettering.value`, code, 'the code of a partial lettering has * in front')
    if (analytics.length > 0) this.#checkAnalytics(analytics, `${at}.analytics`)
  }

  #checkAnalytics(analytics: FileMovement['analytics'], at: string): void {
    const { masterData } = this.#target
    const { problems, items } = masterData
    const axes = new Set<string>()
    for (const [i, { sections, ...axis }] of analytics.entries()) {
      const { producerId } = axis
      masterData.checkSame(axis, items.axes.get(producerId), `${at}[${i}]`, 'data.analytics')
      if (axes.has(producerId))
        problems.add(`${at}[${i}].producerId`, producerId, 'each axis is expected once')
      axes.add(producerId)
      for (const [k, { amount, rate, ...section }] of sections.entries()) {
        const known = items.sections.get(section.producerId)
        // A section counts only as part of its own axis.
        const ofAxis = known?.axis.producerId === producerId ? known : undefined
        const list = `axis ${axis.code} of data.analytics`
        masterData.checkSame(section, ofAxis, `${at}[${i}].sections[${k}]`, list)
      }
    }
  }

  #entryRow(entry: FileEntry, exercice: FileExercice): NewEntry {
    const { source, partnerMetadata, comment, createdAt, accountedAt, validationDate } =
      entry.additionalProducerProperties
    const { code: currency, rate } = entry.currency
    const { idOf, thirdParties } = this.#target
    const thirdPartyId = source.thirdParty && (thirdParties.get(source.thirdParty.code) ?? null)
    if (source.thirdParty !== null && thirdPartyId === null) this.counts.unknownSenders += 1
    if (rate === undefined) this.currencies.add(currency)
    return {
      id: entry.producerId,
      exerciceId: idOf('exercices', exercice.producerId),
      journalId: idOf('journals', entry.journal.producerId),
      date: entry.date,
      dueDate: entry.dueDate,
      accountedAt,
      createdAt: new Date(Number(createdAt) * 1000).toISOString(),
      validatedAt: validationDate,
      source: source.name,
      thirdPartyId,
      currency,
      rate: rate === undefined ? null : inUnits(rate, '.', 6),
      comment,
      partnerMetadata,
      attachments: addresses(entry.attachments),
    }
  }

  #movementRow(movement: FileMovement): NewMovement {
    const { producerId, account, value, payment, analytics, lettering, attachments, ...own } = movement
    const { idOf } = this.#target
    const { state, value: code } = lettering
    const shares = analytics
      .flatMap(({ sections }) => sections)
      .flatMap((share) => [BigInt(idOf('sections', share.producerId)), share.amount, share.rate])
    return {
      ...own,
      id: producerId,
      accountId: idOf('accounts', account.producerId),
      debit: value.debit,
      credit: value.credit,
      paymentId: payment && idOf('payments', payment.producerId),
      letteringState: state,
      letteringCode: state === 'partial' ? code!.slice(1) : code,
      shares: analytics.length === 0 ? null : shares,
      attachments: addresses(attachments),
    }
  }
}

function addresses(files: FileEntry['attachments']): NewEntry['attachments'] {
  const all = Object.entries(files)
  return all.length === 0 ? null : Object.fromEntries(all.map(([name, { value }]) => [name, value]))
}
