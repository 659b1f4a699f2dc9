import type { ClientBase, Pool } from 'pg'

/** What is known of a caller that sent a known partner secret. */
export interface CallerFacts {
  thirdPartyId: string
  kind: 'partner' | 'customer'
  /** Null while the third party is connected. */
  disconnectedReason: string | null
  underMaintenance: boolean
  /** Null where the token is unknown, revoked, or another third party's. */
  token: TokenFacts | null
}

export interface TokenFacts {
  id: string
  schemaId: string
  level: 'api' | 'firm'
  firmId: string
  /** The folder of a company token; null for a firm token. */
  folderId: string | null
  activated: boolean
}

/** Undefined where no third party has this secret. Both hashes are SHA-256, 32 bytes. */
export async function findCaller(
  database: Pool | ClientBase,
  secretHash: Buffer,
  tokenHash: Buffer,
): Promise<CallerFacts | undefined> {
  const { rows } = await database.query(
    `select third_party_id, kind, disconnected_reason, under_maintenance,
            token_id, schema_id, level, firm_id, folder_id, activated
     from grandlivre.caller($1, $2)`,
    [secretHash, tokenHash],
  )
  const [row] = rows
  if (!row) return undefined
  return {
    thirdPartyId: row.third_party_id,
    kind: row.kind,
    disconnectedReason: row.disconnected_reason,
    underMaintenance: row.under_maintenance,
    token:
      row.token_id === null
        ? null
        : {
            id: row.token_id,
            schemaId: row.schema_id,
            level: row.level,
            firmId: row.firm_id,
            folderId: row.folder_id,
            activated: row.activated,
          },
  }
}
