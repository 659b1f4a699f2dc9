/** Renders the parameter records (docs/spec/tra.md#parameters). One row becomes one line of bytes. */
import { strict as assert } from 'node:assert'
import type { Buffer } from 'node:buffer'
import type { FolderView } from '../items/accounting-folder.ts'
import type { AccountView } from '../items/accounts/account.ts'
import type { Address } from '../items/accounts/address.ts'
import { partyKind } from '../items/accounts/parties.ts'
import type { ExerciceView } from '../items/exercice.ts'
import type { BankView, JournalView } from '../items/journal.ts'
import { paymentMode } from '../items/payment.ts'
import type { SimplifiedAccount } from '../items/values.ts'
import { inUnits } from '../minor-units.ts'
import countries from './countries.json' with { type: 'json' }
import { dayText, LineWriter, layouts } from './layouts.ts'
import {
  accountNature,
  type CollectiveAccount,
  type CollectiveAccounts,
  journalNature,
  partyNatures,
  type ThirdParty,
} from './third-parties.ts'

/** Francs in a euro. This rate is fixed for ever. */
const francsPerEuro = '6,55957'

/**
 * @param type DOS for a whole folder, JRL for a part of its entries
 * @param generatedAt `YYYY-MM-DDTHH:MM` in the time zone of the platform
 */
export function headerLine(type: 'DOS' | 'JRL', generatedAt: string, firmName: string): Buffer {
  return new LineWriter(layouts.HEADER)
    .text('TYPE FICHIER', type)
    .date('DATE/HEURE', generatedAt)
    .text('RAISON SOCIALE', firmName)
    .line()
}

/** The folder with its address and its capital (docs/spec/tra.md#ps1). */
export function ps1Line(folder: FolderView): Buffer {
  const { address } = folder
  return new LineWriter(layouts.PS1)
    .text('NOM', folder.name)
    .text('ADRESSE1', address.streetName)
    .text('ADRESSE2', address.complement)
    .text('CODEPOSTAL', address.postalCode)
    .text('VILLE', address.city)
    .text('PAYS', countryCode(address.country))
    .text('TELEPHONE', folder.contactPhoneNumber)
    .text('EMAIL', folder.contactMail)
    .text('SIRET', folder.siret)
    .text('RCS', folder.rcsName)
    .amount('CAPITAL', BigInt(folder.capital))
    .line()
}

/**
 * @param general length of the longest number of a general account; 0 if there is none. `thirdParty` is the same for
 *   third-party accounts
 * @param axes for each of the first five axes, in the order of their ids: the length of the longest code of a section;
 *   0 without sections
 * @param suspenseAccount number of a 471 account
 */
export function ps2Line(
  { general, thirdParty }: Record<'general' | 'thirdParty', number>,
  axes: readonly { codeLength: number; defaultSectionCode: string | null }[],
  suspenseAccount: string | null,
): Buffer {
  const writer = new LineWriter(layouts.PS2)
    .number('LGGEN', between(general, 6, 17))
    .number('LGAUX', between(thirdParty, 6, 17))
    .key('GENATTEND', suspenseAccount)
  for (let rank = 1; rank <= axesMax; rank++) {
    const axis = axes[rank - 1]
    writer
      .number(`LGSEC${rank}`, between(axis?.codeLength ?? 0, 3, 17))
      .key(`SECT${rank}ATTEND`, axis?.defaultSectionCode)
  }
  return writer.line()
}

/** The most axes that a TRA file has columns for. */
export const axesMax = 5

function between(length: number, least: number, most: number): string {
  return String(Math.min(most, Math.max(least, length)))
}

/** @param openingJournalCode the code of the À Nouveaux journal, in three characters */
export function ps3Line(openingJournalCode: string | null, collectives: CollectiveAccounts): Buffer {
  return new LineWriter(layouts.PS3)
    .key('JALOUVRE', openingJournalCode)
    .key('CLIDEFAUT', collectives.get('customer')?.number)
    .key('FOUDEFAUT', collectives.get('supplier')?.number)
    .key('SALDEFAUT', collectives.get('employee')?.number)
    .line()
}

/**
 * Books are kept in euro. The accounts for losses and gains of conversion are the folder's accounts 476 and 477, if it
 * has them. Accounts of classes 6 and 7 are not allowed here, because they are open to analytic breakdown (p. 16). No
 * type of journal is for conversions, so JALECC stays blank.
 */
export function ps5Line(lossAccount: string | null, gainAccount: string | null, hasAxes: boolean): Buffer {
  return new LineWriter(layouts.PS5)
    .key('CPTECCD', lossAccount)
    .key('CPTECCC', gainAccount)
    .text('GEREANA', hasAxes ? 'X' : '-')
    .line()
}

/** @param rank the rank of the exercice, from 1, oldest first */
export function exoLine({ start, end, lettering, closedOn }: ExerciceView, rank: number): Buffer {
  return new LineWriter(layouts.EXO)
    .key('CODE', String(rank).padStart(3, '0'))
    .date('DATEDEBUT', start)
    .date('DATEFIN', end)
    .text('ETATCPTA', closedOn === null ? 'OUV' : 'CDE')
    .text('LIBELLE', `Exercice au ${dayText(end)}`)
    .text('ETATANO', openingState(lettering))
    .text('DATECREATION', closedOn && dayText(closedOn))
    .line()
}

/**
 * How opening balances are given: in detail (H), or as sums by account (OAN). ETATANO of a year and ECRANOUVEAU of its
 * opening entries contain this code.
 */
export function openingState(lettering: string): 'H' | 'OAN' {
  return lettering === 'MONO' ? 'H' : 'OAN'
}

export function etbLine({ name, address }: FolderView): Buffer {
  return new LineWriter(layouts.ETB)
    .text('LIBELLE', name)
    .text('ADRESSE1', street(address))
    .text('ADRESSE2', address.complement)
    .text('CODEPOSTAL', address.postalCode)
    .text('VILLE', address.city)
    .text('PAYS', countryCode(address.country))
    .line()
}

/** The number, index, type and name of a street, as far as they are known. */
function street({ number, locatingIndex, streetType, streetName }: Address): string {
  return [number, locatingIndex, streetType, streetName].filter(Boolean).join(' ')
}

/** @param internalCode code in the database. Several codes may mean one mode, which the file defines only once */
export function mdpLine(internalCode: string): Buffer {
  const { code, name } = paymentMode(internalCode)
  return new LineWriter(layouts.MDP)
    .key('CODE', code, 'right')
    .text('LIBELLE', name)
    .key('CATEGORIE', code, 'right')
    .line()
}

/**
 * Defines a settlement that is paid at once, by one mode of payment. MP1 cites a code of MDP, and is right-aligned like
 * that code.
 */
export function mdrLine(internalCode: string): Buffer {
  const { code, name } = paymentMode(internalCode)
  return new LineWriter(layouts.MDR).key('CODE', code).text('LIBELLE', name).key('MP1', code, 'right').line()
}

/**
 * EUR and FRF, then the other currencies.
 * @param foreign by currency: the euro per unit, as decimal text such as 0.923400
 */
export function devLines(foreign: ReadonlyMap<string, string>): Buffer[] {
  const others = [...foreign].filter(([code]) => code !== 'EUR' && code !== 'FRF').toSorted()
  return [
    devLine('EUR', '1', true),
    devLine('FRF', francsPerEuro, true),
    ...others.map(([code, rate]) => devLine(code, rate, false)),
  ]
}

const currencyNames = new Intl.DisplayNames('fr', { type: 'currency' })

/** @param isEuro whether the currency is the euro or one that the euro replaced */
function devLine(code: string, rate: string, isEuro: boolean): Buffer {
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat('fr', {
    style: 'currency',
    currency: code,
  }).resolvedOptions()
  return new LineWriter(layouts.DEV)
    .key('CODE', code)
    .text('LIBELLE', currencyNames.of(code) ?? code)
    .number('DECIMALE', String(code === 'FRF' ? 2 : maximumFractionDigits))
    .flag('MONNAIEIN', isEuro)
    .number('PARITEEURO', rate.replace('.', ','))
    .text('CODEISO', code)
    .flag('FONGIBLE', isEuro)
    .line()
}

/**
 * @param code the code in three characters
 * @param rate the rate in hundredths of a percent
 */
export function tvaLine(code: string, rate: number): Buffer {
  const percent = inUnits(BigInt(rate), ',')
  return new LineWriter(layouts.TVA)
    .key('CODE', code)
    .text('LIBELLE', `TVA ${percent} %`)
    .number('TAUXACHAT', percent)
    .number('TAUXVENTE', percent)
    .line()
}

/**
 * @param code the code that `shortCodes` gave
 * @param axisRank the rank of the axis, from 1, in the order of ids
 */
export function satLine(code: string, name: string, axisRank: number): Buffer {
  return new LineWriter(layouts.SAT)
    .key('CODE', code)
    .name('LIBELLE', name, code)
    .text('AXE', `A${axisRank}`)
    .line()
}

export function crrLine({ number, name }: SimplifiedAccount): Buffer {
  return new LineWriter(layouts.CRR).key('CODE', number).name('LIBELLE', name, number).line()
}

/** @param axes the number of axes of the folder; only the first `axesMax` count */
export function cgnLine(account: AccountView, isCollective: boolean, axes: number): Buffer {
  const { number, name, closed, correspondanceAccount } = account
  const nature = accountNature(number, isCollective)
  const writer = new LineWriter(layouts.CGN)
    .key('CODE', number)
    .name('LIBELLE', name, number)
    .text('NATURE', nature)
    .flag('LETTRABLE', nature === 'TIC' || nature === 'TID')
    .key('CORRESP1', correspondanceAccount?.number)
    .text('FERME', closed ? 'X' : null)
    .text('COLLECTIF', isCollective ? 'X' : null)
  if (/^[67]/.test(number))
    for (let rank = 1; rank <= Math.min(axes, axesMax); rank++) writer.flag(`VENTILABLE AXE ${rank}`, true)
  return writer.line()
}

/** Renders the record of a collective account that the folder does not have. */
export function createdCgnLine({ number, name }: CollectiveAccount): Buffer {
  const none = { counterpartAccount: null, correspondanceAccount: null, company: null, employee: null }
  return cgnLine({ id: '', number, name, closed: false, ...none }, true, 0)
}

/** @param account an account of a supplier, customer or employee, by its root */
export function caeLine(account: AccountView, { code, collective }: ThirdParty): Buffer {
  const { number, name } = account
  const kind = partyKind(number)
  assert(kind !== undefined, `the account ${number} is no third party`)
  const [company, employee] = kind === 'employee' ? [null, account.employee] : [account.company, null]
  const [contact] = company?.contacts ?? []
  const { address = null, payment = null } = company ?? employee ?? {}
  return new LineWriter(layouts.CAE)
    .key('CODE', code)
    .name('LIBELLE', name, code)
    .text('NATURE', partyNatures[kind].nature)
    .key('COLLECTIF', collective)
    .text('ADRESSE 1', address && street(address))
    .text('ADRESSE 2', address?.complement)
    .text('CODE POSTAL', address?.postalCode)
    .text('VILLE', address?.city)
    .text('PAYS', address && countryCode(address.country))
    .text('TELEPHONE', employee ? employee.phoneNumber : contact?.phoneNumber)
    .key('MODE REGLEMENT', payment && paymentMode(payment.code).code)
    .text('SIRET', company?.siren)
    .text('APE', company?.apeCode)
    .text('PRENOM', employee ? employee.firstName : contact?.firstname)
    .line()
}

/** @param code the code that `shortCodes` gave */
export function jalLine({ name, type, counterpartAccount, locked }: JournalView, code: string): Buffer {
  const nature = journalNature(type)
  const treasury = nature === 'BQE' || nature === 'CAI' ? counterpartAccount : null
  return new LineWriter(layouts.JAL)
    .key('CODE', code)
    .name('LIBELLE', name, code)
    .text('NATURE', nature)
    .key('COMPTE', treasury?.number)
    .text('FERME', locked ? 'X' : null)
    .text('AEXTOURNER', type === 'A_EXT' ? 'X' : null)
    .line()
}

/**
 * A RIB of 23 characters consists of bank (5), branch (5), account (11) and key (2), with or without blanks between
 * them. Bank and account are written twice: to their old columns, and to the columns that files have since version 8
 * (p. 51).
 * @param rank the rank of the bank account, from 1
 */
export function ribLine({ rib, iban, bic, account, isDefault }: BankView, rank: number): Buffer {
  const digits = (rib ?? '').replace(/[^0-9A-Za-z]/g, '')
  const part = (from: number, to: number) => (digits.length === 23 ? digits.slice(from, to) : null)
  return new LineWriter(layouts.RIB)
    .key('AUXILIAIRE', account?.number)
    .number('NUMERORIB', String(rank))
    .flag('PRINCIPAL', isDefault)
    .text('ETABBQ_31', part(0, 5))
    .text('GUICHET', part(5, 10))
    .text('NUMEROCOMPTE_41', part(10, 21))
    .text('CLERIB', part(21, 23))
    .text('CODEBIC', bic)
    .text('CODEIBAN', iban)
    .text('ETABBQ_234', part(0, 5))
    .text('NUMEROCOMPTE_242', part(10, 21))
    .line()
}

/**
 * Country codes of TRA files, which are those of ISO 3166 alpha-3 (docs/spec/tra.md#ps1). `countries.json` has the two
 * and three letters of every country.
 */

/**
 * The three letters of a country by its code, and by its name in French and English: folders and third parties use any
 * of these.
 */
const codes = new Map<string, string>()
for (const language of ['en', 'fr']) {
  const names = new Intl.DisplayNames(language, { type: 'region' })
  for (const [two, three] of Object.entries(countries)) codes.set(lettersOf(names.of(two) ?? two), three)
}
for (const [two, three] of Object.entries(countries)) codes.set(two, three).set(three, three)

/**
 * The three letters of a country; letter case, accents, blanks and hyphens are ignored. For a country unknown to ISO,
 * the first three letters of its name.
 */
export function countryCode(country: string | null): string {
  const letters = lettersOf(country ?? '')
  return codes.get(letters) ?? letters.slice(0, 3)
}

function lettersOf(name: string): string {
  return name
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
}
