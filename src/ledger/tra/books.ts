/** What the entries of a TRA file refer to, as rows whose ids are codes of the file. */

import { partyKind } from '../../formats/party-kind.ts'
import { type FecAccount, isRenumbered, numberAccounts } from '../fec/survey/accounts.ts'
import { type Books, noBooks } from '../import/books.ts'
import { mergedOrder } from './merged-order.ts'
import { sectionKey, type TraGeneralAccount, type TraParameters, type TraThirdParty } from './parameters.ts'

export interface TraBooks {
  rows: Books
  /**
   * Ids of accounts by the code of a CAE record. A third party below another root than 401, 411 and 421 has no account of
   * its own: its lines are on its collective account.
   */
  accountOf: ReadonlyMap<string, string>
  /** Accounts that could not get the number of the file. */
  renumberedAccounts: { filed: string; number: string }[]
  /** Banks that no journal of the file could belong to. */
  banksLeftOut: number
}

/** What the file says of an account of the ledger. */
interface TraAccount extends FecAccount {
  name: string
  cgn: TraGeneralAccount | undefined
  cae: TraThirdParty | undefined
}

export function traBooks(parameters: TraParameters): TraBooks {
  const { general, thirdParties } = accountsOf(parameters)
  const order = mergedOrder(
    [
      [...parameters.correspondences.keys()].map((code) => general.get(code) ?? thirdParties.get(code)),
      [...parameters.general.keys()].map((code) => general.get(code)),
      [...parameters.thirdParties.keys()].map((code) => thirdParties.get(code)),
    ].map((accounts) => accounts.filter((account) => account !== undefined)),
  )
  const numbered = numberAccounts(order, [])
  const numbers = new Map(numbered.map(({ account, number }) => [account, number]))
  const idOf = (number: string | null) => general.get(number ?? '')?.key ?? null
  const accountOf = new Map(
    [...parameters.thirdParties.values()].flatMap(({ code, collective }) => {
      const id = thirdParties.get(code)?.key ?? idOf(collective)
      return id === null ? [] : [[code, id]]
    }),
  )
  const rows = {
    ...noBooks(),
    ...{ payments: parameters.payments, vat_codes: parameters.vatCodes, exercices: parameters.exercices },
    journals: parameters.journals.map(({ account, ...journal }) => ({
      ...journal,
      counterpartAccountId: idOf(account),
    })),
    banks: banksOf(parameters, idOf),
    ...axesOf(parameters),
  }
  for (const account of order) {
    const { key, name, cgn, filedNumber, filedName, auxiliaryNumber, auxiliaryName } = account
    const number = numbers.get(account)!
    const correspondence = cgn?.correspondence ?? null
    rows.accounts.push({
      ...{ id: key, number, name, closed: cgn?.closed ?? false },
      correspondanceAccountId: idOf(correspondence) ?? accountOf.get(correspondence ?? '') ?? null,
      ...{ filedNumber, filedName, auxiliaryNumber, auxiliaryName },
    })
    addParty(rows, parameters, number, account)
  }
  return {
    rows,
    accountOf,
    renumberedAccounts: numbered.filter(isRenumbered).map(({ account, number }) => ({
      filed: account.auxiliaryNumber ?? account.filedNumber,
      number,
    })),
    banksLeftOut: parameters.banks.length - rows.banks.length,
  }
}

/**
 * General accounts by their number, and accounts of third parties by their code. Left out are collective accounts of
 * suppliers, customers and employees that nothing but their third parties names: exports define them even where the
 * folder has none. A third party called as its collective account is that account.
 */
function accountsOf(parameters: TraParameters) {
  const general = new Map<string, TraAccount>()
  const thirdParties = new Map<string, TraAccount>()
  const cited = new Set([
    ...[...parameters.journals, ...parameters.banks].map(({ account }) => account),
    ...parameters.correspondences.keys(),
  ])
  const ownParty = (number: string) => {
    const party = parameters.thirdParties.get(number)
    return party?.collective === number ? party : undefined
  }
  const addGeneral = (number: string, name: string, cgn?: TraGeneralAccount) => {
    const cae = ownParty(number)
    const filed = { key: number, filedNumber: number, filedName: name }
    const account = { ...filed, auxiliaryNumber: null, auxiliaryName: null, name, cgn, cae }
    general.set(number, account)
    if (cae !== undefined) thirdParties.set(number, account)
  }
  for (const cgn of parameters.general.values()) {
    const isOnlyCollective = cgn.isCollective && partyKind(cgn.number) !== undefined
    if (!isOnlyCollective || cited.has(cgn.number) || ownParty(cgn.number))
      addGeneral(cgn.number, cgn.name, cgn)
  }
  for (const [number, name] of parameters.correspondences)
    if (!parameters.general.has(number) && !parameters.thirdParties.has(number)) addGeneral(number, name)
  for (const cae of parameters.thirdParties.values()) {
    const { code, name, collective } = cae
    if (code === collective || partyKind(collective) === undefined) continue
    const filedName = parameters.general.get(collective)?.name ?? ''
    const filed = { filedNumber: collective, filedName, auxiliaryNumber: code, auxiliaryName: name }
    thirdParties.set(code, { ...filed, key: `${collective}\t${code}`, name, cgn: undefined, cae })
  }
  return { general, thirdParties }
}

/** The company or the employee of an account. */
function addParty(
  rows: Books,
  parameters: TraParameters,
  number: string,
  { key, name, cae }: TraAccount,
): void {
  const party = partyKind(number)
  if (party === undefined) return
  const { firstName = null, phoneNumber = null, address, ibans = [] } = cae ?? {}
  const paymentId = parameters.conditions.get(cae?.condition ?? '')
  const isKnown = parameters.payments.some(({ id }) => id === paymentId)
  const shared = { accountId: key, address, ibans, paymentId: isKnown ? paymentId : null }
  if (party === 'employee')
    rows.employees.push({ ...shared, firstName, lastName: name, phoneNumber, contacts: [] })
  else {
    const contact = { firstname: firstName, lastname: null, phoneNumber, role: null, email: null }
    const contacts = firstName !== null || phoneNumber !== null ? [contact] : []
    rows.companies.push({ ...shared, name, siren: cae?.siret, apeCode: cae?.ape, contacts })
  }
}

/**
 * A record names no journal: it is the bank journal with the same account, else the first one. Without one there are no
 * banks.
 */
function banksOf(
  { journals, banks }: TraParameters,
  idOf: (account: string | null) => string | null,
): Books['banks'] {
  const [first, ...others] = journals.filter(({ type }) => type === 'BQ')
  if (first === undefined) return []
  return banks.map(({ account, ...bank }) => {
    const journal = account === null ? first : [first, ...others].find((each) => each.account === account)
    return { ...bank, accountId: idOf(account), journalId: (journal ?? first).id }
  })
}

/** The file has the rank of an axis, and neither code nor name. Sections come by axis, in the order of the file. */
function axesOf({ axes, sections, defaultSections }: TraParameters): Pick<Books, 'axes' | 'sections'> {
  const ids = new Set(sections.map(({ id }) => id))
  const ranks = Array.from({ length: axes }, (_, i) => i + 1)
  return {
    axes: ranks.map((rank) => {
      const section = sectionKey(`A${rank}`, defaultSections.get(rank) ?? '')
      const defaultSectionId = ids.has(section) ? section : null
      return { id: `A${rank}`, code: `A${rank}`, name: `Axe ${rank}`, defaultSectionId }
    }),
    sections: sections.toSorted((one, other) =>
      one.axisId < other.axisId ? -1 : one.axisId > other.axisId ? 1 : 0,
    ),
  }
}
