/** Reads the rows that movements refer to, all at once: a folder has few of each. */

import type pg from 'pg'
import type { AuxiliaryRow, DictionaryRows, FolderKey } from '../formats/rows.ts'

/** The table of a row, then its columns; null after the last one. */
type Row = [table: string, id: string, code: string, name: string, further: string]

const ofFolder = 'where schema_id = $1 and folder_id = $2'

/**
 * One named statement, whose plan a connection keeps after a few exports: 0.09 ms of the database. Six statements in
 * one message, planned each time, cost 0.28.
 */
const everyTable = {
  name: 'dictionary',
  text: [
    `select 'journals', id, code, name, type from journals ${ofFolder}`,
    `select 'accounts', id, number, name, null from accounts ${ofFolder}`,
    `select 'payments', id, code, null, null from payments ${ofFolder}`,
    `select 'axes', id, code, name, null from axes ${ofFolder}`,
    `select 'sections', id, code, name, axis_id::text from sections ${ofFolder}`,
    `select 'third_parties', id, code, name, null from third_parties`,
  ].join(' union all '),
  rowMode: 'array' as const,
}

/** The rows that one entry refers to: the other rows of the folder are not read. */
const whatOneEntryNames = {
  name: 'dictionary of an entry',
  text: [
    `with entry as (select journal_id, third_party_id from entries ${ofFolder} and id = $3)`,
    `lines as (select account_id, payment_id, shares from movements ${ofFolder} and exercice_id = $4 and entry_id = $3)`,
    `shown as (select s.id, s.code, s.name, s.axis_id from sections s ${ofFolder} and s.id in
       (select share.value from lines cross join unnest(shares) with ordinality share (value, place) where place % 3 = 1))
     select 'journals', id, code, name, type from journals ${ofFolder} and id in (select journal_id from entry)
     union all
     select 'accounts', id, number, name, null from accounts ${ofFolder} and id in (select account_id from lines)
     union all
     select 'payments', id, code, null, null from payments ${ofFolder} and id in (select payment_id from lines)
     union all
     select 'axes', id, code, name, null from axes ${ofFolder} and id in (select axis_id from shown)
     union all
     select 'sections', id, code, name, axis_id::text from shown
     union all
     select 'third_parties', id, code, name, null from third_parties where id in (select third_party_id from entry)`,
  ].join(', '),
  rowMode: 'array' as const,
}

/** Inside the caller's transaction, in one round trip. */
export async function readDictionary(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<Row>({ ...everyTable, values: [schemaId, folderId] })
  return byTable(rows)
}

/** The accounts of the folder that a FEC filed with a third-party account. */
export async function readAuxiliaries(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<AuxiliaryRow>(
    `select id::text, auxiliary_number as number, auxiliary_name as name from accounts
     ${ofFolder} and auxiliary_number is not null`,
    [schemaId, folderId],
  )
  return rows
}

/** As readDictionary, for one entry of the folder. */
export async function readDictionaryOfEntry(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
  { id, exerciceId }: { id: string; exerciceId: string },
): Promise<DictionaryRows> {
  const values = [schemaId, folderId, id, exerciceId]
  const { rows } = await client.query<Row>({ ...whatOneEntryNames, values })
  return byTable(rows)
}

function byTable(rows: Row[]): DictionaryRows {
  const of = (table: string) => rows.filter(([name]) => name === table)
  return {
    journals: of('journals').map(([, id, code, name, type]) => ({ id, code, name, type })),
    accounts: of('accounts').map(([, id, number, name]) => ({ id, number, name })),
    payments: of('payments').map(([, id, code]) => ({ id, code })),
    axes: of('axes').map(([, id, code, name]) => ({ id, code, name })),
    sections: of('sections').map(([, id, code, name, axisId]) => ({ id, axisId, code, name })),
    thirdParties: of('third_parties').map(([, id, code, name]) => ({ id, code, name })),
  }
}
