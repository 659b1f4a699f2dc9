/** Loads what movements refer to and the folder lacks: accounts, journals, payment modes. */
import type { ClientBase } from 'pg'
import type { CompanyRow, EmployeeRow, FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { accounts, companies, employees, journals, payments, TableWriter } from '../load.ts'
import { accountsByNumber, journalIds, paymentIds } from './import-fec.sql.ts'
import { type FecAccount, numberAccounts } from './survey/accounts.ts'
import { journalTypeByUse } from './survey/journals.ts'
import type { FecJournal, FecSurvey } from './survey/survey.ts'

export interface Dimensions {
  /** Ids by the key of FecAccount. */
  accounts: Map<string, string>
  /** Ids by code. */
  journals: Map<string, string>
  /** Ids by internal code. */
  payments: Map<string, string>
}

/** Existing accounts, journals and payment modes keep the names their users gave them. */
export async function loadDimensions(
  client: ClientBase,
  ids: IdSource,
  { schemaId, folderId }: FolderKey,
  survey: FecSurvey,
): Promise<Dimensions> {
  const key = { schemaId, folderId }
  await ids.reserve(survey.accounts.size + survey.journals.size + survey.paymentCodes.size)
  const accountIdOf = await loadAccounts(client, ids, key, survey.accounts)
  const journalIdOf = await loadJournals(client, ids, key, survey.journals, accountIdOf)
  const paymentIdOf = await loadPayments(client, ids, key, survey.paymentCodes)
  return { accounts: accountIdOf, journals: journalIdOf, payments: paymentIdOf }
}

async function loadAccounts(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  found: ReadonlyMap<string, FecAccount>,
): Promise<Map<string, string>> {
  const existing = await accountsByNumber(client, key)
  const accountWriter = new TableWriter(client, accounts)
  const companyWriter = new TableWriter(client, companies)
  const employeeWriter = new TableWriter(client, employees)
  const idOf = new Map<string, string>()
  for (const [{ key: accountKey, name, party }, number] of numberAccounts(found.values(), existing)) {
    const known = existing.get(number)?.id
    const id = known ?? ids.next()
    idOf.set(accountKey, id)
    if (known !== undefined) continue
    const links = { counterpartAccountId: null, correspondanceAccountId: null }
    accountWriter.add({ ...key, id, number, name, closed: false, ...links })
    if (party === 'company') companyWriter.add(companyRow(key, id, name))
    if (party === 'employee') employeeWriter.add(employeeRow(key, id, name))
  }
  await accountWriter.flush()
  await companyWriter.flush()
  await employeeWriter.flush()
  return idOf
}

async function loadJournals(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  found: ReadonlyMap<string, FecJournal>,
  accountIdOf: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  const idOf = await journalIds(client, key)
  const writer = new TableWriter(client, journals)
  for (const { code, name, type: typeByName, use, treasury } of found.values()) {
    if (idOf.has(code)) continue
    const id = ids.next()
    idOf.set(code, id)
    const type = typeByName ?? journalTypeByUse(use)
    const [mostUsed] = [...treasury].toSorted(([, one], [, other]) => other - one)
    const hasCounterpart = (type === 'BQ' || type === 'CAISSE') && mostUsed !== undefined
    const counterpartAccountId = hasCounterpart ? accountIdOf.get(mostUsed[0])! : null
    writer.add({ ...key, id, code, name, type, counterpartAccountId, locked: false })
  }
  await writer.flush()
  return idOf
}

async function loadPayments(
  client: ClientBase,
  ids: IdSource,
  key: FolderKey,
  found: ReadonlySet<string>,
): Promise<Map<string, string>> {
  const idOf = await paymentIds(client, key)
  const writer = new TableWriter(client, payments)
  for (const code of found) {
    if (idOf.has(code)) continue
    const id = ids.next()
    idOf.set(code, id)
    writer.add({ ...key, id, code })
  }
  await writer.flush()
  return idOf
}

function companyRow(key: FolderKey, accountId: string, name: string): CompanyRow {
  const unknown = { siren: null, ceo: null, paymentId: null, vatId: null, address: null }
  const noActivity = { apeProducerId: null, apeCode: null, apeName: null }
  return { ...key, accountId, name, ...unknown, ...noActivity, ibans: [], contacts: [], miscellaneous: null }
}

/** The whole label becomes the last name: a FEC does not mark the first name. */
function employeeRow(key: FolderKey, accountId: string, name: string): EmployeeRow {
  return {
    ...key,
    accountId,
    firstName: null,
    lastName: name,
    email: null,
    phoneNumber: null,
    phoneNumberBis: null,
    nir: null,
    profession: null,
    paymentId: null,
    address: null,
    ibans: [],
    contacts: [],
    miscellaneous: null,
    doubtfulAccountId: null,
  }
}
