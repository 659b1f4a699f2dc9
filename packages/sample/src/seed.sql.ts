/** Statements of the seed, which runs as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'
import { queryValue } from '../../../src/db/statement.ts'

/**
 * Makes a second seed of the same reference wait until the transaction ends, so that it sees the first one's folder.
 */
export async function lockReference(client: ClientBase, reference: string): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre seed ' || $1, 0))`, [
    reference,
  ])
}

/**
 * The third party that seeded entries name as sender. It cannot call the service: it has no secret and is disconnected
 * from the start.
 * @returns its id: `id`, unless an earlier seed created it
 */
export function findOrCreateSender(client: ClientBase, id: string): Promise<string> {
  return queryValue(
    client,
    `insert into grandlivre.third_parties (id, code, name, kind, disconnected_at, disconnected_reason)
     values ($1, 'SEED', 'Éditeur « Démo » & Cie', 'partner', now(), 'Exists in seeded folders only')
     on conflict (code) do update set code = excluded.code
     returning id`,
    [id],
  )
}

/**
 * For the rest of the transaction, rows of small tables that others refer to are looked up by their keys. The plans of
 * foreign keys are made while these tables hold one folder, and would then read those of all folders for each row.
 */
export async function lookUpReferences(client: ClientBase): Promise<void> {
  await client.query('set local enable_seqscan = off')
}

/**
 * Updates statistics, without which the first exports would use plans for an empty table, and sets the visibility marks
 * that the first reader would otherwise write to every page. Not within a transaction.
 */
export async function vacuumLedger(pool: Pool): Promise<void> {
  await pool.query(
    `vacuum (analyze) grandlivre.folders, grandlivre.accounts, grandlivre.companies, grandlivre.employees,
       grandlivre.journals, grandlivre.payments, grandlivre.axes, grandlivre.sections, grandlivre.exercices,
       grandlivre.entries, grandlivre.movements, grandlivre.events`,
  )
}
