/** SQL statements of the seed, which connects as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'
import { queryValue } from '../../../src/db/statement.ts'

/**
 * Locks the reference until the transaction ends. A second seed with the same reference waits, and then sees the folder
 * of the first.
 */
export async function lockReference(client: ClientBase, reference: string): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre seed ' || $1, 0))`, [
    reference,
  ])
}

/**
 * Finds or creates the third party that seeded entries name as their sender. It cannot call the service: it has no
 * secret and is disconnected from the start.
 * @param id of a new third party
 * @returns the id of the third party: `id`, or that of one from an earlier seed
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
 * Makes the rest of the transaction look up rows of small tables by their keys when other rows refer to them. Otherwise
 * PostgreSQL would plan the checks of foreign keys while these tables hold a single folder, and later read the rows of
 * all folders for each check.
 */
export async function lookUpReferences(client: ClientBase): Promise<void> {
  await client.query('set local enable_seqscan = off')
}

/**
 * Updates statistics, so that the first exports do not use plans for an empty table. Also sets the visibility marks,
 * which the first reader would otherwise write to every page. Cannot run within a transaction.
 */
export async function vacuumLedger(pool: Pool): Promise<void> {
  await pool.query(
    `vacuum (analyze) grandlivre.folders, grandlivre.accounts, grandlivre.companies, grandlivre.employees,
       grandlivre.journals, grandlivre.payments, grandlivre.axes, grandlivre.sections, grandlivre.exercices,
       grandlivre.entries, grandlivre.movements, grandlivre.events`,
  )
}
