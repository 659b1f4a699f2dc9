import type { ClientBase, Pool } from 'pg'
import { lookUp } from '../db/look-up.ts'

export interface KeyStanding {
  /** Null until a process has adopted its key. */
  fingerprint: Buffer | null
  /** The encrypted secret that was stored last; null if there is none, or a fingerprint. */
  newestSecret: Buffer | null
}

/** Undefined before the migration that lets the database know its key. */
export async function readKeyStanding(client: ClientBase | Pool): Promise<KeyStanding | undefined> {
  const { rows: found } = await client.query<{ isKnown: boolean }>(
    lookUp({ text: `select to_regprocedure('grandlivre.master_key_standing()') is not null as "isKnown"` }),
  )
  if (!found[0]?.isKnown) return undefined
  const { rows } = await client.query<KeyStanding>(
    lookUp({
      text: 'select fingerprint, newest_secret as "newestSecret" from grandlivre.master_key_standing()',
    }),
  )
  return rows[0]
}

/** @returns the fingerprint of the database: that of the first process that adopted its key */
export async function adoptFingerprint(client: ClientBase, fingerprint: Buffer): Promise<Buffer> {
  const { rows } = await client.query<{ adopted: Buffer }>(
    'select grandlivre.adopt_master_key($1) as adopted',
    [fingerprint],
  )
  return rows[0]!.adopted
}
