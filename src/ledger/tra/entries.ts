/**
 * Turns the entry lines of a TRA file into entries and movements to be loaded. The check has found no problem in the
 * lines.
 */
import { strict as assert } from 'node:assert'
import { partyKind } from '../../formats/items/accounts/parties.ts'
import type { LetteringState } from '../../formats/items/entry.ts'
import { unitsMax } from '../../formats/minor-units.ts'
import { isoDay, type TraLine } from '../../formats/tra/check/parse.ts'
import { layouts } from '../../formats/tra/layouts.ts'
import type { EntryWriter, NewEntry, NewMovement } from '../import/entry-writer.ts'
import type { IdOf } from '../import/master-data.ts'
import type { TraMasterData } from './master-data.ts'
import { type ReadParameters, sectionKey } from './parameters.ts'

/** The fields for amounts. CODEMONTANT names the currency of each. */
const amountFields = ['MONTANT1', 'MONTANT2', 'MONTANT3']
/** Fields that belong to the whole entry. Its first line gives them. */
const entryFields = ['TYPE ECRITURE', 'DEVISE', 'TAUXDEV', 'VALIDDATE']

const letteringStates: Record<string, LetteringState> = { TL: 'complete', PL: 'partial' }

/** The writer that receives the entries, and the data that they refer to. */
interface TraTarget {
  masterData: TraMasterData
  idOf: IdOf
  writer: EntryWriter
  /** Receives values that the ledger cannot hold, and counts values that are not read. */
  parameters: ReadParameters
  /** The IANA name of the time zone of the days on which entries were created. */
  timeZone: string
}

export class TraEntries {
  readonly #target: TraTarget
  readonly #now = new Date().toISOString()
  /** The first line of the current entry. */
  #first: TraLine | undefined
  #entry: ReturnType<EntryWriter['addEntry']> | undefined
  /** The current movement, which shares may follow. */
  #movement: NewMovement | undefined
  /** The shares of the movement by axis, with amounts in euro. */
  readonly #shares = new Map<string, [section: string, amount: bigint][]>()
  readonly counts = {
    /** The number of validated entries without a day of validation. */
    blankValidDates: 0,
    /** The number of lines for third parties that have no account of their own. */
    thirdPartyLines: 0,
  }

  constructor(target: TraTarget) {
    this.#target = target
  }

  /** Takes a line. Needs a reserved id for each line and each entry. */
  add(line: TraLine): void {
    const { idOf, parameters, writer } = this.#target
    parameters.addUnread(line)
    if (line.layout === layouts.ANALYTIC) {
      const axis = line.code('AXE')
      const section = idOf('sections', sectionKey(axis, line.value('AUXILIAIRE OU SECTION')))
      const shares = this.#shares.get(axis) ?? []
      this.#shares.set(axis, shares)
      shares.push([section, this.#euros(line)])
      return
    }
    this.endMovement()
    const first = this.#first
    if (first === undefined || line.code('NUMEROPIECE') !== first.code('NUMEROPIECE')) {
      this.#first = line.kept()
      this.#entry = writer.addEntry(this.#entryRow(line))
    } else
      for (const field of entryFields)
        if (line.columns(field) !== first.columns(field))
          parameters.refuse(line, field, `the first line of the entry has "${first.value(field)}"`)
    this.#movement = this.#movementRow(line)
  }

  /** Ends the current movement. Call it after the last line, too. */
  endMovement(): void {
    const movement = this.#movement
    if (movement === undefined) return
    this.#movement = undefined
    if (this.#shares.size > 0) {
      const whole = movement.debit + movement.credit
      movement.shares = [...this.#shares.values()]
        .flat()
        .flatMap(([section, amount]) => [BigInt(section), amount, rateOf(amount, whole)])
      this.#shares.clear()
    }
    this.#target.writer.addMovement(this.#entry!, movement)
  }

  #entryRow(line: TraLine): NewEntry {
    const { masterData, idOf, parameters, timeZone } = this.#target
    const date = isoDay(line.columns('DATECOMPTABLE'))
    const exercice = masterData.rows.exercices.find((each) => each.startDate <= date && date <= each.endDate)
    assert(exercice !== undefined, 'the check has found the exercice')
    const type = line.code('TYPE ECRITURE')
    // S is a simulation. U and R, situations and revisions, are not part of the ledger either.
    const isDraft = type !== 'N'
    if (isDraft && type !== 'S') parameters.countUnread(line, 'TYPE ECRITURE')
    const validatedOn = line.day('VALIDDATE')
    if (isDraft && validatedOn !== null) parameters.countUnread(line, 'VALIDDATE')
    if (!isDraft && validatedOn === null) this.counts.blankValidDates += 1
    const createdOn = line.day('DATECREATION')
    const currency = line.code('DEVISE') || 'EUR'
    return {
      exerciceId: idOf('exercices', exercice.id),
      journalId: idOf('journals', line.text('JOURNAL')),
      date,
      accountedAt: date,
      createdAt: createdOn === null ? this.#now : `${createdOn} 12:00:00 ${timeZone}`,
      validatedAt: isDraft ? null : (validatedOn ?? date),
      source: 'CEGID',
      currency,
      rate: currency === 'EUR' ? null : this.#rate(line),
    }
  }

  #movementRow(line: TraLine): NewMovement {
    const { masterData, idOf } = this.#target
    const general = line.text('GENERAL')
    const isThirdParty = line.code('TYPE CPTE') === 'X'
    const account = isThirdParty ? masterData.accountOf.get(line.text('AUXILIAIRE OU SECTION')) : general
    assert(account !== undefined, 'the check has found the account')
    if (isThirdParty && partyKind(general) === undefined) this.counts.thirdPartyLines += 1
    const euros = this.#euros(line)
    const isDebit = line.code('SENS') === 'D'
    const payment = line.code('MODEPAIE')
    const letteringState = letteringStates[line.code('ETATLETTRAGE')] ?? 'none'
    return {
      accountId: idOf('accounts', account),
      description: line.value('LIBELLE'),
      dueDate: line.day('ECHEANCE'),
      freeNumber: line.valueOrNull('REFLIBRE'),
      invoiceNumber: line.value('REFINTERNE'),
      debit: isDebit ? euros : 0n,
      credit: isDebit ? 0n : euros,
      paymentId: masterData.rows.payments.some(({ id }) => id === payment) ? idOf('payments', payment) : null,
      letteringState,
      // In the file, the letter case of a code shows its state.
      letteringCode: letteringState === 'none' ? null : line.text('LETTRAGE').toUpperCase(),
    }
  }

  /** The amount of a line in euro, in minor units. */
  #euros(line: TraLine): bigint {
    const { parameters } = this.#target
    const field = amountFields[line.columns('CODEMONTANT').indexOf('E')]
    if (field === undefined) {
      parameters.refuse(line, 'CODEMONTANT', 'an amount in euro is expected')
      return 0n
    }
    const minor = BigInt(line.code(field).replace(',', '') || '0')
    if (minor > unitsMax || minor < -unitsMax)
      parameters.refuse(line, field, 'an amount up to 92233720368547758,07 is expected')
    return minor
  }

  #rate(line: TraLine): string | null {
    const rate = line.code('TAUXDEV')
    if (rate === '') return null
    if (!/^\d+(?:,\d{1,6}0*)?$/.test(rate))
      this.#target.parameters.refuse(line, 'TAUXDEV', 'a rate with at most six decimals is expected')
    return rate.replace(',', '.')
  }
}

/** A share in ten-thousandths of a percent, rounded; 0 if the whole is zero. */
function rateOf(amount: bigint, whole: bigint): bigint {
  if (whole === 0n) return 0n
  const [part, all] = whole < 0n ? [-amount, -whole] : [amount, whole]
  const doubled = 2n * 1_000_000n * part + (part < 0n ? -all : all)
  return doubled / (2n * all)
}
