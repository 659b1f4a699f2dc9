/** What the parameter records of a TRA file define, in memory: its folder, accounts, journals, exercices, sections. */

import type { Address } from '../../formats/items/accounts/address.ts'
import type { BankRow } from '../../formats/items/bank.ts'
import type { JournalRow } from '../../formats/items/journal.ts'
import { unitsMax } from '../../formats/minor-units.ts'
import { accountNumber, partyKind } from '../../formats/party-kind.ts'
import { paymentModes } from '../../formats/payment.ts'
import type { Period } from '../../formats/rows.ts'
import { journalTypeOf } from '../../formats/tra/accounts/nature.ts'
import { isoDay } from '../../formats/tra/check/entry-check.ts'
import { isDay } from '../../formats/tra/check/line-form.ts'
import type { TraLine } from '../../formats/tra/check/parse.ts'
import type { TraProblems } from '../../formats/tra/check/problem.ts'
import { noDay } from '../../formats/tra/layouts/fixed-width.ts'
import { fieldOf, layouts, type TraField, type TraRecord } from '../../formats/tra/layouts/layouts.ts'
import { streetParts } from './street-parts.ts'
import { UnreadFields } from './unread-fields.ts'

export interface TraFolderOf {
  name: string
  siret: string | null
  /** Minor units. */
  capital: bigint
  address: Address
  phoneNumber: string | null
  mail: string | null
  rcsName: string
}

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

type TraJournal = Pick<JournalRow, 'code' | 'name' | 'type' | 'locked'> & { account: string | null }
type TraBank = Pick<BankRow, 'rib' | 'iban' | 'bic' | 'isDefault'> & { account: string | null }

interface TraExercice extends Period {
  lettering: 'MONO' | 'MULTI'
  /** Day. */
  closedOn: string | null
}

/** Internal codes of modes of payment by those that files show. */
const internalCodes = new Map(Object.entries(paymentModes).map(([internal, { code }]) => [code, internal]))

export class TraParameters {
  readonly unread = new UnreadFields()
  firmName = ''
  folder: TraFolderOf | undefined
  readonly exercices: TraExercice[] = []
  /** Internal codes by the codes of the file. */
  readonly payments = new Map<string, string>()
  /** Codes of payments by those of conditions. */
  readonly conditions = new Map<string, string>()
  /** Hundredths of a percent, by code. */
  readonly vatRates = new Map<string, number>()
  /** By the rank of their axis, from 1; in the order of the file. */
  readonly sections = new Map<number, { code: string; name: string }[]>()
  /** Codes by the rank of their axis. */
  readonly defaultSections = new Map<number, string>()
  /** The highest rank that anything in the file names. */
  axes = 0
  readonly correspondences = new Map<string, string>()
  readonly general = new Map<string, TraGeneralAccount>()
  readonly thirdParties = new Map<string, TraThirdParty>()
  readonly journals = new Map<string, TraJournal>()
  /** Of the folder. */
  readonly banks: TraBank[] = []
  readonly #problems: TraProblems
  #hasEstablishment = false
  readonly #readers: Partial<Record<TraRecord, (line: TraLine) => void>> = {
    HEADER: (line) => this.#addHeader(line),
    PS1: (line) => this.#addFolder(line),
    PS2: (line) => this.#addDefaultSections(line),
    PS5: (line) => this.#addSettings(line),
    EXO: (line) => this.#addExercice(line),
    ETB: (line) => this.#addEstablishment(line),
    MDP: (line) => this.#addPayment(line),
    MDR: (line) => this.conditions.set(keyOf(line, 'CODE'), codeOf(line, 'MP1')),
    TVA: (line) => this.#addVat(line),
    SAT: (line) => this.#addSection(line),
    CRR: (line) => this.#addCorrespondence(line),
    CGN: (line) => this.#addGeneralAccount(line),
    CAE: (line) => this.#addThirdParty(line),
    JAL: (line) => this.#addJournal(line),
    RIB: (line) => this.#addBank(line),
  }

  /** @param problems receives values that the ledger cannot hold */
  constructor(problems: TraProblems) {
    this.#problems = problems
  }

  /** Takes a parameter that is not bare. */
  add(line: TraLine): void {
    this.#readers[line.layout.record as TraRecord]?.(line)
    this.unread.addLine(line)
  }

  #addHeader(line: TraLine): void {
    this.firmName = contentOf(line, 'RAISON SOCIALE')
    const type = codeOf(line, 'TYPE FICHIER')
    if (type !== 'DOS' && type !== 'JRL')
      this.#refuse(line, 'TYPE FICHIER', 'DOS or JRL is expected: a file of entries')
  }

  #addFolder(line: TraLine): void {
    const siret = textOf(line, 'SIRET')
    if (siret !== null && !isSiren(siret))
      this.#refuse(line, 'SIRET', 'a SIREN of 9 or a SIRET of 14 digits is expected')
    const capital = this.#amountOf(line, 'CAPITAL') ?? 0n
    this.folder = {
      name: contentOf(line, 'NOM'),
      siret,
      capital,
      address: addressOf(line, 'ADRESSE1', 'ADRESSE2', 'CODEPOSTAL'),
      phoneNumber: textOf(line, 'TELEPHONE'),
      mail: textOf(line, 'EMAIL'),
      rcsName: contentOf(line, 'RCS'),
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
    const whole = contentOf(line, 'ADRESSE1')
    const parts = streetParts(whole, address.streetName ?? '', fieldOf(layouts.ETB, 'ADRESSE1').length)
    if (parts === undefined) this.unread.add(layouts.ETB, 'ADRESSE1')
    else Object.assign(address, parts)
  }

  #addDefaultSections(line: TraLine): void {
    for (const rank of [1, 2, 3, 4, 5]) {
      const code = keyOf(line, `SECT${rank}ATTEND`)
      if (code !== '') this.defaultSections.set(rank, code)
    }
  }

  #addSettings(line: TraLine): void {
    if (codeOf(line, 'DEVISE') !== 'EUR')
      this.#refuse(line, 'DEVISE', 'EUR is expected: books in another currency cannot be imported')
    if (codeOf(line, 'GEREANA') === 'X') this.axes = Math.max(this.axes, 1)
  }

  #addExercice(line: TraLine): void {
    const state = codeOf(line, 'ETATCPTA')
    const day = (name: string) => dayOf(line, fieldOf(layouts.EXO, name))
    const [start, end] = [day('DATEDEBUT') ?? '', day('DATEFIN') ?? '']
    // Not a day by the descriptor, so the check of the form does not read it.
    const createdOn = codeOf(line, 'DATECREATION')
    if (createdOn !== '' && !isDay(createdOn))
      this.#refuse(line, 'DATECREATION', 'a day written DDMMYYYY is expected')
    const closedOn = state === 'CDE' ? (day('DATECREATION') ?? end) : null
    if (state !== 'OUV' && state !== 'CDE') this.unread.add(layouts.EXO, 'ETATCPTA')
    if (end <= start) this.#refuse(line, 'DATEFIN', `a day after ${start} is expected`)
    const other = this.exercices.find((each) => each.start <= end && start <= each.end)
    if (other !== undefined)
      this.#refuse(line, 'DATEDEBUT', `the exercice overlaps that of ${other.start} to ${other.end}`)
    this.exercices.push({
      start,
      end,
      lettering: codeOf(line, 'ETATANO') === 'H' ? 'MONO' : 'MULTI',
      closedOn,
    })
  }

  #addPayment(line: TraLine): void {
    const code = codeOf(line, 'CODE')
    const internal = internalCodes.get(code)
    // Shown as a cheque.
    if (internal === undefined) this.unread.add(layouts.MDP, 'CODE')
    this.payments.set(code, internal ?? code)
  }

  #addVat(line: TraLine): void {
    const [rate, other] = [this.#amountOf(line, 'TAUXVENTE') ?? 0n, this.#amountOf(line, 'TAUXACHAT')]
    if (other !== undefined && other !== rate) this.unread.add(layouts.TVA, 'TAUXACHAT')
    if (rate < 0n || rate > 10_000n) this.#refuse(line, 'TAUXVENTE', 'a rate from 0 to 100 is expected')
    this.vatRates.set(contentOf(line, 'CODE'), Number(rate))
  }

  #addSection(line: TraLine): void {
    const rank = Number(codeOf(line, 'AXE').slice(1))
    this.axes = Math.max(this.axes, rank)
    const known = this.sections.get(rank) ?? []
    this.sections.set(rank, known)
    known.push({ code: contentOf(line, 'CODE'), name: contentOf(line, 'LIBELLE') })
  }

  /** Those of third parties and sections are no accounts. */
  #addCorrespondence(line: TraLine): void {
    if (codeOf(line, 'TYPE').startsWith('GE'))
      this.correspondences.set(this.#accountNumberOf(line), contentOf(line, 'LIBELLE'))
    else this.unread.add(layouts.CRR, 'TYPE')
  }

  #addGeneralAccount(line: TraLine): void {
    const number = this.#accountNumberOf(line)
    for (const rank of [1, 2, 3, 4, 5])
      if (codeOf(line, `VENTILABLE AXE ${rank}`) === 'X') this.axes = Math.max(this.axes, rank)
    this.general.set(number, {
      number,
      name: contentOf(line, 'LIBELLE'),
      closed: codeOf(line, 'FERME') === 'X',
      isCollective: codeOf(line, 'COLLECTIF') === 'X',
      correspondence: keyOf(line, 'CORRESP1') || null,
    })
  }

  #addThirdParty(line: TraLine): void {
    const code = keyOf(line, 'CODE')
    const siret = textOf(line, 'SIRET')
    if (siret !== null && !isSiren(siret)) this.unread.add(layouts.CAE, 'SIRET')
    const address = addressOf(line, 'ADRESSE 1', 'ADRESSE 2', 'CODE POSTAL')
    this.thirdParties.set(code, {
      code,
      name: contentOf(line, 'LIBELLE'),
      collective: keyOf(line, 'COLLECTIF'),
      address: Object.values(address).every((part) => part === null) ? null : address,
      phoneNumber: textOf(line, 'TELEPHONE'),
      firstName: textOf(line, 'PRENOM'),
      condition: keyOf(line, 'MODE REGLEMENT') || null,
      siret: siret !== null && isSiren(siret) ? siret : null,
      ape: textOf(line, 'APE'),
      ibans: [],
    })
  }

  #addJournal(line: TraLine): void {
    const nature = codeOf(line, 'NATURE')
    const type = journalTypeOf(nature)
    if (type === undefined) this.unread.add(layouts.JAL, 'NATURE')
    const isReversed = codeOf(line, 'AEXTOURNER') === 'X'
    if (isReversed && type !== 'OD') this.unread.add(layouts.JAL, 'AEXTOURNER')
    const code = keyOf(line, 'CODE')
    this.journals.set(code, {
      code,
      name: contentOf(line, 'LIBELLE'),
      type: isReversed && type === 'OD' ? 'A_EXT' : (type ?? 'OD'),
      account: keyOf(line, 'COMPTE') || null,
      locked: codeOf(line, 'FERME') === 'X',
    })
  }

  #addBank(line: TraLine): void {
    const parts = ['ETABBQ_31', 'GUICHET', 'NUMEROCOMPTE_41', 'CLERIB'].map((name) => codeOf(line, name))
    const rib = parts.join('')
    const [iban, bic] = [contentOf(line, 'CODEIBAN'), contentOf(line, 'CODEBIC')]
    const account = keyOf(line, 'AUXILIAIRE') || null
    const owner = this.thirdParties.get(account ?? '')
    if (rib !== '' && (rib.length !== 23 || owner)) this.unread.add(layouts.RIB, 'NUMEROCOMPTE_41')
    if (owner === undefined) {
      const isDefault = codeOf(line, 'PRINCIPAL') === 'X'
      this.banks.push({ account, rib: rib.length === 23 ? rib : null, iban, bic, isDefault })
      return
    }
    // A third party has nothing but IBANs, and only as a company or an employee.
    if (bic !== '') this.unread.add(layouts.RIB, 'CODEBIC')
    if (iban !== '' && partyKind(owner.collective) !== undefined) owner.ibans.push(iban)
    else if (iban !== '') this.unread.add(layouts.RIB, 'CODEIBAN')
  }

  /** Numbers of accounts consist of digits and capitals. */
  #accountNumberOf(line: TraLine): string {
    const number = keyOf(line, 'CODE')
    if (accountNumber(number) === '') this.#refuse(line, 'CODE', 'a code with a digit or letter is expected')
    return number
  }

  /** Hundredths; undefined if the field is blank, or no number, which the check of the form reports. */
  #amountOf(line: TraLine, name: string): bigint | undefined {
    const number = codeOf(line, name)
    const [, whole, fraction = ''] = /^(-?\d+)(?:,(\d+))?$/.exec(number) ?? []
    if (whole === undefined) return undefined
    const found = BigInt(whole + fraction.slice(0, 2).padEnd(2, '0'))
    if (/[1-9]/.test(fraction.slice(2)) || found > unitsMax || found < -unitsMax)
      this.#refuse(line, name, 'at most two decimals and 92233720368547758,07 are expected')
    return found
  }

  #refuse(line: TraLine, field: string, message: string): void {
    line.refuse(this.#problems, fieldOf(line.layout, field), message)
  }
}

function isSiren(text: string): boolean {
  return /^(?:\d{9}|\d{14})$/.test(text)
}

function codeOf(line: TraLine, name: string): string {
  return line.code(fieldOf(line.layout, name))
}

/** The decoded code without blanks around it: a citation may be aligned otherwise than the definition. */
function keyOf(line: TraLine, name: string): string {
  return line.text(fieldOf(line.layout, name))
}

function contentOf(line: TraLine, name: string): string {
  return line.value(fieldOf(line.layout, name))
}

function textOf(line: TraLine, name: string): string | null {
  return contentOf(line, name) || null
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
export function dayOf(line: TraLine, field: TraField): string | null {
  const columns = line.code(field)
  return columns === '' || columns === noDay ? null : isoDay(columns)
}
