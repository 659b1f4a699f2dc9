/** What the role that serves requests may see and do. */
import type pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import {
  askInTenant,
  createOwnerPool,
  createPool,
  inTenant,
  inTransaction,
  whileDelivering,
} from '../../src/db/pool.ts'
import { forTests } from '../support/for-tests.ts'
import { fillTenant, folderId } from '../support/ledgers/small-ledger.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const database = forTests(() => createTestDatabase())
const owner = forTests(() => createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'test owner' }))
// A single connection, so that anything a transaction leaves on it affects the next one.
const requests = forTests(() => createPool(database.serviceUrl, { max: 1, applicationName: 'test requests' }))

beforeAll(() =>
  inTransaction(owner, async (client) => {
    await fillTenant(client, '1000')
    await fillTenant(client, '2000')
  }),
)

test('every table of a tenant has row-level security with a policy, and a key that starts with the tenant', async () => {
  const { rows } = await owner.query(
    `select c.relname
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'schema_id'
     where c.relnamespace = 'grandlivre'::regnamespace and c.relkind in ('r', 'p')
       -- No tenant sees the audit.
       and c.relname <> 'audit_rows'
       and not (c.relrowsecurity and exists (select from pg_policy where polrelid = c.oid)
                -- A subscription for all schemas has no tenant.
                and (c.relname = 'subscriptions' or exists (
                  select from pg_index where indrelid = c.oid and indisprimary and indkey[0] = a.attnum)))`,
  )
  expect(rows).toEqual([])
  expect((await tenantTables()).length).toBeGreaterThan(20)
})

test('a query without a tenant sees no row', async () => {
  for (const table of await tenantTables()) {
    expect(await count(owner, table), `${table} has rows to hide`).toBeGreaterThanOrEqual(2)
    expect(await count(requests, table), table).toBe(0)
  }
})

test('a tenant sees all of its own rows and only those', async () => {
  for (const table of await tenantTables()) {
    const statement = `select distinct schema_id from ${table}`
    const seen = await inTenant(requests, '2000', (client) => client.query(statement))
    expect(seen.rows, table).toEqual([{ schema_id: '2000' }])
    expect(await askInTenant(requests, '1000', statement), table).toEqual([{ schema_id: '1000' }])
  }
})

test('the tenant of a transaction does not apply to the next transaction on the connection', async () => {
  await inTenant(requests, '1000', async (client) => expect(await count(client, 'folders')).toBe(1))
  expect(await inTransaction(requests, (client) => count(client, 'folders'))).toBe(0)
  await expect(inTenant(requests, '1000', () => Promise.reject(new Error('fails')))).rejects.toThrow('fails')
  expect(await count(requests, 'folders')).toBe(0)
})

test('the tenant of a single statement does not apply to the next statement on the connection', async () => {
  const backend = 'select pg_backend_pid() as id'
  const before = (await requests.query(backend)).rows
  expect(await askInTenant(requests, '1000', 'select name from folders')).toHaveLength(1)
  expect(await count(requests, 'folders')).toBe(0)
  expect((await requests.query(backend)).rows, 'the same connection').toEqual(before)
  await expect(askInTenant(requests, '1000', 'select 1 / 0')).rejects.toThrow('division by zero')
  expect(await count(requests, 'folders')).toBe(0)
})

test('a prepared statement, whose plan the connection keeps, applies the tenant of each transaction', async () => {
  const named = { name: 'kept plan', text: 'select schema_id from folders' }
  for (const tenant of ['1000', '2000', '1000'])
    expect((await inTenant(requests, tenant, (client) => client.query(named))).rows).toEqual([
      { schema_id: tenant },
    ])
  expect((await requests.query(named)).rows).toEqual([])
  const { rows } = await requests.query(
    `select generic_plans::int as reused from pg_prepared_statements where name = 'kept plan'`,
  )
  expect(rows).toEqual([{ reused: 4 }])
})

test('a table that becomes writable for the role is writable only for the current tenant', async () => {
  await owner.query('grant insert, update on rate_windows to grandlivre_service')
  await inTenant(requests, '1000', async (client) => {
    const others = await client.query('update rate_windows set requests = 9 where schema_id = 2000')
    expect(others.rowCount).toBe(0)
  })
  const intrusion = inTenant(requests, '1000', (client) =>
    client.query(
      'insert into rate_windows (schema_id, token_id, started_at, requests) values (2000, 7, now(), 1)',
    ),
  )
  await expect(intrusion).rejects.toThrow('violates row-level security policy')
  const move = inTenant(requests, '1000', (client) =>
    client.query('update rate_windows set schema_id = 2000'),
  )
  await expect(move).rejects.toThrow('violates row-level security policy')
  await owner.query('revoke insert, update on rate_windows from grandlivre_service')
})

test('the ledger, tokens and rate windows are read-only for the role', async () => {
  for (const statement of [
    `update folders set name = 'x'`,
    `delete from movements`,
    `insert into payments (schema_id, folder_id, id, code) values (1000, ${folderId}, 7, 'CB')`,
    `update tokens set revoked_at = null`,
    `update tokens set activated_at = null`,
    `update rate_windows set requests = 0`,
    `truncate entries`,
  ])
    await expect(
      inTenant(requests, '1000', (client) => client.query(statement)),
      statement,
    ).rejects.toThrow('permission denied')
})

test('the role writes only the tables of full exports, digests and webhooks, and few functions see beyond its tenant', async () => {
  const { rows: granted } = await owner.query(
    `select table_name as name, string_agg(privilege_type, ' ' order by privilege_type) as rights
     from information_schema.role_table_grants
     where grantee = 'grandlivre_service' and table_schema = 'grandlivre'
     group by table_name having string_agg(privilege_type, ' ') <> 'SELECT' order by table_name`,
  )
  const all = 'DELETE INSERT SELECT UPDATE'
  expect(granted).toEqual([
    { name: 'deliveries', rights: all },
    { name: 'delivery_attempts', rights: all },
    { name: 'events', rights: 'DELETE INSERT SELECT' },
    { name: 'exports', rights: all },
    { name: 'former_filters', rights: all },
    { name: 'ledger_blocks', rights: all },
    { name: 'movement_blocks', rights: all },
    { name: 'sequence_runs', rights: all },
    { name: 'signing_secrets', rights: all },
    { name: 'subscription_positions', rights: all },
    { name: 'subscriptions', rights: all },
  ])
  const { rows: functions } = await owner.query(
    `select proname as name from pg_proc
     where pronamespace = 'grandlivre'::regnamespace and prosecdef and prorettype <> 'trigger'::regtype
       and has_function_privilege('grandlivre_service', oid, 'execute') order by 1`,
  )
  expect(functions.map(({ name }) => name)).toEqual([
    'admit',
    'adopt_master_key',
    'adopt_rendering',
    'append_requests',
    'caller',
    'caller_facts',
    'compact_ledger_changes',
    'draw',
    'draw_several',
    'enter',
    'entries_named',
    'erased_folders',
    'expired_audit',
    'forget_audit',
    'forget_ledger_changes',
    'ledger_cursor',
    'ledger_cursors',
    'master_key_standing',
    'pass_gate',
    'read_ledger_cursor',
    'sealing_key',
    'tenants_with_exports',
    'uncount_request',
  ])
})

test('only the tenant of a subscription and the dispatcher see its secrets', async () => {
  const secrets = 'select subscription_id from signing_secrets order by 1'
  const idsOf = ({ rows }: pg.QueryResult) => rows.map((row) => row.subscription_id)
  for (const [id, schemaId] of [
    ['7001', '1000'],
    ['7002', '2000'],
  ]) {
    await owner.query(
      `insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
       values ($1, $2, 'staff', 1, 'https://hooks.test/', '{document}', 0)`,
      [id, schemaId],
    )
    await owner.query(`insert into signing_secrets (subscription_id, secret_encrypted) values ($1, 'x')`, [
      id,
    ])
  }
  expect(idsOf(await requests.query(secrets))).toEqual([])
  expect(idsOf(await inTenant(requests, '2000', (client) => client.query(secrets)))).toEqual(['7002'])
  expect(idsOf(await whileDelivering(requests, (client) => client.query(secrets)))).toEqual(['7001', '7002'])
  const foreign = `insert into signing_secrets (subscription_id, secret_encrypted, retired_at) values (7001, 'y', now())`
  await expect(inTenant(requests, '2000', (client) => client.query(foreign))).rejects.toThrow(
    'violates row-level security policy',
  )
})

test('the function that finds entries by name bypasses policies, but finds only entries of its tenant', async () => {
  await owner.query(
    `update movements set invoice_number = 'FOREIGN' where schema_id = 2000;
     update entries set partner_metadata = '{"partnerId":"sent"}' where schema_id = 2000`,
  )
  const named = (name: string) =>
    `select id from entries_named(${folderId}, '${name}', false, 10) where exercice_id is not null`
  for (const name of ['FOREIGN', 'sent', '1']) {
    expect(await askInTenant(requests, '2000', named(name)), name).toHaveLength(1)
    expect(await askInTenant(requests, '1000', named(name)), name).toHaveLength(name === '1' ? 1 : 0)
    expect((await requests.query(named(name))).rows, name).toEqual([])
  }
})

test('the function that reads cursors bypasses policies, but knows only folders of its tenant', async () => {
  const { rows } = await owner.query(
    'select ledger_version as version from folders where schema_id = 2000 and id = $1',
    [folderId],
  )
  const { version } = rows[0]
  const read = `select * from read_ledger_cursor(
    ledger_cursor(2000, ${folderId}, ${version}, 'r'), 2000, ${folderId}, 'r')`
  expect(await askInTenant(requests, '2000', read)).toEqual([{ version, refusal: null }])
  expect(await askInTenant(requests, '1000', read)).toEqual([])
})

test('the role owns no object, and can neither create nor alter any', async () => {
  const { rows } = await requests.query(
    `select (select count(*) from pg_shdepend d join pg_roles r on r.oid = d.refobjid
             where r.rolname = current_user and d.deptype = 'o')::int as owned,
            rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
     from pg_roles where rolname = current_user`,
  )
  expect(rows).toEqual([
    {
      owned: 0,
      rolsuper: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolbypassrls: false,
      rolreplication: false,
    },
  ])
  for (const [statement, refusal] of [
    ['create table mine (id int)', 'permission denied'],
    ['create table public.mine (id int)', 'permission denied'],
    ['create schema mine', 'permission denied'],
    ['alter table folders disable row level security', 'must be owner'],
    ['drop policy tenant on folders', 'must be owner'],
    ['set role grandlivre', 'permission denied'],
    ["select pg_read_file('/etc/passwd')", 'permission denied'],
  ] as const)
    await expect(requests.query(statement), statement).rejects.toThrow(refusal)
})

test('secrets of third parties cannot be read; callers are looked up only by hashes', async () => {
  await inTenant(requests, '1000', async (client) =>
    expect(await count(client, 'third_party_secrets')).toBe(0),
  )
  await expect(requests.query('select * from service_state')).rejects.toThrow('permission denied')
  expect((await requests.query('select code from third_parties')).rows).toEqual([{ code: 'PARTNER' }])
  const enter = (secret: string, token: string) =>
    requests.query('select schema_id, token_id from enter(sha256($1), sha256($2), 1000)', [
      Buffer.from(secret),
      Buffer.from(token),
    ])
  expect((await enter('secret', 'token 2000')).rows).toEqual([{ schema_id: '2000', token_id: '1' }])
  expect((await enter('secret', 'unknown')).rows).toEqual([{ schema_id: null, token_id: null }])
  expect((await enter('unknown', 'token 2000')).rows).toEqual([])
})

async function tenantTables(): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'schema_id'
     where c.relnamespace = 'grandlivre'::regnamespace and c.relkind = 'r' and c.relname <> 'audit_rows' order by 1`,
  )
  return rows.map((row) => row.name)
}

async function count(client: pg.Pool | pg.PoolClient, from: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(`select count(*)::int as count from ${from}`)
  return rows[0]!.count
}
