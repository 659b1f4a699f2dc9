/** Third parties, as staff commands make and change them: as the owner of the tables. */
import type { ClientBase } from 'pg'

export type Kind = 'partner' | 'customer'

export interface StoredSecret {
  /** SHA-256, for the look-up. */
  hash: Buffer
  /** AES-256-GCM under the master key, for the signatures of webhooks. */
  encrypted: Buffer
}

/** @returns id; undefined where the code is taken */
export async function insertThirdParty(
  client: ClientBase,
  thirdParty: { code: string; name: string; kind: Kind; secret: StoredSecret },
): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>(
    `insert into grandlivre.third_parties (id, code, name, kind, secret_hash, secret_encrypted)
     values (nextval('grandlivre.ids'), $1, $2, $3, $4, $5)
     on conflict (code) do nothing
     returning id`,
    [thirdParty.code, thirdParty.name, thirdParty.kind, thirdParty.secret.hash, thirdParty.secret.encrypted],
  )
  return rows[0]?.id
}

/** The old secret is unknown from now on. @returns false where no third party has this code */
export async function replaceSecret(
  client: ClientBase,
  code: string,
  secret: StoredSecret,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update grandlivre.third_parties set secret_hash = $2, secret_encrypted = $3 where code = $1`,
    [code, secret.hash, secret.encrypted],
  )
  return rowCount === 1
}

/** @returns false where no third party has this code, or it was disconnected before */
export async function disconnectThirdParty(
  client: ClientBase,
  code: string,
  reason: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update grandlivre.third_parties set disconnected_at = now(), disconnected_reason = $2
     where code = $1 and disconnected_at is null`,
    [code, reason],
  )
  return rowCount === 1
}

/** @returns false where no third party has this code, or it is connected */
export async function reconnectThirdParty(client: ClientBase, code: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `update grandlivre.third_parties set disconnected_at = null, disconnected_reason = null
     where code = $1 and disconnected_at is not null`,
    [code],
  )
  return rowCount === 1
}

export interface ListedThirdParty {
  id: string
  code: string
  name: string
  kind: Kind
  /** Null while connected. */
  disconnectedReason: string | null
  createdAt: Date
}

export async function listThirdParties(client: ClientBase): Promise<ListedThirdParty[]> {
  const { rows } = await client.query<ListedThirdParty>(
    `select id, code, name, kind, disconnected_reason as "disconnectedReason", created_at as "createdAt"
     from grandlivre.third_parties order by code`,
  )
  return rows
}
