/**
 * What the parameter records of a TRA file define: its folder, and rows for its payments, VAT codes, journals, banks,
 * sections and exercices, whose ids are the codes of the file. accounts.ts has its accounts.
 */

import type { FolderContent } from '../../formats/items/accounting-folder.ts'
import type { Address } from '../../formats/items/accounts/address.ts'
import { closedAtNoon } from '../../formats/items/exercice.ts'
import { unitsMax } from '../../formats/minor-units.ts'
import { accountNumber, partyKind } from '../../formats/party-kind.ts'
import { paymentModes } from '../../formats/payment.ts'
import { journalTypeOf } from '../../formats/tra/accounts/nature.ts'
import { isoDay } from '../../formats/tra/check/entry-check.ts'
import { isDay } from '../../formats/tra/check/line-form.ts'
import type { TraLine } from '../../formats/tra/check/parse.ts'
import type { TraProblems } from '../../formats/tra/check/problem.ts'
import { noDay } from '../../formats/tra/layouts/fixed-width.ts'
import { fieldOf, layouts, type TraField, type TraRecord } from '../../formats/tra/layouts/layouts.ts'
import type { Books } from '../import/books.ts'
import { streetParts } from './street-parts.ts'
import { UnreadFields } from './unread-fields.ts'

export interface TraGeneralAccount {
  number: string
  name: string
  closed: boolean
  isCollective: boolean
  correspondence: string | null
}

export interface TraThirdParty {
  code: string
  name: string
  collective: string
  address: Address | null
  phoneNumber: string | null
  firstName: string | null
  /** Code of a payment condition (MDR). */
  condition: string | null
  siret: string | null
  ape: string | null
  ibans: string[]
}

type WithAccount<Row> = Row & { account: string | null }

/** Internal codes of modes of payment by those that files show. */
const internalCodes = new Map(Object.entries(paymentModes).map(([internal, { code }]) => [code, internal]))

const ranks = [1, 2, 3, 4, 5]

/** The id of a section. @param axis such as `A1` @param code blanks around it do not count */
export const sectionKey = (axis: string, code: string) => `${axis} ${code.trim()}`

export class TraParameters {
  readonly unread = new UnreadFields()
  firmName = ''
  folder: (FolderContent & { address: Address }) | undefined
  readonly exercices: Books['exercices'] = []
  readonly payments: Books['payments'] = []
  /** Codes of payments by those of conditions. */
  readonly conditions = new Map<string, string>()
  readonly vatCodes: Books['vat_codes'] = []
  readonly sections: Books['sections'] = []
  /** Codes by the rank of their axis. */
  readonly defaultSections = new Map<number, string>()
  /** The highest rank that anything in the file names. */
  axes = 0
  /** Names by number. */
  readonly correspondences = new Map<string, string>()
  /** By their numbers, and by their codes. */
  readonly general = new Map<string, TraGeneralAccount>()
  readonly thirdParties = new Map<string, TraThirdParty>()
  readonly journals: WithAccount<Books['journals'][number]>[] = []
  /** Of the folder. */
  readonly banks: WithAccount<Omit<Books['banks'][number], 'journalId'>>[] = []
  readonly #problems: TraProblems
  readonly #timeZone: string
  #hasEstablishment = false
  readonly #readers: Partial<Record<TraRecord, (line: TraLine) => void>> = {
    HEADER: (line) => this.#addHeader(line),
    PS1: (line) => this.#addFolder(line),
    PS2: (line) => this.#addDefaultSections(line),
    PS5: (line) => this.#addSettings(line),
    EXO: (line) => this.#addExercice(line),
    ETB: (line) => this.#addEstablishment(line),
    MDP: (line) => this.#addPayment(line),
    MDR: (line) => this.conditions.set(line.text('CODE'), line.code('MP1')),
    TVA: (line) => this.#addVat(line),
    SAT: (line) => this.#addSection(line),
    CRR: (line) => this.#addCorrespondence(line),
    CGN: (line) => this.#addGeneralAccount(line),
    CAE: (line) => this.#addThirdParty(line),
    JAL: (line) => this.#addJournal(line),
    RIB: (line) => this.#addBank(line),
  }

  /** @param problems receives values that the ledger cannot hold @param timeZone in which exercices were closed */
  constructor(problems: TraProblems, timeZone: string) {
    this.#problems = problems
    this.#timeZone = timeZone
  }

  /** Takes a parameter that is not bare. */
  add(line: TraLine): void {
    this.#readers[line.layout.record as TraRecord]?.(line)
    this.unread.addLine(line)
  }

  #addHeader(line: TraLine): void {
    this.firmName = line.value('RAISON SOCIALE')
    const type = line.code('TYPE FICHIER')
    if (type !== 'DOS' && type !== 'JRL')
      this.#refuse(line, 'TYPE FICHIER', 'DOS or JRL is expected: a file of entries')
  }

  #addFolder(line: TraLine): void {
    const siret = textOf(line, 'SIRET')
    if (siret !== null && !isSiren(siret))
      this.#refuse(line, 'SIRET', 'a SIREN of 9 or a SIRET of 14 digits is expected')
    this.folder = {
      name: line.value('NOM'),
      siret,
      capital: this.#amountOf(line, 'CAPITAL') ?? 0n,
      address: addressOf(line, 'ADRESSE1', 'ADRESSE2', 'CODEPOSTAL'),
      contactPhoneNumber: textOf(line, 'TELEPHONE'),
      contactMail: textOf(line, 'EMAIL'),
      rcsName: line.value('RCS'),
    }
  }

  /** The establishment has the whole street, PS1 its name alone. A folder has one establishment. */
  #addEstablishment(line: TraLine): void {
    if (this.folder === undefined || this.#hasEstablishment) {
      this.unread.add(layouts.ETB, 'CODE')
      return
    }
    this.#hasEstablishment = true
    const { address } = this.folder
    const street = line.value('ADRESSE1')
    const found = streetParts(street, address.streetName ?? '', fieldOf(layouts.ETB, 'ADRESSE1').length)
    if (found === undefined) this.unread.add(layouts.ETB, 'ADRESSE1')
    else Object.assign(address, found)
  }

  #addDefaultSections(line: TraLine): void {
    for (const rank of ranks) {
      const code = line.text(`SECT${rank}ATTEND`)
      if (code !== '') this.defaultSections.set(rank, code)
    }
  }

  #addSettings(line: TraLine): void {
    if (line.code('DEVISE') !== 'EUR')
      this.#refuse(line, 'DEVISE', 'EUR is expected: books in another currency cannot be imported')
    if (line.code('GEREANA') === 'X') this.axes = Math.max(this.axes, 1)
  }

  #addExercice(line: TraLine): void {
    const state = line.code('ETATCPTA')
    const [start, end] = [dayOf(line, 'DATEDEBUT') ?? '', dayOf(line, 'DATEFIN') ?? '']
    // Not a day by the descriptor, so the check of the form does not read it.
    const createdOn = line.code('DATECREATION')
    if (createdOn !== '' && !isDay(createdOn))
      this.#refuse(line, 'DATECREATION', 'a day written DDMMYYYY is expected')
    const closedOn = state === 'CDE' ? (dayOf(line, 'DATECREATION') ?? end) : null
    if (state !== 'OUV' && state !== 'CDE') this.unread.add(layouts.EXO, 'ETATCPTA')
    if (end <= start) this.#refuse(line, 'DATEFIN', `a day after ${start} is expected`)
    const other = this.exercices.find((each) => each.startDate <= end && start <= each.endDate)
    if (other !== undefined)
      this.#refuse(line, 'DATEDEBUT', `the exercice overlaps that of ${other.startDate} to ${other.endDate}`)
    this.exercices.push({
      id: start,
      startDate: start,
      endDate: end,
      lettering: line.code('ETATANO') === 'H' ? 'MONO' : 'MULTI',
      closedAt: closedOn && closedAtNoon(closedOn, this.#timeZone),
    })
  }

  #addPayment(line: TraLine): void {
    const code = line.code('CODE')
    const internal = internalCodes.get(code)
    // Shown as a cheque.
    if (internal === undefined) this.unread.add(layouts.MDP, 'CODE')
    this.payments.push({ id: code, code: internal ?? code })
  }

  #addVat(line: TraLine): void {
    const [rate, other] = [this.#amountOf(line, 'TAUXVENTE') ?? 0n, this.#amountOf(line, 'TAUXACHAT')]
    if (other !== undefined && other !== rate) this.unread.add(layouts.TVA, 'TAUXACHAT')
    if (rate < 0n || rate > 10_000n) this.#refuse(line, 'TAUXVENTE', 'a rate from 0 to 100 is expected')
    const code = line.value('CODE')
    this.vatCodes.push({ id: code, code, rate: Number(rate) })
  }

  #addSection(line: TraLine): void {
    const [axisId, code] = [line.code('AXE'), line.value('CODE')]
    this.axes = Math.max(this.axes, Number(axisId.slice(1)))
    const name = line.value('LIBELLE')
    this.sections.push({ id: sectionKey(axisId, code), axisId, code, name, accountRoots: [], closed: false })
  }

  /** Those of third parties and sections are no accounts. */
  #addCorrespondence(line: TraLine): void {
    if (line.code('TYPE').startsWith('GE'))
      this.correspondences.set(this.#accountNumberOf(line), line.value('LIBELLE'))
    else this.unread.add(layouts.CRR, 'TYPE')
  }

  #addGeneralAccount(line: TraLine): void {
    const number = this.#accountNumberOf(line)
    for (const rank of ranks)
      if (line.code(`VENTILABLE AXE ${rank}`) === 'X') this.axes = Math.max(this.axes, rank)
    this.general.set(number, {
      number,
      name: line.value('LIBELLE'),
      closed: line.code('FERME') === 'X',
      isCollective: line.code('COLLECTIF') === 'X',
      correspondence: line.text('CORRESP1') || null,
    })
  }

  #addThirdParty(line: TraLine): void {
    const code = line.text('CODE')
    const siret = textOf(line, 'SIRET')
    if (siret !== null && !isSiren(siret)) this.unread.add(layouts.CAE, 'SIRET')
    const address = addressOf(line, 'ADRESSE 1', 'ADRESSE 2', 'CODE POSTAL')
    this.thirdParties.set(code, {
      code,
      name: line.value('LIBELLE'),
      collective: line.text('COLLECTIF'),
      address: Object.values(address).every((part) => part === null) ? null : address,
      phoneNumber: textOf(line, 'TELEPHONE'),
      firstName: textOf(line, 'PRENOM'),
      condition: line.text('MODE REGLEMENT') || null,
      siret: siret !== null && isSiren(siret) ? siret : null,
      ape: textOf(line, 'APE'),
      ibans: [],
    })
  }

  #addJournal(line: TraLine): void {
    const type = journalTypeOf(line.code('NATURE'))
    if (type === undefined) this.unread.add(layouts.JAL, 'NATURE')
    const isReversed = line.code('AEXTOURNER') === 'X'
    if (isReversed && type !== 'OD') this.unread.add(layouts.JAL, 'AEXTOURNER')
    const code = line.text('CODE')
    this.journals.push({
      id: code,
      code,
      name: line.value('LIBELLE'),
      type: isReversed && type === 'OD' ? 'A_EXT' : (type ?? 'OD'),
      locked: line.code('FERME') === 'X',
      account: line.text('COMPTE') || null,
    })
  }

  #addBank(line: TraLine): void {
    const rib = ['ETABBQ_31', 'GUICHET', 'NUMEROCOMPTE_41', 'CLERIB'].map((name) => line.code(name)).join('')
    const [iban, bic] = [line.value('CODEIBAN'), line.value('CODEBIC')]
    const account = line.text('AUXILIAIRE') || null
    const owner = this.thirdParties.get(account ?? '')
    if (rib !== '' && (rib.length !== 23 || owner)) this.unread.add(layouts.RIB, 'NUMEROCOMPTE_41')
    if (owner === undefined) {
      const isDefault = line.code('PRINCIPAL') === 'X'
      const id = String(this.banks.length)
      this.banks.push({ id, account, rib: rib.length === 23 ? rib : null, iban, bic, isDefault })
      return
    }
    // A third party has nothing but IBANs, and only as a company or an employee.
    if (bic !== '') this.unread.add(layouts.RIB, 'CODEBIC')
    if (iban !== '' && partyKind(owner.collective) !== undefined) owner.ibans.push(iban)
    else if (iban !== '') this.unread.add(layouts.RIB, 'CODEIBAN')
  }

  /** Numbers of accounts consist of digits and capitals. */
  #accountNumberOf(line: TraLine): string {
    const number = line.text('CODE')
    if (accountNumber(number) === '') this.#refuse(line, 'CODE', 'a code with a digit or letter is expected')
    return number
  }

  /** Hundredths; undefined if the field is blank, or no number, which the check of the form reports. */
  #amountOf(line: TraLine, name: string): bigint | undefined {
    const [, whole, fraction = ''] = /^(-?\d+)(?:,(\d+))?$/.exec(line.code(name)) ?? []
    if (whole === undefined) return undefined
    const amount = BigInt(whole + fraction.slice(0, 2).padEnd(2, '0'))
    if (/[1-9]/.test(fraction.slice(2)) || amount > unitsMax || amount < -unitsMax)
      this.#refuse(line, name, 'at most two decimals and 92233720368547758,07 are expected')
    return amount
  }

  #refuse(line: TraLine, field: string, message: string): void {
    line.refuse(this.#problems, field, message)
  }
}

function isSiren(text: string): boolean {
  return /^(?:\d{9}|\d{14})$/.test(text)
}

function textOf(line: TraLine, name: string): string | null {
  return line.value(name) || null
}

/** The names of three fields differ between records. */
function addressOf(line: TraLine, street: string, complement: string, postalCode: string): Address {
  return {
    ...{ number: null, locatingIndex: null, streetType: null },
    streetName: textOf(line, street),
    complement: textOf(line, complement),
    postalCode: textOf(line, postalCode),
    city: textOf(line, 'VILLE'),
    country: textOf(line, 'PAYS'),
  }
}

/** `YYYY-MM-DD`; null if there is none. */
export function dayOf(line: TraLine, field: TraField | string): string | null {
  const columns = line.code(field)
  return columns === '' || columns === noDay ? null : isoDay(columns)
}
