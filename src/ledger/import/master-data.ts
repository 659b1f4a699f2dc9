/**
 * The rows of master data, which entries refer to. They have the ids of the file, and are loaded with ids of the
 * database.
 */
import type { ClientBase } from 'pg'
import { accountTable } from '../../formats/items/accounts/account.ts'
import { companyTable, employeeTable } from '../../formats/items/accounts/parties.ts'
import { vatTable } from '../../formats/items/accounts/vat.ts'
import { axisTable, sectionTable } from '../../formats/items/axis.ts'
import { exerciceTable } from '../../formats/items/exercice.ts'
import { bankTable, journalTable } from '../../formats/items/journal.ts'
import { paymentTable } from '../../formats/items/payment.ts'
import * as column from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { compared, TableWriter } from '../load.ts'

/** The columns for the fields that a FEC filed for an account or a journal. */
const filedColumns = {
  accounts: {
    filedNumber: column.orNull(column.text),
    filedName: column.orNull(column.text),
    auxiliaryNumber: column.orNull(column.text),
    auxiliaryName: column.orNull(column.text),
  },
  journals: { filedName: column.orNull(column.text) },
}

/** The tables in the order of loading: each comes before the tables that refer to it. */
export const masterTables = {
  payments: paymentTable,
  vat_codes: vatTable,
  accounts: { ...accountTable, columns: { ...accountTable.columns, ...filedColumns.accounts } },
  companies: companyTable,
  employees: employeeTable,
  journals: { ...journalTable, columns: { ...journalTable.columns, ...filedColumns.journals } },
  banks: bankTable,
  axes: axisTable,
  sections: sectionTable,
  exercices: exerciceTable,
}
export type MasterTable = keyof typeof masterTables

export const isFiled = (table: MasterTable, member: string) =>
  (table === 'accounts' || table === 'journals') && member in filedColumns[table]

export type MasterRows = { [Name in MasterTable]: column.FileRow<(typeof masterTables)[Name]>[] }

export const noMasterRows = (): MasterRows => ({
  ...{ payments: [], vat_codes: [], accounts: [], companies: [], employees: [] },
  ...{ journals: [], banks: [], axes: [], sections: [], exercices: [] },
})

/** Finds the database's id for an id in a file. */
export type IdOf = (table: string, id: string) => string

/** Keeps the ids of the file. */
export const keptIds: IdOf = (_table, id) => id

/**
 * The tables whose rows have ids, in the order in which ids are given out and refused. For each: the members that
 * identify a row in its folder without its id.
 */
export const identities = {
  accounts: ['number'],
  payments: ['code'],
  vat_codes: ['code'],
  journals: ['code'],
  banks: ['journalId', 'iban'],
  axes: ['code'],
  sections: ['axisId', 'code'],
  exercices: ['startDate'],
} as const satisfies Partial<Record<MasterTable, string[]>>
export type IdTable = keyof typeof identities

export interface KnownMasterRow {
  table: string
  id: string
  /** The values of the members in `identities`. */
  identity: string[]
}

/** A row of any table, by its members. */
type AnyRow = Readonly<Record<string, unknown>>

/**
 * @param known rows of the folder; each gives its id to one row of the file. All other rows get new ids, in their order
 */
export async function newIds(
  ids: IdSource,
  masterData: MasterRows,
  known: readonly KnownMasterRow[] = [],
): Promise<IdOf> {
  const given = new Map<string, Map<string, string>>()
  const idOf: IdOf = (table, id) => given.get(table)!.get(id)!
  const knownRows = Map.groupBy(known, ({ table, identity }) => JSON.stringify([table, identity]))
  for (const table of Object.keys(identities) as IdTable[]) {
    await ids.reserve(masterData[table].length)
    const idsOfTable = new Map<string, string>()
    given.set(table, idsOfTable)
    const { columns }: column.Table = masterTables[table]
    for (const row of masterData[table]) {
      const identity = identities[table].map((member) => {
        const value = (row as unknown as Record<string, string>)[member]!
        const to = columns[member]!.to
        return to === undefined ? value : idOf(to, value)
      })
      const same = knownRows.get(JSON.stringify([table, identity]))
      idsOfTable.set(row.id, same?.shift()?.id ?? ids.next())
    }
  }
  return idOf
}

/** @param isCompared whether to load the rows into the tables of a replacement */
export async function loadMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  masterData: MasterRows,
  idOf: IdOf,
  isCompared: boolean,
): Promise<void> {
  for (const [name, table] of Object.entries<column.TableOf<AnyRow>>(masterTables as never)) {
    const writer = new TableWriter(client, isCompared ? compared(table) : table, { schemaId, folderId })
    for (const row of masterData[name as MasterTable] as AnyRow[]) writer.add(inLedger(table, row, idOf))
    await writer.flush()
  }
}

function inLedger({ name, columns }: column.TableOf<AnyRow>, row: AnyRow, idOf: IdOf): AnyRow {
  const loaded = { ...row }
  for (const [member, { encoding, to }] of Object.entries(columns)) {
    const table = encoding === 'id' ? name : to
    const id = row[member]
    if (table !== undefined && typeof id === 'string') loaded[member] = idOf(table, id)
  }
  return loaded
}
