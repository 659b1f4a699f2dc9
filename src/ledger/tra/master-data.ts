/** The master data of a TRA file, as rows whose ids are codes of the file. */

import { accountNumber, partyKind } from '../../formats/items/accounts/parties.ts'
import { paymentModes } from '../../formats/items/payment.ts'
import type { TraLine } from '../../formats/tra/check/parse.ts'
import { journalTypeOf } from '../../formats/tra/third-parties.ts'
import { type FecAccount, isRenumbered, numberAccounts } from '../fec/survey/accounts.ts'
import type { MasterRows } from '../import/master-data.ts'
import { addressOf, axesOf, exercicesOf, isSiren, type ReadParameters } from './parameters.ts'

/** An account of the ledger, with its records in the file. */
interface TraAccount extends FecAccount {
  cgn?: TraLine | undefined
  cae?: TraLine | undefined
}

/** The internal code of each mode of payment, by the code that files show. */
const internalCodes = new Map(Object.entries(paymentModes).map(([internal, { code }]) => [code, internal]))

/** @param timeZone the time zone of the days on which exercices were closed */
export function traMasterData(parameters: ReadParameters, timeZone: string) {
  const { general, thirdParties, order } = accountsOf(parameters)
  const numbered = numberAccounts(order, [])
  const numbers = new Map(numbered.map(({ account, number }) => [account, number]))
  const idOf = (number: string) => general.get(number)?.key ?? null
  const accountOf = new Map<string, string>()
  for (const line of parameters.lines('CAE')) {
    const id = thirdParties.get(line.text('CODE'))?.key ?? idOf(line.text('COLLECTIF'))
    if (id !== null) accountOf.set(line.text('CODE'), id)
    const siret = line.valueOrNull('SIRET')
    if (siret !== null && !isSiren(siret)) parameters.countUnread(line, 'SIRET')
  }
  const payments = paymentsOf(parameters)
  const journals = journalsOf(parameters, idOf)
  const { banks, banksLeftOut, ibans } = banksOf(parameters, journals, idOf)
  const conditions = new Map(parameters.lines('MDR').map((line) => [line.text('CODE'), line.code('MP1')]))
  const paymentOf = (cae: TraLine | undefined) => {
    const payment = conditions.get(cae?.text('MODE REGLEMENT') ?? '')
    return payments.some(({ id }) => id === payment) ? payment : null
  }
  const rows: MasterRows = {
    ...{ payments, vat_codes: vatCodesOf(parameters), accounts: [], companies: [], employees: [] },
    ...{ journals, banks, ...axesOf(parameters), exercices: exercicesOf(parameters, timeZone) },
  }
  for (const account of order) {
    const { key: id, cgn, cae, filedNumber, filedName, auxiliaryNumber, auxiliaryName } = account
    const number = numbers.get(account)!
    const name = auxiliaryName ?? filedName
    const correspondence = cgn?.text('CORRESP1') ?? ''
    rows.accounts.push({
      ...{ id, number, name, closed: cgn?.code('FERME') === 'X' },
      correspondanceAccountId: idOf(correspondence) ?? accountOf.get(correspondence) ?? null,
      ...{ filedNumber, filedName, auxiliaryNumber, auxiliaryName },
    })
    const ofParty = { paymentId: paymentOf(cae), ibans: ibans.get(cae?.text('CODE') ?? '') ?? [] }
    if (partyKind(number) === 'employee') rows.employees.push({ ...employeeOf(id, name, cae), ...ofParty })
    else if (partyKind(number)) rows.companies.push({ ...companyOf(id, name, cae), ...ofParty })
  }
  const renumberedAccounts = numbered.filter(isRenumbered).map(({ account, number }) => ({
    filed: account.auxiliaryNumber ?? account.filedNumber,
    number,
  }))
  return {
    rows,
    /**
     * The ids of accounts by the code of a CAE record. A third party below a root other than 401, 411 and 421 has no
     * account of its own: its lines are booked on its collective account.
     */
    accountOf,
    /** Accounts that could not get the number in the file. */
    renumberedAccounts,
    /** The number of banks that were left out, because the file has no bank journal. */
    banksLeftOut,
  }
}
export type TraMasterData = ReturnType<typeof traMasterData>

/**
 * General accounts by number, third-party accounts by code, and all of them in the order of the file. A collective
 * account of suppliers, customers or employees is left out if only its third parties name it, because exports define
 * such accounts even if the folder has none. A third party with the code of its collective account is that account.
 */
function accountsOf(parameters: ReadParameters) {
  const numberOf = (line: TraLine) => {
    const number = line.text('CODE')
    if (accountNumber(number) === '')
      parameters.refuse(line, 'CODE', 'a code with a digit or letter is expected')
    return number
  }
  const generalLines = new Map(parameters.lines('CGN').map((line) => [numberOf(line), line]))
  const partyLines = new Map(parameters.lines('CAE').map((line) => [line.text('CODE'), line]))
  /**
   * The names of correspondence accounts, by number. Correspondences of third parties and sections are not accounts.
   */
  const correspondences = new Map<string, string>()
  for (const line of parameters.lines('CRR'))
    if (line.code('TYPE').startsWith('GE')) correspondences.set(numberOf(line), line.value('LIBELLE'))
    else parameters.countUnread(line, 'TYPE')
  const cited = new Set([
    ...parameters.lines('JAL').map((line) => line.text('COMPTE')),
    ...parameters.lines('RIB').map((line) => line.text('AUXILIAIRE')),
    ...correspondences.keys(),
  ])
  const general = new Map<string, TraAccount>()
  const thirdParties = new Map<string, TraAccount>()
  const ownParty = (number: string) => {
    const line = partyLines.get(number)
    return line?.text('COLLECTIF') === number ? line : undefined
  }
  const addGeneral = (number: string, filedName: string, cgn?: TraLine) => {
    const filed = { key: number, filedNumber: number, filedName, auxiliaryNumber: null, auxiliaryName: null }
    const account = { ...filed, cgn, cae: ownParty(number) }
    general.set(number, account)
    if (account.cae !== undefined) thirdParties.set(number, account)
  }
  for (const [number, cgn] of generalLines) {
    const isOnlyCollective = cgn.code('COLLECTIF') === 'X' && partyKind(number) !== undefined
    if (!isOnlyCollective || cited.has(number) || ownParty(number))
      addGeneral(number, cgn.value('LIBELLE'), cgn)
  }
  for (const [number, name] of correspondences)
    if (!generalLines.has(number) && !partyLines.has(number)) addGeneral(number, name)
  for (const [code, cae] of partyLines) {
    const collective = cae.text('COLLECTIF')
    if (code === collective || partyKind(collective) === undefined) continue
    const filedName = generalLines.get(collective)?.value('LIBELLE') ?? ''
    const filed = {
      filedNumber: collective,
      filedName,
      auxiliaryNumber: code,
      auxiliaryName: cae.value('LIBELLE'),
    }
    thirdParties.set(code, { ...filed, key: `${collective}\t${code}`, cae })
  }
  const order = mergedOrder(
    [
      [...correspondences.keys()].map((code) => general.get(code) ?? thirdParties.get(code)),
      [...generalLines.keys()].map((code) => general.get(code)),
      [...partyLines.keys()].map((code) => thirdParties.get(code)),
    ].map((accounts) => accounts.filter((account) => account !== undefined)),
  )
  return { general, thirdParties, order }
}

function companyOf(accountId: string, name: string, cae: TraLine | undefined) {
  const firstname = cae?.valueOrNull('PRENOM') ?? null
  const phoneNumber = cae?.valueOrNull('TELEPHONE') ?? null
  const siren = cae?.value('SIRET') ?? ''
  const contact = { firstname, lastname: null, phoneNumber, role: null, email: null }
  return {
    ...{ accountId, name, siren: isSiren(siren) ? siren : null, apeCode: cae?.valueOrNull('APE') },
    address: addressOfParty(cae),
    contacts: firstname !== null || phoneNumber !== null ? [contact] : [],
  }
}

function employeeOf(accountId: string, lastName: string, cae: TraLine | undefined) {
  const [firstName, phoneNumber] = [cae?.valueOrNull('PRENOM'), cae?.valueOrNull('TELEPHONE')]
  return { accountId, lastName, firstName, phoneNumber, address: addressOfParty(cae), contacts: [] }
}

function addressOfParty(cae: TraLine | undefined) {
  const address = cae && addressOf(cae, 'ADRESSE 1', 'ADRESSE 2', 'CODE POSTAL')
  return address && Object.values(address).some((part) => part !== null) ? address : null
}

function paymentsOf(parameters: ReadParameters): MasterRows['payments'] {
  return parameters.lines('MDP').map((line) => {
    const id = line.code('CODE')
    const code = internalCodes.get(id)
    // Partners see an unknown mode of payment as a cheque.
    if (code === undefined) parameters.countUnread(line, 'CODE')
    return { id, code: code ?? id }
  })
}

function vatCodesOf(parameters: ReadParameters): MasterRows['vat_codes'] {
  return parameters.lines('TVA').map((line) => {
    const rate = parameters.amount(line, 'TAUXVENTE') ?? 0n
    const other = parameters.amount(line, 'TAUXACHAT')
    if (other !== undefined && other !== rate) parameters.countUnread(line, 'TAUXACHAT')
    if (rate < 0n || rate > 10_000n) parameters.refuse(line, 'TAUXVENTE', 'a rate from 0 to 100 is expected')
    const code = line.value('CODE')
    return { id: code, code, rate: Number(rate) }
  })
}

function journalsOf(
  parameters: ReadParameters,
  idOf: (number: string) => string | null,
): MasterRows['journals'] {
  return parameters.lines('JAL').map((line) => {
    const type = journalTypeOf(line.code('NATURE'))
    if (type === undefined) parameters.countUnread(line, 'NATURE')
    const isReversed = line.code('AEXTOURNER') === 'X'
    if (isReversed && type !== 'OD') parameters.countUnread(line, 'AEXTOURNER')
    const code = line.text('CODE')
    return {
      ...{ id: code, code, name: line.value('LIBELLE'), locked: line.code('FERME') === 'X' },
      type: isReversed && type === 'OD' ? 'A_EXT' : (type ?? 'OD'),
      counterpartAccountId: idOf(line.text('COMPTE')),
    }
  })
}

/**
 * Banks, each with its journal. A bank record names no journal, so the bank belongs to the bank journal with the same
 * account, else to the first bank journal. Of a third party's record only the IBAN is read, and only if the third party
 * is a company or an employee.
 */
function banksOf(
  parameters: ReadParameters,
  journals: MasterRows['journals'],
  idOf: (number: string) => string | null,
) {
  const owners = new Map(parameters.lines('CAE').map((line) => [line.text('CODE'), line.text('COLLECTIF')]))
  const bankJournals = journals.filter(({ type }) => type === 'BQ')
  const banks: MasterRows['banks'] = []
  const ibans = new Map<string, string[]>()
  let banksLeftOut = 0
  for (const [i, line] of parameters.lines('RIB').entries()) {
    const rib = ['ETABBQ_31', 'GUICHET', 'NUMEROCOMPTE_41', 'CLERIB']
      .map((field) => line.code(field))
      .join('')
    const [iban, bic, account] = [line.value('CODEIBAN'), line.value('CODEBIC'), line.text('AUXILIAIRE')]
    const collective = owners.get(account)
    if (rib !== '' && (rib.length !== 23 || collective !== undefined))
      parameters.countUnread(line, 'NUMEROCOMPTE_41')
    if (collective !== undefined) {
      if (bic !== '') parameters.countUnread(line, 'CODEBIC')
      if (iban !== '' && partyKind(collective) === undefined) parameters.countUnread(line, 'CODEIBAN')
      else if (iban !== '') ibans.set(account, [...(ibans.get(account) ?? []), iban])
      continue
    }
    const accountId = idOf(account)
    const journal =
      bankJournals.find((each) => accountId !== null && each.counterpartAccountId === accountId) ??
      bankJournals[0]
    const isDefault = line.code('PRINCIPAL') === 'X'
    const numbers = { rib: rib.length === 23 ? rib : null, iban, bic }
    if (journal === undefined) banksLeftOut += 1
    else banks.push({ id: String(i), ...numbers, accountId, journalId: journal.id, isDefault })
  }
  return { banks, banksLeftOut, ibans }
}

/**
 * Merges several lists into one order that keeps the order of each list, as far as the lists agree. Exports write
 * accounts as CRR, CGN and CAE records, each ascending by id, and an account may be in several of these lists. Ids that
 * are given in the merged order are then in the order of the file.
 */
export function mergedOrder<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const waiting = lists.map((list) => ({ list, at: 0 }))
  /** For each item, the number of lists that contain it. */
  const uses = new Map<Item, number>()
  for (const list of lists) for (const item of list) uses.set(item, (uses.get(item) ?? 0) + 1)
  const order: Item[] = []
  const done = new Set<Item>()
  const take = (item: Item) => {
    order.push(item)
    done.add(item)
  }
  for (;;) {
    let isStuck = true
    for (const each of waiting)
      for (; each.at < each.list.length; each.at++) {
        const item = each.list[each.at]!
        if (!done.has(item)) {
          const isNextEverywhere =
            waiting.filter(({ list, at }) => list[at] === item).length === uses.get(item)
          if (!isNextEverywhere) break
          take(item)
        }
        isStuck = false
      }
    const blocked = waiting.find(({ list, at }) => at < list.length)
    if (blocked === undefined) return order
    // The lists disagree about the order, so one item is taken regardless.
    if (isStuck) take(blocked.list[blocked.at]!)
  }
}
