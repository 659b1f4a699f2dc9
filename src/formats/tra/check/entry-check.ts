/**
 * Checks the entries of a TRA file: citations must be defined, entries must balance and shares must add up (p. 40 to
 * 48).
 */
import { inUnits } from '../../minor-units.ts'
import type { Period } from '../../rows.ts'
import { layouts, noDay } from '../layouts.ts'
import { sectionCode, type TraParameters } from './parameters.ts'
import { isoDay, type TraLine, type TraProblems } from './parse.ts'

/** Amounts are in minor units of the euro. */
const emptyBalance = { movements: 0, debit: 0n, credit: 0n }

/** Fields that must be equal on all lines of an entry. The first line gives the expected value. */
const ofEntry = ['JOURNAL', 'DATECOMPTABLE', 'TYPE PIECE']
/** Fields that must be equal on an analytic line and on the line that it divides. */
const ofMovement = ['JOURNAL', 'DATECOMPTABLE', 'TYPE PIECE', 'GENERAL', 'SENS', 'NUMEROPIECE']

export class EntryCheck {
  readonly totals = {
    ...emptyBalance,
    entries: 0,
    /** The number of analytic lines. */
    shares: 0,
    /** Balances by journal code. */
    journals: new Map<string, typeof emptyBalance>(),
    /** The number of movements in each lettering state: RI, AL, PL, TL. */
    lettering: new Map<string, number>(),
    /** `YYYY-MM-DD`; null if the file has no entry. */
    firstDate: null as string | null,
    lastDate: null as string | null,
  }
  readonly #problems: TraProblems
  readonly #sums: TraProblems
  readonly #parameters: TraParameters
  /** Read at the first entry, because parameters precede entries. */
  #exercices: Period[] | undefined
  #number = ''
  /** The first line of the current entry, and the debits minus the credits of the entry. */
  #first: TraLine | undefined
  #balance = 0n
  /** The movement that analytic lines divide, and the sums of their amounts by axis. */
  #divided: TraLine | undefined
  readonly #shares = new Map<string, bigint>()

  /**
   * @param sums receives entries and shares that do not add up
   * @param parameters the parameters before the first entry
   */
  constructor(problems: TraProblems, sums: TraProblems, parameters: TraParameters) {
    this.#problems = problems
    this.#sums = sums
    this.#parameters = parameters
  }

  add(line: TraLine): void {
    if (line.layout === layouts.ANALYTIC) this.#addShare(line)
    else this.#addMovement(line)
  }

  /** Call after the last line. */
  close(): void {
    this.#endMovement()
    this.#endEntry()
  }

  #addMovement(line: TraLine): void {
    this.#endMovement()
    const number = line.code('NUMEROPIECE')
    if (this.#first === undefined || number !== this.#number) {
      this.#endEntry()
      this.#beginEntry(line, number)
    } else this.#compare(line, this.#first, ofEntry, 'the first line of the entry')
    this.#divided = line
    const euro = amountIn(line, line.columns('CODEMONTANT').startsWith('E') ? 'MONTANT1' : 'MONTANT2')
    this.#count(line, euro)
    this.#checkCitations(line)
    this.#checkLettering(line)
    this.#checkValidation(line)
  }

  #beginEntry(line: TraLine, number: string): void {
    const { totals } = this
    totals.entries += 1
    // Numbers must ascend, so a repeated number is found without a list of all numbers.
    if (this.#first !== undefined && Number(number) <= Number(this.#number)) {
      const message = `the numbers of entries must ascend, the previous one is ${this.#number}`
      this.#refuse(line, 'NUMEROPIECE', message)
    }
    this.#first = line
    this.#number = number
    this.#balance = 0n
    const day = isoDay(line.columns('DATECOMPTABLE'))
    if (totals.firstDate === null || day < totals.firstDate) totals.firstDate = day
    if (totals.lastDate === null || day > totals.lastDate) totals.lastDate = day
    this.#exercices ??= this.#parameters.lines('EXO').map((line) => ({
      start: isoDay(line.text('DATEDEBUT')),
      end: isoDay(line.text('DATEFIN')),
    }))
    if (!this.#exercices.some(({ start, end }) => start <= day && day <= end))
      this.#refuse(line, 'DATECOMPTABLE', 'no EXO record of the file contains this day')
  }

  #count(line: TraLine, euro: bigint): void {
    const isDebit = line.code('SENS') === 'D'
    const code = line.code('JOURNAL')
    const known = this.totals.journals.get(code) ?? { ...emptyBalance }
    this.totals.journals.set(code, known)
    for (const totals of [this.totals, known]) {
      totals.movements += 1
      if (isDebit) totals.debit += euro
      else totals.credit += euro
    }
    this.#balance += isDebit ? euro : -euro
    const state = line.code('ETATLETTRAGE')
    this.totals.lettering.set(state, (this.totals.lettering.get(state) ?? 0) + 1)
  }

  #endEntry(): void {
    if (this.#first !== undefined && this.#balance !== 0n) {
      const [debit, less] = this.#balance > 0n ? ['debits', 'credits'] : ['credits', 'debits']
      const by = inUnits(this.#balance < 0n ? -this.#balance : this.#balance, ',')
      this.#first.refuse(this.#sums, 'NUMEROPIECE', `the ${debit} of this entry exceed its ${less} by ${by}`)
    }
  }

  #addShare(line: TraLine): void {
    this.totals.shares += 1
    const divided = this.#divided
    const section = line.code('AUXILIAIRE OU SECTION')
    const rank = line.code('AXE')
    if (!this.#parameters.isDefined('SAT', sectionCode(rank, section)))
      this.#refuse(line, 'AUXILIAIRE OU SECTION', `no SAT record of the file defines it on axis ${rank}`)
    if (divided === undefined) {
      this.#refuse(line, 'TYPE CPTE', 'an analytic line must follow the line that it divides')
      return
    }
    this.#compare(line, divided, ofMovement, 'the line that it divides')
    this.#shares.set(rank, (this.#shares.get(rank) ?? 0n) + amountIn(line, 'MONTANT1'))
  }

  #endMovement(): void {
    if (this.#divided === undefined) return
    for (const [rank, shares] of this.#shares) {
      if (shares === amountIn(this.#divided, 'MONTANT1')) continue
      const message = `its shares on axis ${rank} add up to ${inUnits(shares, ',')}`
      this.#divided.refuse(this.#sums, 'MONTANT1', message)
    }
    this.#shares.clear()
    this.#divided = undefined
  }

  #refuse(line: TraLine, field: string, message: string): void {
    line.refuse(this.#problems, field, message)
  }

  #compare(line: TraLine, other: TraLine, fields: readonly string[], name: string): void {
    for (const each of fields)
      if (line.columns(each) !== other.columns(each))
        this.#refuse(line, each, `${name} has "${other.text(each)}"`)
  }

  #checkCitations(line: TraLine): void {
    const parameters = this.#parameters
    const cite = (record: string, cited: string) => {
      const code = line.code(cited)
      if (code !== '' && !parameters.isDefined(record, code))
        this.#refuse(line, cited, `no ${record} record of the file defines it`)
    }
    cite('JAL', 'JOURNAL')
    cite('CGN', 'GENERAL')
    cite('MDP', 'MODEPAIE')
    cite('DEV', 'DEVISE')
    cite('ETB', 'ETABLISSEMENT')
    const thirdParty = line.code('AUXILIAIRE OU SECTION')
    if (line.code('TYPE CPTE') !== 'X') {
      if (thirdParty !== '')
        this.#refuse(line, 'AUXILIAIRE OU SECTION', 'only lines of TYPE CPTE X have a third party')
      if (parameters.collectiveOf('CGN', line.code('GENERAL')) === 'X')
        this.#refuse(line, 'TYPE CPTE', 'a collective account has only lines of TYPE CPTE X')
      return
    }
    if (thirdParty === '')
      this.#refuse(line, 'AUXILIAIRE OU SECTION', 'a line of TYPE CPTE X must name a third party')
    cite('CAE', 'AUXILIAIRE OU SECTION')
    const collective = parameters.collectiveOf('CAE', thirdParty)
    if (collective !== undefined && collective !== line.code('GENERAL')) {
      const message = `the CAE record of ${thirdParty} has the collective account ${collective}`
      this.#refuse(line, 'GENERAL', message)
    }
  }

  #checkLettering(line: TraLine): void {
    const code = line.code('LETTRAGE')
    const state = line.code('ETATLETTRAGE')
    const refuse = (message: string) => this.#refuse(line, 'LETTRAGE', message)
    if (state === 'AL' || state === 'RI') {
      if (code !== '') refuse(`ETATLETTRAGE ${state} takes no code`)
    } else if (code === '' || code.length > 4) refuse('a code of at most four characters is expected')
    else if (state === 'TL' && code !== code.toUpperCase())
      refuse('the code of a complete lettering must be in upper case')
    else if (state === 'PL' && code !== code.toLowerCase())
      refuse('the code of a partial lettering must be in lower case')
  }

  #checkValidation(line: TraLine): void {
    const refuseUnless = (field: string, what: string) =>
      this.#refuse(line, field, `${what}, and not allowed otherwise`)
    const hasDay = line.columns('VALIDDATE') !== noDay && !line.isBlank('VALIDDATE')
    if (hasDay !== (line.code('VALIDE') === 'X'))
      refuseUnless('VALIDDATE', 'a day of validation is required with VALIDE X')
    const hasEuro = line.columns('CODEMONTANT').startsWith('DE')
    if (hasEuro === line.isBlank('MONTANT2'))
      refuseUnless('MONTANT2', 'an amount in euro is required with CODEMONTANT DE-')
  }
}

/** An amount in minor units. A malformed amount counts as 0: the check of the form reports it. */
function amountIn(line: TraLine, field: string): bigint {
  const text = line.code(field)
  return /^-?\d+,\d\d$/.test(text) ? BigInt(text.replace(',', '')) : 0n
}
