/** folders.ledger_version, which every ETag contains, changes exactly when the ledger changes. */
import type pg from 'pg'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { fillTenant, folderId, insertFolder, ledgerInserts } from '../support/ledgers/small-ledger.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

const schemaId = '1000'
const otherFolderId = '2'

const database = forTests(createTestDatabase)
const client = forTests(() => connect(database.ownerUrl))
const rival = forTests(() => connect(database.ownerUrl))

beforeAll(async () => {
  await fillTenant(client, schemaId)
  await insertFolder(client, schemaId, otherFolderId)
  // For rows of companies and employees, whose key is an account id.
  await client.query(ledgerInserts['accounts']!(schemaId, 2))
})

beforeEach(async () => {
  await client.query('rollback')
  await rival.query('rollback')
})

test('these tests cover every table that holds the ledger of a folder', async () => {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'folder_id'
     where c.relnamespace = 'grandlivre'::regnamespace and c.relkind = 'r'
       and c.relname not in ('tokens', 'exports', 'events', 'entry_numbers', 'ledger_changes', 'movement_blocks',
         'ledger_blocks', 'table_changes', 'audit_rows')
     order by 1`,
  )
  expect(rows.map((row) => row.name)).toEqual(Object.keys(ledgerInserts).sort())
})

test.each(Object.keys(ledgerInserts))(
  'advances when a row of %s is inserted, updated or deleted',
  async (table) => {
    const id = table === 'accounts' ? 3 : 2
    const key = table === 'companies' || table === 'employees' ? 'account_id' : 'id'
    const other = await version(otherFolderId)
    const column = changeable[table]!
    await advances(ledgerInserts[table]!(schemaId, id))
    await advances(`update ${table} set ${column} where schema_id = ${schemaId} and ${key} = ${id}`)
    await advances(`delete from ${table} where schema_id = ${schemaId} and ${key} = ${id}`)
    expect(await version(otherFolderId), 'the other folder stays').toBe(other)
  },
)

const changeable: Record<string, string> = {
  payments: `code = 'VIR'`,
  vat_codes: 'rate = 550',
  accounts: 'closed = true',
  companies: `ceo = 'Zoé'`,
  employees: `first_name = 'Zoé'`,
  journals: 'locked = true',
  banks: 'is_default = true',
  axes: `name = 'Chantier'`,
  sections: 'closed = true',
  exercices: 'closed_at = now()',
  entries: 'validated_at = null',
  movements: `lettering_state = 'complete', lettering_code = 'AA'`,
}

test('advances when columns of the folder change, and when an entry is deleted', async () => {
  await advances(`update folders set name = 'Autre' where id = ${folderId}`)
  await advances(`update folders set currency = 'CHF' where id = ${folderId}`)
  await client.query(ledgerInserts['entries']!(schemaId, 8))
  await advances(`delete from entries where id = 8`)
})

test('advances for every folder that one statement changes', async () => {
  await client.query(ledgerInserts['payments']!(schemaId, 1, otherFolderId))
  const before = [await version(folderId), await version(otherFolderId)]
  await client.query(`update payments set code = 'CHQ'`)
  const after = [await version(folderId), await version(otherFolderId)]
  expect(after[0]).not.toBe(before[0])
  expect(after[1]).not.toBe(before[1])
  expect(after[0]).not.toBe(after[1])
})

test('advances in each schema with entries of a third party when the third party is renamed', async () => {
  const otherSchemaId = '2000'
  await fillTenant(client, otherSchemaId)
  for (const schema of [schemaId, otherSchemaId])
    await client.query(
      `update entries set third_party_id = 1, source = 'API' where schema_id = ${schema} and id = 1`,
    )
  const versions = async () => [
    await version(folderId),
    await version(folderId, otherSchemaId),
    await version(otherFolderId),
  ]
  for (const change of [`name = 'Autre'`, `code = 'AUTRE'`, `name = 'Partner', code = 'PARTNER'`]) {
    const before = await versions()
    await client.query(`update third_parties set ${change}`)
    const after = await versions()
    expect(after.map((each, i) => each !== before[i])).toEqual([true, true, false])
  }
  const before = await versions()
  await client.query('update third_parties set name = name, code = code')
  await client.query(`update third_parties set disconnected_at = now(), disconnected_reason = 'x'`)
  expect(await versions()).toEqual(before)
})

test('stays when a statement changes nothing, or only tables outside the ledger', async () => {
  const before = await version(folderId)
  await client.query(`update movements set debit = 5 where id = 999`)
  await client.query(`delete from entries where id = 999`)
  await client.query(`update folders set name = name`)
  await client.query(`update tokens set activated_at = now()`)
  await client.query(`update rate_windows set requests = requests + 1`)
  await client.query(`select * from movements`)
  expect(await version(folderId)).toBe(before)
})

test('a version that was rolled back never comes back', async () => {
  const before = await version(folderId)
  await client.query('begin')
  await client.query(ledgerInserts['payments']!(schemaId, 30))
  const undone = await version(folderId)
  await client.query('rollback')
  expect(await version(folderId)).toBe(before)
  await client.query(ledgerInserts['payments']!(schemaId, 31))
  expect(BigInt(await version(folderId))).toBeGreaterThan(BigInt(undone))
})

test('concurrent writers of one folder take turns, and each gets its own version', async () => {
  await client.query('begin')
  await client.query(ledgerInserts['payments']!(schemaId, 10))
  const first = await version(folderId)
  await rival.query('begin')
  const second = rival.query(ledgerInserts['payments']!(schemaId, 11))
  await until(async () => (await waiting(rival)) === 'Lock')
  expect(await version(folderId)).toBe(first)
  await client.query('commit')
  await second
  await rival.query('commit')
  expect(BigInt(await version(folderId))).toBeGreaterThan(BigInt(first))
})

test('refuses changes that it cannot attribute to a folder', async () => {
  await expect(client.query('truncate movements')).rejects.toThrow('would not change ledger_version')
  await expect(
    client.query(`update payments set folder_id = ${otherFolderId} where folder_id = ${folderId} and id = 1`),
  ).rejects.toThrow('would not change ledger_version')
  await client.query(`update payments set folder_id = folder_id where id = 1`)
})

async function advances(statement: string): Promise<void> {
  const before = BigInt(await version(folderId))
  const { rowCount } = await client.query(statement)
  expect(rowCount, statement).toBe(1)
  expect(BigInt(await version(folderId)), statement).toBeGreaterThan(before)
}

async function version(folder: string, schema = schemaId): Promise<string> {
  const { rows } = await client.query<{ ledger_version: string }>(
    'select ledger_version from folders where schema_id = $1 and id = $2',
    [schema, folder],
  )
  return rows[0]!.ledger_version
}

/** What a connection waits for, as the other one sees it. */
async function waiting(connection: pg.Client): Promise<string | null> {
  const { processID } = connection as unknown as { processID: number }
  const { rows } = await client.query<{ wait_event_type: string | null }>(
    'select wait_event_type from pg_stat_activity where pid = $1',
    [processID],
  )
  return rows[0]?.wait_event_type ?? null
}
