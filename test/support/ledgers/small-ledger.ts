/**
 * A ledger with one row in each table, as SQL that depends only on the schema. Every tenant gets the same
 * ids, so that rows kept apart only by their tenant show.
 */
import type pg from 'pg'

/** The one folder of `fillTenant`, in every tenant. */
export const folderId = '1'

type Insert = (schemaId: string, id: number, folder?: string) => string

const row = (table: string, columns: string, values: string): Insert => {
  return (schemaId, id, folder = folderId) =>
    `insert into ${table} (schema_id, folder_id, ${columns})
     values (${schemaId}, ${folder}, ${values.replaceAll('#', String(id))})`
}

/**
 * Every table whose rows appear in exports, parents first. Rows refer to rows with id 1, and those of
 * accounts to #.
 */
export const ledgerInserts: Record<string, Insert> = {
  payments: row('payments', 'id, code', `#, 'CB'`),
  vat_codes: row('vat_codes', 'id, code, rate', `#, 'V#', 2000`),
  accounts: row('accounts', 'id, number, name', `#, '401#', 'Compte #'`),
  companies: row('companies', 'account_id, name', `#, 'Société #'`),
  employees: row('employees', 'account_id, last_name', `#, 'Dupré'`),
  journals: row('journals', 'id, code, name, type', `#, 'J#', 'Journal #', 'OD'`),
  banks: row('banks', 'id, iban, bic, journal_id', `#, 'FR76', 'AGRIFRPP', 1`),
  axes: row('axes', 'id, code, name', `#, 'A#', 'Axe #'`),
  sections: row('sections', 'id, axis_id, code, name', `#, 1, 'S#', 'Section #'`),
  exercices: row('exercices', 'id, start_date, end_date', `#, '2024-01-01', '2024-12-31'`),
  entries: row(
    'entries',
    'id, exercice_id, journal_id, date, accounted_at, created_at, validated_at, source, currency',
    `#, 1, 1, '2024-03-01', '2024-03-01', '2024-03-02T10:00:00Z', '2024-03-03', 'FEC', 'EUR'`,
  ),
  movements: row(
    'movements',
    'id, exercice_id, entry_id, account_id, description, invoice_number, debit, credit',
    `#, 1, 1, 1, 'Achat', 'F#', 100, 0`,
  ),
}

/** A tenant with a firm, a folder, a token of third party 1, an export and one row in each ledger table. */
export async function fillTenant(client: pg.ClientBase, schemaId: string): Promise<void> {
  await client.query(
    `insert into third_parties (id, code, name, kind) values (1, 'PARTNER', 'Partner', 'partner')
     on conflict do nothing`,
  )
  await client.query(
    `insert into third_party_secrets (third_party_id, secret_hash, secret_encrypted)
     values (1, sha256('secret'), 'encrypted') on conflict do nothing`,
  )
  await client.query(`insert into schemas (schema_id, name) values ($1, 'Tenant')`, [schemaId])
  await client.query(`insert into firms (schema_id, id, name) values ($1, 1, 'Cabinet')`, [schemaId])
  await insertFolder(client, schemaId, folderId)
  await client.query(
    `insert into tokens (schema_id, id, third_party_id, level, firm_id, token_hash, hint)
     values (${schemaId}, 1, 1, 'firm', 1, sha256('token ${schemaId}'), 'abcd')`,
  )
  await client.query(
    `insert into rate_windows (schema_id, token_id, started_at, requests) values ($1, 1, now(), 1)`,
    [schemaId],
  )
  await client.query(
    `insert into exports (schema_id, id, folder_id, version, format, identity, request_id)
     values ($1, 'export_' || repeat('0', 32), ${folderId}, '1.0.0', 'JSON', repeat('0', 64), 'request')`,
    [schemaId],
  )
  for (const insert of Object.values(ledgerInserts)) await client.query(insert(schemaId, 1))
  await client.query(
    `insert into movement_blocks (schema_id, folder_id, exercice_id, cursor, version, first_ids, rows, digests)
     values ($1, ${folderId}, 1, 'cursor', 1, '{0}', '{1}', sha256('line'))`,
    [schemaId],
  )
  await client.query(
    `insert into ledger_blocks (schema_id, folder_id, cursor, version, first_ids, rows, digests, tables)
     values ($1, ${folderId}, 'cursor', 1, '{0}', '{1}', sha256('line'), sha256('rows'))`,
    [schemaId],
  )
  await fillWebhooks(client, schemaId)
}

async function fillWebhooks(client: pg.ClientBase, schemaId: string): Promise<void> {
  await client.query(
    `insert into events (schema_id, name, operation, scope, data)
       values (${schemaId}, 'portfolio', 'CREATE', '{}', '{}');
     insert into subscriptions (id, schema_id, level, firm_id, third_party_id, post_url, on_events, start_position)
       values (${schemaId}, ${schemaId}, 'firm', 1, 1, 'https://example.com', '{portfolio}', 0);
     insert into subscription_positions (schema_id, subscription_id, position) values (${schemaId}, ${schemaId}, 1);
     insert into sequence_runs (schema_id, subscription_id, first_sequence, last_sequence, first_event, last_event)
       values (${schemaId}, ${schemaId}, 1, 1, 1, 1);
     insert into former_filters (schema_id, subscription_id, last_sequence, on_events, folder_ids)
       values (${schemaId}, ${schemaId}, 1, '{document}', '{}');
     insert into deliveries (schema_id, id, subscription_id, first_event, last_event, events, body, next_attempt_at)
       values (${schemaId}, 1, ${schemaId}, 1, 1, 1, '[]', now());
     insert into delivery_attempts (schema_id, delivery_id, number, at, latency_ms)
       values (${schemaId}, 1, 1, now(), 0)`,
  )
}

export async function insertFolder(client: pg.ClientBase, schemaId: string, id: string): Promise<void> {
  await client.query(`insert into folders (schema_id, id, firm_id, name) values ($1, $2, 1, 'Dossier')`, [
    schemaId,
    id,
  ])
}
