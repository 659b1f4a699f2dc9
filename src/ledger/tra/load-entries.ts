/** Turns the entry lines of a TRA file into entries and movements, in the caller's transaction. */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import { type EntryRow, entryTable } from '../../formats/items/entry.ts'
import { type LetteringState, type MovementRow, movementTable } from '../../formats/items/movement.ts'
import { blank } from '../../formats/items/table.ts'
import { unitsMax } from '../../formats/minor-units.ts'
import { partyKind } from '../../formats/party-kind.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { isoDay } from '../../formats/tra/check/entry-check.ts'
import type { TraLine } from '../../formats/tra/check/parse.ts'
import type { TraProblems } from '../../formats/tra/check/problem.ts'
import { fieldOf, layouts, type TraField } from '../../formats/tra/layouts/layouts.ts'
import { EntryNumbers } from '../entry-numbers.ts'
import type { IdSource } from '../ids.ts'
import { EntryWriter, type WrittenCounts } from '../import/entry-writer.ts'
import { sectionKey, type TraIds } from './load-parameters.ts'
import { dayOf } from './parameters.ts'
import type { UnreadFields } from './unread-fields.ts'

const field = (name: string) => fieldOf(layouts.ENTRY, name)
const of = {
  journal: field('JOURNAL'),
  date: field('DATECOMPTABLE'),
  general: field('GENERAL'),
  accountType: field('TYPE CPTE'),
  party: field('AUXILIAIRE OU SECTION'),
  reference: field('REFINTERNE'),
  description: field('LIBELLE'),
  payment: field('MODEPAIE'),
  dueDate: field('ECHEANCE'),
  side: field('SENS'),
  entryType: field('TYPE ECRITURE'),
  number: field('NUMEROPIECE'),
  currency: field('DEVISE'),
  rate: field('TAUXDEV'),
  amountCode: field('CODEMONTANT'),
  axis: field('AXE'),
  createdOn: field('DATECREATION'),
  freeNumber: field('REFLIBRE'),
  lettering: field('LETTRAGE'),
  letteringState: field('ETATLETTRAGE'),
  validatedOn: field('VALIDDATE'),
}
/** CODEMONTANT names the currency of each. */
const amounts = [field('MONTANT1'), field('MONTANT2'), field('MONTANT3')]

/** What the entry has, and its first line tells. */
const ofEntry = [of.entryType, of.currency, of.rate, of.validatedOn]

const blankEntry = blank(entryTable)
const blankMovement = blank(movementTable)

const letteringStates: Record<string, LetteringState> = { TL: 'complete', PL: 'partial' }

export interface TraEntryCounts {
  /** Entries that are no drafts and have no day of validation. */
  blankValidDates: number
  /** Lines of third parties that have no account of their own. */
  thirdPartyLines: number
}

export interface TraEntryTarget extends FolderKey {
  ids: TraIds
  /** Time of the import, ISO 8601. */
  now: string
  timeZone: string
}

export class TraEntryLoader {
  readonly #ids: IdSource
  readonly #target: TraEntryTarget
  readonly #problems: TraProblems
  readonly #unread: UnreadFields
  readonly #writer: EntryWriter<EntryRow, MovementRow>
  readonly #numbers = new EntryNumbers()
  /** The first line of the current entry. */
  #first: TraLine | undefined
  #entry: EntryRow | undefined
  /** The movement whose shares may follow. */
  #movement: MovementRow | undefined
  /** Shares by axis, as amounts in euro. */
  readonly #shares = new Map<string, [section: string, amount: bigint][]>()
  readonly #counts: TraEntryCounts = { blankValidDates: 0, thirdPartyLines: 0 }

  constructor(
    client: ClientBase,
    ids: IdSource,
    target: TraEntryTarget,
    problems: TraProblems,
    unread: UnreadFields,
  ) {
    this.#ids = ids
    this.#target = target
    this.#problems = problems
    this.#unread = unread
    this.#writer = new EntryWriter(client, entryTable, movementTable)
  }

  /** Takes lines that the check has found good. Each needs an id, and so does each entry. */
  async reserve(lines: number): Promise<void> {
    await this.#ids.reserve(2 * lines)
  }

  add(line: TraLine): void {
    this.#unread.addLine(line)
    if (line.layout === layouts.ANALYTIC) this.#addShare(line)
    else this.#addMovement(line)
  }

  async flushIfFull(): Promise<void> {
    await this.#writer.flushIfFull()
  }

  async end(): Promise<TraEntryCounts & WrittenCounts> {
    this.#endMovement()
    await this.#writer.flush()
    return { ...this.#writer.counts, ...this.#counts }
  }

  #addMovement(line: TraLine): void {
    this.#endMovement()
    if (this.#first === undefined || line.code(of.number) !== this.#first.code(of.number)) {
      this.#first = line.kept()
      this.#entry = this.#entryRow(line)
      this.#writer.addEntry(this.#entry)
    } else
      for (const each of ofEntry)
        if (line.columns(each) !== this.#first.columns(each))
          this.#refuse(line, each, `the first line of the entry has "${this.#first.value(each)}"`)
    this.#movement = this.#movementRow(line, this.#entry!)
  }

  #addShare(line: TraLine): void {
    const axis = line.code(of.axis)
    const section = this.#target.ids.sections.get(sectionKey(axis, line.value(of.party)))
    assert(section !== undefined, 'the check has found the section')
    const shares = this.#shares.get(axis) ?? []
    this.#shares.set(axis, shares)
    shares.push([section, this.#euros(line)])
  }

  #endMovement(): void {
    const movement = this.#movement
    if (movement === undefined) return
    this.#movement = undefined
    if (this.#shares.size > 0) {
      const whole = movement.debit + movement.credit
      movement.shares = [...this.#shares.values()].flatMap((ofAxis) =>
        ofAxis.flatMap(([section, amount]) => [BigInt(section), amount, rateOf(amount, whole)]),
      )
      this.#shares.clear()
    }
    this.#writer.addMovement(movement)
  }

  #entryRow(line: TraLine): EntryRow {
    const { schemaId, folderId, ids, now, timeZone } = this.#target
    const date = isoDay(line.columns(of.date))
    const exercice = ids.exercices.find(({ start, end }) => start <= date && date <= end)
    assert(exercice !== undefined, 'the check has found the exercice')
    const type = line.code(of.entryType)
    // S is a simulation. U and R, situations and revisions, are not of the ledger either.
    const isDraft = type !== 'N'
    if (isDraft && type !== 'S') this.#unread.add(layouts.ENTRY, of.entryType.name)
    const validatedOn = dayOf(line, of.validatedOn)
    if (isDraft && validatedOn !== null) this.#unread.add(layouts.ENTRY, of.validatedOn.name)
    if (!isDraft && validatedOn === null) this.#counts.blankValidDates += 1
    const createdOn = dayOf(line, of.createdOn)
    const currency = line.code(of.currency) || 'EUR'
    const numbered = {
      exerciceId: exercice.id,
      journalId: ids.journals.get(line.text(of.journal))!,
      validatedAt: isDraft ? null : (validatedOn ?? date),
    }
    return {
      ...blankEntry,
      schemaId,
      folderId,
      id: this.#ids.next(),
      ...numbered,
      date,
      accountedAt: date,
      createdAt: createdOn === null ? now : `${createdOn} 12:00:00 ${timeZone}`,
      source: 'CEGID',
      currency,
      rate: currency === 'EUR' ? null : this.#rate(line),
      number: this.#numbers.next(numbered),
    }
  }

  #movementRow(line: TraLine, entry: EntryRow): MovementRow {
    const { schemaId, folderId, exerciceId, id: entryId } = entry
    const { accounts, payments } = this.#target.ids
    const isThirdParty = line.code(of.accountType) === 'X'
    const accountId = isThirdParty
      ? accounts.thirdParties.get(line.text(of.party))
      : accounts.general.get(line.text(of.general))
    assert(accountId !== undefined, 'the check has found the account')
    if (isThirdParty && partyKind(line.text(of.general)) === undefined) this.#counts.thirdPartyLines += 1
    const euros = this.#euros(line)
    const isDebit = line.code(of.side) === 'D'
    const letteringState = letteringStates[line.code(of.letteringState)] ?? 'none'
    return {
      ...blankMovement,
      schemaId,
      folderId,
      exerciceId,
      entryId,
      id: this.#ids.next(),
      accountId,
      description: line.value(of.description),
      dueDate: dayOf(line, of.dueDate),
      freeNumber: line.value(of.freeNumber) || null,
      invoiceNumber: line.value(of.reference),
      debit: isDebit ? euros : 0n,
      credit: isDebit ? 0n : euros,
      paymentId: payments.get(line.code(of.payment)) ?? null,
      letteringState,
      // The letter case of a code tells its state.
      letteringCode: letteringState === 'none' ? null : line.text(of.lettering).toUpperCase(),
    }
  }

  /** Minor units. */
  #euros(line: TraLine): bigint {
    const place = line.columns(of.amountCode).indexOf('E')
    const amount = amounts[place]
    if (amount === undefined) {
      this.#refuse(line, of.amountCode, 'an amount in euro is expected')
      return 0n
    }
    const minor = BigInt(line.code(amount).replace(',', '') || '0')
    if (minor > unitsMax || minor < -unitsMax)
      this.#refuse(line, amount, 'an amount up to 92233720368547758,07 is expected')
    return minor
  }

  #rate(line: TraLine): string | null {
    const rate = line.code(of.rate)
    if (rate === '') return null
    if (!/^\d+(?:,\d{1,6}0*)?$/.test(rate))
      this.#refuse(line, of.rate, 'a rate with at most six decimals is expected')
    return rate.replace(',', '.')
  }

  #refuse(line: TraLine, of: TraField, message: string): void {
    line.refuse(this.#problems, of, message)
  }
}

/** Ten-thousandths of a percent, rounded; 0 where there is nothing to divide. */
function rateOf(amount: bigint, whole: bigint): bigint {
  if (whole === 0n) return 0n
  const [part, all] = whole < 0n ? [-amount, -whole] : [amount, whole]
  const doubled = 2n * 1_000_000n * part + (part < 0n ? -all : all)
  return doubled / (2n * all)
}
