import type { ClientBase, Pool } from 'pg'
import { lookUp } from '../db/look-up.ts'

interface KeyStanding {
  /** Null until a process has adopted its key; undefined before the migration that lets the database know it. */
  fingerprint?: Buffer | null
  /** The encrypted secret that was stored last; null if there is none, or a fingerprint. */
  newestSecret: Buffer | null
}

/** Undefined where there are no secrets yet, or by the first migrations of all, which the owner alone meets. */
export async function readKeyStanding(client: ClientBase): Promise<KeyStanding | undefined> {
  const { rows: known } = await client.query<{ fingerprint: boolean; secrets: boolean }>(
    `select to_regprocedure('grandlivre.master_key_standing()') is not null as fingerprint,
       to_regclass('grandlivre.signing_secrets') is not null as secrets`,
  )
  if (!known[0]?.secrets) return undefined
  const { rows } = await client.query<KeyStanding>(
    known[0].fingerprint
      ? 'select fingerprint, newest_secret as "newestSecret" from grandlivre.master_key_standing()'
      : `select (
           select secret_encrypted from (
             select secret_encrypted, created_at from grandlivre.third_party_secrets
             union all select secret_encrypted, created_at from grandlivre.signing_secrets
           ) stored where secret_encrypted <> '' order by created_at desc limit 1) as "newestSecret"`,
  )
  return rows[0]
}

/** Null until a process has adopted its key. */
export async function readFingerprint(database: Pool): Promise<Buffer | null> {
  const { rows } = await database.query<{ fingerprint: Buffer | null }>(
    lookUp({ text: 'select fingerprint from grandlivre.master_key_standing()' }),
  )
  return rows[0]!.fingerprint
}

/** @returns the fingerprint of the database: that of the first process that adopted its key */
export async function adoptFingerprint(client: ClientBase, fingerprint: Buffer): Promise<Buffer> {
  const { rows } = await client.query<{ adopted: Buffer }>(
    'select grandlivre.adopt_master_key($1) as adopted',
    [fingerprint],
  )
  return rows[0]!.adopted
}
