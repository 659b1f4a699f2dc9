/** Loads the master data that the folder lacks: accounts, journals, payment modes. */

import type { ClientBase } from 'pg'
import { partyKind } from '../../formats/items/accounts/parties.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { keptIds, loadMasterRows, type MasterRows, noMasterRows } from '../import/master-data.ts'
import type { LedgerFields } from './filed.ts'
import { fileRows, knownAccounts, knownJournals, paymentIds } from './import-fec.sql.ts'
import { isRenumbered, nameOf, numberAccounts } from './survey/accounts.ts'
import { journalTypeByUse } from './survey/journals.ts'
import type { FecSurvey } from './survey/survey.ts'

type FiledAccount = LedgerFields['account'] & { id: string }

/** Adds the missing rows. Existing accounts, journals and payment modes keep the names that their users gave them. */
export async function loadFecMasterData(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  survey: FecSurvey,
) {
  await ids.reserve(survey.accounts.size + survey.journals.size + survey.paymentCodes.size)
  const rows = noMasterRows()
  const load = { client, ids, key, survey, rows }
  const payments = await paymentIds(client, key)
  for (const code of survey.paymentCodes) {
    if (payments.has(code)) continue
    const id = ids.next()
    payments.set(code, id)
    rows.payments.push({ id, code })
  }
  const { accounts, renumberedAccounts } = await addAccounts(load)
  const journals = await addJournals(load, accounts)
  await loadMasterRows(client, key, rows, keptIds, false)
  return {
    /** Accounts, by the key of FecAccount. */
    accounts,
    /** Journals by code. */
    journals,
    /** Ids of payment modes by internal code. */
    payments,
    /** New accounts that could not get the number in the file, each with its CompteNum and CompAuxNum. */
    renumberedAccounts,
  }
}
export type FecMasterData = Awaited<ReturnType<typeof loadFecMasterData>>

interface MasterLoad {
  client: ClientBase
  ids: IdSource
  key: FolderKey
  survey: FecSurvey
  /** The rows to load; new rows are added to them. */
  rows: MasterRows
}

async function addAccounts({ client, ids, key, survey, rows }: MasterLoad) {
  const numbered = numberAccounts(survey.accounts.values(), await knownAccounts(client, key))
  const accounts = new Map<string, FiledAccount>()
  const newlyFiled = []
  for (const { account, number, known } of numbered) {
    const { filedNumber, filedName, auxiliaryNumber, auxiliaryName } = account
    const id = known?.id ?? ids.next()
    const filed = { id, filedNumber, filedName, auxiliaryNumber, auxiliaryName }
    const isFiled = known !== undefined && known.filedNumber !== null
    accounts.set(account.key, isFiled ? { ...known, filedName: known.filedName ?? '' } : filed)
    if (known !== undefined) {
      if (!isFiled) newlyFiled.push(filed)
      continue
    }
    const name = nameOf(account)
    rows.accounts.push({ ...filed, number, name, closed: false })
    if (auxiliaryNumber === null) continue
    const party = { accountId: id, ibans: [], contacts: [] }
    // In the label of an employee's account, the first name cannot be told from the last name.
    if (partyKind(number) === 'employee') rows.employees.push({ ...party, lastName: name })
    else rows.companies.push({ ...party, name })
  }
  await fileRows(client, key, 'accounts', newlyFiled)
  const renumberedAccounts = numbered
    .filter(isRenumbered)
    .map(({ account, number }) => ({ filed: account.key.replace('\n', ' '), number }))
  return { accounts, renumberedAccounts }
}

async function addJournals(
  { client, ids, key, survey, rows }: MasterLoad,
  accounts: FecMasterData['accounts'],
) {
  const known = await knownJournals(client, key)
  const journals = new Map<string, LedgerFields['journal'] & { id: string }>()
  const newlyFiled = []
  for (const { code, label, type: typeByName, use, treasury } of survey.journals.values()) {
    const existing = known.get(code)
    const id = existing?.id ?? ids.next()
    journals.set(code, { id, label: existing?.filedName ?? label })
    if (existing !== undefined) {
      if (existing.filedName === null) newlyFiled.push({ id, filedName: label })
      continue
    }
    const type = typeByName ?? journalTypeByUse(use)
    const [mostUsed] = [...treasury].toSorted(([, one], [, other]) => other - one)
    const hasCounterpart = (type === 'BQ' || type === 'CAISSE') && mostUsed !== undefined
    const counterpartAccountId = hasCounterpart ? accounts.get(mostUsed[0])!.id : null
    const name = label || code
    rows.journals.push({ id, code, name, type, counterpartAccountId, locked: false, filedName: label })
  }
  await fileRows(client, key, 'journals', newlyFiled)
  return journals
}
