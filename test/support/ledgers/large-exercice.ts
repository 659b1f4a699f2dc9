import type pg from 'pg'

/** The exercice of `addLargeExercice`, in folder 111 of tenant 100. */
export const largeExercice = '99'

/**
 * Adds an exercice whose export exceeds all buffers between the database and a client that does not read:
 * about 1,150 bytes per movement, ten movements per entry.
 */
export async function addLargeExercice(client: pg.ClientBase, movements: number): Promise<void> {
  await client.query(`
    insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
    values (100, 111, 99, '2020-01-01', '2020-12-31')`)
  await client.query(
    `insert into grandlivre.entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
       validated_at, source, currency)
     select 100, 111, 1000000 + i, 99, 31, '2020-03-01', '2020-03-01', '2020-03-01', '2020-03-01', 'FEC', 'EUR'
     from generate_series(0, $1 - 1) as i`,
    [movements / 10],
  )
  await client.query(
    `insert into grandlivre.movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
       invoice_number, debit, credit)
     select 100, 111, 99, 1000000 + i / 10, 1000000 + i, 101, repeat(md5(i::text), 16), 'F' || i, i, 0
     from generate_series(0, $1 - 1) as i`,
    [movements],
  )
  await client.query('analyze grandlivre.entries, grandlivre.movements')
}

/** The queries that exports are running, one line each; idle connections do not count. */
export async function runningQueries(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ running: string }>(
    `select format('%s, waiting for %s: %s', state, coalesce(wait_event_type, 'nothing'), left(query, 60)) as running
     from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre export' and state <> 'idle'`,
  )
  return rows.map(({ running }) => running)
}
