/** Compares the page on personal data with the schema. For a new column, somebody must decide whether it is on the page. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(resolve(root, path), 'utf8')

/** The columns of each table that have no personal data: keys, states, times, amounts of no account, hashes. */
const ofNoPerson: Record<string, string> = {
  accounts: 'schema_id folder_id id closed counterpart_account_id correspondance_account_id',
  adopted_key: 'one fingerprint',
  audit_batches: 'sender batch at',
  audit_head: 'one count hash epoch',
  audit_rows:
    'number at third_party_id token_id act schema_id folder_id request_id rows bytes sha256 cursor outcome code hash',
  audit_start: 'one count hash at signature',
  axes: 'schema_id folder_id id code name default_section_id',
  banks: 'schema_id folder_id id account_id journal_id is_default',
  companies: 'schema_id folder_id account_id payment_id vat_id ape_producer_id ape_code ape_name',
  console_keys: 'id key_hash created_at used_at revoked_at',
  console_sessions: 'session_hash expires_at',
  deliveries:
    'schema_id id subscription_id first_event last_event events state attempts attempts_before_replay is_replay ' +
    'next_attempt_at created_at finished_at first_sequence last_sequence',
  delivery_attempts: 'schema_id delivery_id number at status latency_ms',
  employees: 'schema_id folder_id account_id',
  entries:
    'schema_id folder_id id exercice_id journal_id date due_date accounted_at created_at validated_at source ' +
    'third_party_id currency rate number',
  entry_numbers: 'schema_id folder_id exercice_id journal_id last',
  erasures: 'kind id of_schema of_firm code begun_at ended_at backups_until gone export_ids',
  events: 'schema_id id folder_id name operation created_at firm_id epoch',
  exercices: 'schema_id folder_id id start_date end_date lettering closed_at filed_columns scattered',
  exports:
    'schema_id id folder_id version format exercice_id period_start period_end journal_ids identity latest request_id ' +
    'created_at state attempt renewed_at rows_total rows bytes finished_at file_key sha256 debit credit snapshot_on ' +
    'compression encoding columns exercice_end file_bytes file_sha256 notes epoch attempt_without_employees',
  firms: 'schema_id id',
  folders:
    'schema_id id firm_id capital currency rcs_producer_id rcs_name ledger_version created_at erased_at',
  former_filters: 'schema_id subscription_id last_sequence on_events folder_ids',
  journals: 'schema_id folder_id id code name type counterpart_account_id locked filed_name',
  ledger_blocks: 'schema_id folder_id cursor version first_ids rows digests tables',
  ledger_changes: 'schema_id folder_id version kind ids logged_at',
  migrations: 'version name applied_at',
  movement_blocks: 'schema_id folder_id exercice_id cursor version first_ids rows digests',
  movements: 'schema_id folder_id exercice_id entry_id id lettering_state lettering_code shares place',
  next_key: 'one fingerprint',
  partner_limits: 'third_party_id requests window_ms concurrent',
  payments: 'schema_id folder_id id code',
  rate_windows: 'schema_id token_id started_at requests',
  schemas: 'schema_id name created_at',
  sections: 'schema_id folder_id id axis_id account_roots closed',
  sequence_runs:
    'schema_id subscription_id first_sequence last_sequence first_event last_event epoch jumped_from',
  service_state: 'one under_maintenance epoch cursor_key rendering compacted_until',
  signing_secrets: 'subscription_id secret_encrypted created_at retired_at',
  sources: 'code',
  subscription_positions: 'schema_id subscription_id position',
  subscriptions:
    'id schema_id level firm_id third_party_id on_events folder_ids start_position enabled disabled_at failing_since ' +
    'last_success_at created_at pinged_at numbered collected woken_at epoch',
  table_changes: 'schema_id folder_id version',
  third_parties: 'id kind disconnected_at created_at',
  third_party_secrets: 'third_party_id secret_hash secret_encrypted created_at retired_at',
  tokens:
    'schema_id id third_party_id level firm_id folder_id token_hash hint created_at activated_at revoked_at groups expires_at',
  vat_codes: 'schema_id folder_id id code rate',
}

const quoted = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, word]) => word!)

/** The rows of the page's tables whose first cell is the name of a table of the database. */
const named = [...read('docs/operators/personal-data.md').matchAll(/^\| `(\w+)` \| (`[^|]*) \| ([^|]*) \|/gm)]
const onPage = named.flatMap(([, table, columns]) => quoted(columns!).map((column) => `${table}.${column}`))

const schema = read('src/db/schema.sql')
const columnsOf = (body: string) => [...body.matchAll(/^ {2}([a-z_]\w*) /gm)].map(([, name]) => name!)
const inSchema = [...schema.matchAll(/^CREATE (?:UNLOGGED )?TABLE (\w+) \(\n(.*?)\n\)/gms)].flatMap(
  ([, table, body]) => columnsOf(body!).map((column) => `${table}.${column}`),
)

test('every column is either on the page or in the list of columns without personal data, never in both', () => {
  expect(inSchema.length).toBeGreaterThan(300)
  expect(new Set(onPage).size).toBe(onPage.length)
  const listed = Object.entries(ofNoPerson).flatMap(([table, columns]) =>
    columns.split(' ').map((column) => `${table}.${column}`),
  )
  expect([...onPage, ...listed].toSorted()).toEqual(inSchema.toSorted())
})

test('the fields of an address are those of its type', () => {
  const [, parts] = /^CREATE TYPE address AS \(\n(.*?)\n\)/ms.exec(schema)!
  const [, , , said] = named.find(([, table, columns]) => table === 'employees' && columns === '`address`')!
  expect(quoted(said!)).toEqual(columnsOf(parts!))
})

test('the page lists the NIR first', () => {
  expect(onPage[0]).toBe('employees.nir')
})
