/** Reads all rows that movements refer to in one statement, because a folder has few such rows. */

import type pg from 'pg'
import { queryRows } from '../db/statement.ts'
import { columnName } from '../formats/items/table.ts'
import type { AuxiliaryRow, DictionaryRows, FolderKey } from '../formats/rows.ts'

/**
 * The name of the table, then the id of a row and its selected columns as texts. A text is null if the table has fewer
 * columns.
 */
type Row = [table: string, id: string, code: string, name: string, further: string]

const ofFolder = 'schema_id = $1 and folder_id = $2'

/** For each table: the columns that partners see besides the id, and a select of the ids that one entry names. */
const tables = [
  { table: 'journals', members: ['code', 'name', 'type'], ofEntry: 'select journal_id from entry' },
  { table: 'accounts', members: ['number', 'name'], ofEntry: 'select account_id from lines' },
  { table: 'payments', members: ['code'], ofEntry: 'select payment_id from lines' },
  { table: 'axes', members: ['code', 'name'], ofEntry: 'select axis_id from shown' },
  { table: 'sections', members: ['code', 'name', 'axisId'], ofEntry: 'select id from shown' },
  { table: 'third_parties', members: ['code', 'name'], ofEntry: 'select third_party_id from entry' },
]

/**
 * Builds one statement for all tables. It selects the name of the table, the id of a row, and three texts, some of them
 * null.
 */
function statementOf(name: string, entry?: string) {
  const selects = tables.map(({ table, members, ofEntry }) => {
    const columns = [0, 1, 2].map((i) => (i < members.length ? `${columnName(members[i]!)}::text` : 'null'))
    const conditions = [
      ...(table === 'third_parties' ? [] : [ofFolder]),
      ...(entry === undefined ? [] : [`id in (${ofEntry})`]),
    ]
    const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
    return `select '${table}', id, ${columns.join(', ')} from ${table} ${where}`
  })
  return { name, text: `${entry ?? ''} ${selects.join(' union all ')}`, rowMode: 'array' as const }
}

/**
 * One named statement, whose plan a connection keeps after a few exports: it takes 0.09 ms of the database. Six
 * statements in one message, planned each time, took 0.28 ms.
 */
const everyTable = statementOf('dictionary')

/** Reads only the rows that one entry refers to, not the other rows of the folder. */
const whatOneEntryNames = statementOf(
  'dictionary of an entry',
  `with entry as (select journal_id, third_party_id from entries where ${ofFolder} and id = $3),
     lines as (
       select account_id, payment_id, shares from movements where ${ofFolder} and exercice_id = $4 and entry_id = $3),
     shown as (select id, axis_id from sections where ${ofFolder} and id in
       (select share.value from lines cross join unnest(shares) with ordinality share (value, place) where place % 3 = 1))`,
)

/** Reads the dictionary of a folder inside the caller's transaction, in one round trip. */
export async function readDictionary(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  return byTable(await queryRows<Row>(client, { ...everyTable, values: [schemaId, folderId] }))
}

/** Reads the third-party accounts that a FEC filed for accounts of the folder. */
export async function readAuxiliaries(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const text = `select id::text, auxiliary_number as number, auxiliary_name as name from accounts
     where ${ofFolder} and auxiliary_number is not null`
  return queryRows<AuxiliaryRow>(client, text, [schemaId, folderId])
}

/** Reads the dictionary of one entry: only the rows that it refers to. */
export async function readDictionaryOfEntry(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
  { id, exerciceId }: { id: string; exerciceId: string },
) {
  const values = [schemaId, folderId, id, exerciceId]
  return byTable(await queryRows<Row>(client, { ...whatOneEntryNames, values }))
}

/** Written as literals: building objects from lists of members took four times as long, 190 ms for 400,000 accounts. */
function byTable(rows: Row[]): DictionaryRows {
  const rowsByTable = Map.groupBy(rows, ([table]) => table)
  const rowsOf = (table: string) => rowsByTable.get(table) ?? []
  return {
    journals: rowsOf('journals').map(([, id, code, name, type]) => ({ id, code, name, type })),
    accounts: rowsOf('accounts').map(([, id, number, name]) => ({ id, number, name })),
    payments: rowsOf('payments').map(([, id, code]) => ({ id, code })),
    axes: rowsOf('axes').map(([, id, code, name]) => ({ id, code, name })),
    sections: rowsOf('sections').map(([, id, code, name, axisId]) => ({ id, axisId, code, name })),
    thirdParties: rowsOf('third_parties').map(([, id, code, name]) => ({ id, code, name })),
  }
}
