/**
 * Renders records of accounts, journals, banks and sections (docs/spec/tra.md#parameters): one row to one line of
 * bytes.
 */

import { strict as assert } from 'node:assert'
import type { Buffer } from 'node:buffer'
import type { AccountView } from '../../items/accounts/account.ts'
import type { BankView } from '../../items/bank.ts'
import type { JournalView } from '../../items/journal.ts'
import type { SimplifiedAccount } from '../../items/values.ts'
import { partyKind } from '../../party-kind.ts'
import { paymentMode } from '../../payment.ts'
import { countryCode } from '../country-code.ts'
import { axesMax, street } from '../folder-records.ts'
import { LineWriter } from '../layouts/fixed-width.ts'
import { layouts } from '../layouts/layouts.ts'
import { accountNature, type CollectiveAccount, journalNature, partyNatures } from './nature.ts'
import type { ThirdParty } from './third-parties.ts'

/**
 * @param code from `shortCodes`
 * @param axisRank from 1, in the order of axis ids
 */
export function satLine(code: string, name: string, axisRank: number): Buffer {
  return new LineWriter(layouts.SAT)
    .key('CODE', code)
    .name('LIBELLE', name, code)
    .text('AXE', `A${axisRank}`)
    .line()
}

export function crrLine({ number, name }: SimplifiedAccount): Buffer {
  return new LineWriter(layouts.CRR)
    .key('CODE', number)
    .name('LIBELLE', name, number)
    .text('TYPE', 'GE1')
    .line()
}

/** @param axes number of axes of the folder; only the first `axesMax` count */
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

/** The record of a collective account that the folder does not have. */
export function createdCgnLine({ number, name }: CollectiveAccount): Buffer {
  const none = { counterpartAccount: null, correspondanceAccount: null, company: null, employee: null }
  return cgnLine({ id: '', number, name, closed: false, ...none }, true, 0)
}

/** @param account with one of the roots of third parties */
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
    .flag('LETTRABLE', true)
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

/** @param code from `shortCodes` */
export function jalLine({ name, type, counterpartAccount, locked }: JournalView, code: string): Buffer {
  const nature = journalNature(type)
  const treasury = nature === 'BQE' || nature === 'CAI' ? counterpartAccount : null
  return new LineWriter(layouts.JAL)
    .key('CODE', code)
    .name('LIBELLE', name, code)
    .text('NATURE', nature)
    .key('COMPTE', treasury?.number)
    .text('MODESAISIE', '-')
    .text('FERME', locked ? 'X' : null)
    .text('AEXTOURNER', type === 'A_EXT' ? 'X' : null)
    .line()
}

/**
 * A RIB of 23 characters is bank (5), branch (5), account (11) and key (2), with or without blanks between them. Bank
 * and account are written twice: in their old columns, and in those of files since version 8 (p. 51).
 * @param rank from 1
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
