import type pg from 'pg'
import { encrypt, type Level, makeToken, sha256 } from '../../../src/auth/secrets.ts'
import { insertThirdParty } from '../../../src/auth/third-parties.sql.ts'
import { insertToken, type NewToken, type Opened } from '../../../src/auth/tokens.sql.ts'
import { createFirm, createFolder, createSchema } from '../../../src/ledger/tenants.sql.ts'
import { connect } from '../servers/database.ts'
import { testMasterKey } from '../service.ts'

/** Tenant 100 with firm 110 (folders 111, 112) and firm 120 (folder 121); tenant 200 with firm 210 (folder 211). */
export const folders = {
  first: { schemaId: '100', firmId: '110', folderId: '111' },
  sameFirm: { schemaId: '100', firmId: '110', folderId: '112' },
  otherFirm: { schemaId: '100', firmId: '120', folderId: '121' },
  otherTenant: { schemaId: '200', firmId: '210', folderId: '211' },
} satisfies Record<string, Opened>

export interface IssuedToken {
  id: string
  token: string
}

/** A connection of the owner, with which tests prepare their data. */
export type Staff = ReturnType<typeof staffOf>

export async function createTenants(ownerUrl: string) {
  const client = await connect(ownerUrl)
  const created = new Set<string>()
  const once = async (id: string, make: () => Promise<void>) => {
    if (!created.has(id)) await make()
    created.add(id)
  }
  for (const { schemaId, firmId, folderId } of Object.values(folders)) {
    await once(schemaId, () => createSchema(client, { id: schemaId, name: `Tenant ${schemaId}` }))
    await once(firmId, () => createFirm(client, { schemaId, id: firmId, name: `Firm ${firmId}` }))
    await createFolder(client, { schemaId, firmId, id: folderId, name: `Folder ${folderId}` })
  }
  return staffOf(client)
}

/** For a database that has the tenants already. */
export function staffOf(client: pg.Client) {
  // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
  const sql = async (text: string, values: unknown[] = []): Promise<any[]> =>
    (await client.query(text, values)).rows
  return {
    client,
    sql,
    /** @returns the secret */
    thirdParty: async (code: string, kind: 'partner' | 'customer' = 'partner'): Promise<string> => {
      const plain = makeToken('secret')
      const secret = { hash: sha256(plain), encrypted: encrypt(plain, testMasterKey) }
      await insertThirdParty(client, { code, name: code, kind, secret })
      return plain
    },
    thirdPartyId: async (code: string): Promise<string> =>
      (await sql('select id from third_parties where code = $1', [code]))[0].id,
    /** @param opened folderId null for a firm token */
    token: async (
      thirdPartyCode: string,
      level: Level,
      opened: Opened,
      limits?: Pick<NewToken, 'groups' | 'expiresAt'>,
    ): Promise<IssuedToken> => {
      const token = makeToken(level)
      const id = await insertToken(client, {
        thirdPartyCode,
        level,
        opened: level === 'firm' ? { ...opened, folderId: null } : opened,
        hash: sha256(token),
        hint: token.slice(-4),
        ...limits,
      })
      return { id: id!, token }
    },
    end: () => client.end(),
  }
}

export function credentials(token: IssuedToken | string, secret: string): Record<string, string> {
  return {
    Authorization: `Bearer ${typeof token === 'string' ? token : token.token}`,
    'X-Third-Party-Secret': secret,
  }
}
