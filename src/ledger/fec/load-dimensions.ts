/** Loads what movements refer to and the folder lacks: accounts, journals, payment modes. */

import type { ClientBase } from 'pg'
import { accountTable } from '../../formats/items/accounts/account.ts'
import { companyTable, namedCompany } from '../../formats/items/accounts/company.ts'
import { employeeTable, namedEmployee } from '../../formats/items/accounts/employee.ts'
import { journalTable } from '../../formats/items/journal.ts'
import { paymentTable } from '../../formats/items/payment.ts'
import * as column from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { TableWriter } from '../load.ts'
import type { LedgerFields } from './filed.ts'
import { fileAccounts, fileJournals, knownAccounts, knownJournals, paymentIds } from './import-fec.sql.ts'
import {
  type FecAccount,
  isRenumbered,
  type KnownAccount,
  nameOf,
  numberAccounts,
} from './survey/accounts.ts'
import { journalTypeByUse } from './survey/journals.ts'
import type { FecJournal, FecSurvey } from './survey/survey.ts'

export interface Dimensions {
  /** By the key of FecAccount. */
  accounts: Map<string, LedgerFields['account'] & { id: string }>
  /** By code. */
  journals: Map<string, LedgerFields['journal'] & { id: string }>
  /** Ids by internal code. */
  payments: Map<string, string>
  /** New accounts that could not get the number of the file, and CompteNum and CompAuxNum of each. */
  renumberedAccounts: { filed: string; number: string }[]
}

type FiledNames = Pick<KnownAccount, 'filedNumber' | 'filedName' | 'auxiliaryNumber' | 'auxiliaryName'>
export const filedAccounts = {
  ...accountTable,
  columns: {
    ...accountTable.columns,
    filedNumber: column.orNull(column.text),
    filedName: column.orNull(column.text),
    auxiliaryNumber: column.orNull(column.text),
    auxiliaryName: column.orNull(column.text),
  },
}
const filedJournals = { ...journalTable, columns: { ...journalTable.columns, filedName: column.text } }

const unlinked = column.blank(accountTable)

/** Existing accounts, journals and payment modes keep the names their users gave them. */
export async function loadDimensions(
  client: ClientBase,
  ids: IdSource,
  { schemaId, folderId }: FolderKey,
  survey: FecSurvey,
): Promise<Dimensions> {
  const key = { schemaId, folderId }
  await ids.reserve(survey.accounts.size + survey.journals.size + survey.paymentCodes.size)
  const loaded = await loadAccounts(client, ids, key, survey.accounts)
  const journalsByCode = await loadJournals(client, ids, key, survey.journals, loaded.accounts)
  const paymentIdOf = await loadPayments(client, ids, key, survey.paymentCodes)
  return { ...loaded, journals: journalsByCode, payments: paymentIdOf }
}

async function loadAccounts(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  found: ReadonlyMap<string, FecAccount>,
): Promise<Pick<Dimensions, 'accounts' | 'renumberedAccounts'>> {
  const numbered = numberAccounts(found.values(), await knownAccounts(client, key))
  const accountWriter = new TableWriter(client, filedAccounts)
  const companyWriter = new TableWriter(client, companyTable)
  const employeeWriter = new TableWriter(client, employeeTable)
  const byKey: Dimensions['accounts'] = new Map()
  const toFile: (FiledNames & { id: string })[] = []
  for (const { account, number, known } of numbered) {
    const { filedNumber, filedName, auxiliaryNumber, auxiliaryName, party } = account
    const isFiled = known !== undefined && known.filedNumber !== null
    const filed = isFiled
      ? { ...known, filedName: known.filedName ?? '' }
      : { filedNumber, filedName, auxiliaryNumber, auxiliaryName }
    const id = known?.id ?? ids.next()
    byKey.set(account.key, { ...filed, id })
    if (known !== undefined) {
      if (!isFiled) toFile.push({ ...filed, id })
      continue
    }
    const name = nameOf(account)
    accountWriter.add({ ...unlinked, ...key, id, number, name, closed: false, ...filed })
    if (party === 'company') companyWriter.add(namedCompany(key, id, name))
    if (party === 'employee') employeeWriter.add(namedEmployee(key, id, name))
  }
  await fileAccounts(client, key, toFile)
  await accountWriter.flush()
  await companyWriter.flush()
  await employeeWriter.flush()
  const renumberedAccounts = numbered
    .filter(isRenumbered)
    .map(({ account, number }) => ({ filed: account.key.replace('\n', ' '), number }))
  return { accounts: byKey, renumberedAccounts }
}

async function loadJournals(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  found: ReadonlyMap<string, FecJournal>,
  accountsByKey: Dimensions['accounts'],
): Promise<Dimensions['journals']> {
  const known = await knownJournals(client, key)
  const byCode: Dimensions['journals'] = new Map()
  const writer = new TableWriter(client, filedJournals)
  const toFile: { id: string; filedName: string }[] = []
  for (const { code, label, type: typeByName, use, treasury } of found.values()) {
    const existing = known.get(code)
    const id = existing?.id ?? ids.next()
    byCode.set(code, { id, label: existing?.filedName ?? label })
    if (existing !== undefined) {
      if (existing.filedName === null) toFile.push({ id, filedName: label })
      continue
    }
    const type = typeByName ?? journalTypeByUse(use)
    const [mostUsed] = [...treasury].toSorted(([, one], [, other]) => other - one)
    const hasCounterpart = (type === 'BQ' || type === 'CAISSE') && mostUsed !== undefined
    const counterpartAccountId = hasCounterpart ? accountsByKey.get(mostUsed[0])!.id : null
    const name = label || code
    writer.add({ ...key, id, code, name, type, counterpartAccountId, locked: false, filedName: label })
  }
  await fileJournals(client, key, toFile)
  await writer.flush()
  return byCode
}

async function loadPayments(client: ClientBase, ids: IdSource, key: FolderKey, found: ReadonlySet<string>) {
  const idOf = await paymentIds(client, key)
  const writer = new TableWriter(client, paymentTable)
  for (const code of found) {
    if (idOf.has(code)) continue
    const id = ids.next()
    idOf.set(code, id)
    writer.add({ ...key, id, code })
  }
  await writer.flush()
  return idOf
}
