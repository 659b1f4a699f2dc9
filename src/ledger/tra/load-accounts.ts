/** Loads the accounts of a TRA file, with their companies and employees. */

import type { ClientBase } from 'pg'
import { type CompanyRow, companyTable, namedCompany } from '../../formats/items/accounts/company.ts'
import { type EmployeeRow, employeeTable, namedEmployee } from '../../formats/items/accounts/employee.ts'
import { partyKind } from '../../formats/party-kind.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { filedAccounts } from '../fec/load-dimensions.ts'
import { type FecAccount, isRenumbered, numberAccounts } from '../fec/survey/accounts.ts'
import type { IdSource } from '../ids.ts'
import { TableWriter } from '../load.ts'
import { mergedOrder } from './merged-order.ts'
import type { TraGeneralAccount, TraParameters, TraThirdParty } from './parameters.ts'

export interface TraAccountIds {
  /** By the code of a CGN or CRR record. */
  general: ReadonlyMap<string, string>
  /**
   * By the code of a CAE record. A third party below another root than 401, 411 and 421 has no account of its own: its
   * lines are on its collective account.
   */
  thirdParties: ReadonlyMap<string, string>
  /** Accounts that could not get the number of the file. */
  renumbered: { filed: string; number: string }[]
}

/** What the file says of an account of the ledger. */
interface TraAccount extends FecAccount {
  name: string
  cgn: TraGeneralAccount | undefined
  cae: TraThirdParty | undefined
}

/** @param paymentOf the id of a payment by the code of a condition */
export async function loadAccounts(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  parameters: TraParameters,
  paymentOf: (condition: string) => string | undefined,
): Promise<TraAccountIds> {
  const found = inOrder(accountsOf(parameters), parameters)
  await ids.reserve(found.length)
  const given = numberAccounts(found, [])
  const numbers = new Map(given.map(({ account, number }) => [account, number]))
  const general = new Map<string, string>()
  const thirdParties = new Map<string, string>()
  const numbered = found.map((account) => ({ account, id: ids.next(), number: numbers.get(account)! }))
  for (const { account, id } of numbered) {
    if (account.auxiliaryNumber === null) general.set(account.filedNumber, id)
    if (account.cae !== undefined) thirdParties.set(account.cae.code, id)
  }
  for (const { code, collective } of parameters.thirdParties.values())
    if (!thirdParties.has(code) && general.has(collective)) thirdParties.set(code, general.get(collective)!)
  const accounts = new TableWriter(client, filedAccounts)
  const companyRows = new TableWriter(client, companyTable)
  const employeeRows = new TableWriter(client, employeeTable)
  for (const { account, id, number } of numbered) {
    const { name, cgn, cae, filedNumber, filedName, auxiliaryNumber, auxiliaryName } = account
    const correspondence = cgn?.correspondence
    accounts.add({
      ...{ ...key, id, number, name, closed: cgn?.closed ?? false, counterpartAccountId: null },
      correspondanceAccountId:
        (correspondence && (general.get(correspondence) ?? thirdParties.get(correspondence))) || null,
      ...{ filedNumber, filedName, auxiliaryNumber, auxiliaryName },
    })
    const party = partyKind(number)
    if (party === undefined) continue
    const of = { ...cae, paymentId: (cae?.condition && paymentOf(cae.condition)) || null }
    if (party === 'employee') employeeRows.add(employeeOf(key, id, name, of))
    else companyRows.add(companyOf(key, id, name, of))
  }
  await accounts.flush()
  await companyRows.flush()
  await employeeRows.flush()
  const renumbered = given
    .filter(isRenumbered)
    .map(({ account: { filedNumber, auxiliaryNumber }, number }) => ({
      filed: auxiliaryNumber ?? filedNumber,
      number,
    }))
  return { general, thirdParties, renumbered }
}

/**
 * General accounts, then third parties. Left out are collective accounts of suppliers, customers and employees that
 * nothing but their third parties names: exports define them even where the folder has none. A third party called as its
 * collective account is that account.
 */
function accountsOf(parameters: TraParameters): TraAccount[] {
  const { general, thirdParties, correspondences } = parameters
  const cited = new Set([
    ...[...parameters.journals.values()].map(({ account }) => account),
    ...parameters.banks.map(({ account }) => account),
    ...correspondences.keys(),
  ])
  const plain = (filedNumber: string, name: string, cgn: TraGeneralAccount | undefined): TraAccount => {
    const own = thirdParties.get(filedNumber)
    const cae = own?.collective === filedNumber ? own : undefined
    const filed = {
      key: filedNumber,
      filedNumber,
      filedName: name,
      auxiliaryNumber: null,
      auxiliaryName: null,
    }
    return { ...filed, party: undefined, name, cgn, cae }
  }
  const accounts = [...general.values()]
    .filter(({ number, isCollective }) => {
      const isOnlyCollective = isCollective && partyKind(number) !== undefined
      return !isOnlyCollective || cited.has(number) || thirdParties.get(number)?.collective === number
    })
    .map((cgn) => plain(cgn.number, cgn.name, cgn))
  for (const [number, name] of correspondences)
    if (!general.has(number) && !thirdParties.has(number)) accounts.push(plain(number, name, undefined))
  for (const cae of thirdParties.values()) {
    const { code, name, collective } = cae
    if (code === collective || partyKind(collective) === undefined) continue
    accounts.push({
      key: `${collective}\t${code}`,
      filedNumber: collective,
      filedName: general.get(collective)?.name ?? '',
      auxiliaryNumber: code,
      auxiliaryName: name,
      party: undefined,
      name,
      cgn: undefined,
      cae,
    })
  }
  return accounts
}

/** In the order of the file. */
function inOrder(accounts: TraAccount[], parameters: TraParameters): TraAccount[] {
  const byGeneral = new Map(
    accounts.flatMap((each) => (each.auxiliaryNumber === null ? [[each.filedNumber, each] as const] : [])),
  )
  const byThirdParty = new Map(
    accounts.flatMap((each) => (each.cae === undefined ? [] : [[each.cae.code, each] as const])),
  )
  const keysOf = (codes: Iterable<string>, found: (code: string) => TraAccount | undefined) =>
    [...codes].flatMap((code) => found(code)?.key ?? [])
  const order = mergedOrder([
    keysOf(parameters.correspondences.keys(), (code) => byGeneral.get(code) ?? byThirdParty.get(code)),
    keysOf(parameters.general.keys(), (code) => byGeneral.get(code)),
    keysOf(parameters.thirdParties.keys(), (code) => byThirdParty.get(code)),
  ])
  const byKey = new Map(accounts.map((account) => [account.key, account]))
  return order.map((key) => byKey.get(key)!)
}

type Party = Partial<TraThirdParty> & { paymentId: string | null }

function companyOf(key: FolderKey, id: string, name: string, party: Party): CompanyRow {
  const { firstName = null, phoneNumber = null, ape = null } = party
  const none = { lastname: null, role: null, email: null }
  const isKnown = firstName !== null || phoneNumber !== null
  return {
    ...namedCompany(key, id, name),
    siren: party.siret ?? null,
    paymentId: party.paymentId,
    address: party.address ?? null,
    apeCode: ape,
    ibans: party.ibans ?? [],
    contacts: isKnown ? [{ ...none, firstname: firstName, phoneNumber }] : [],
  }
}

function employeeOf(key: FolderKey, id: string, name: string, party: Party): EmployeeRow {
  return {
    ...namedEmployee(key, id, name),
    firstName: party.firstName ?? null,
    phoneNumber: party.phoneNumber ?? null,
    paymentId: party.paymentId,
    address: party.address ?? null,
    ibans: party.ibans ?? [],
  }
}
